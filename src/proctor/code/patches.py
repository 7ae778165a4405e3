"""Applies patches that models write: hunks between @@, located by their context."""

from __future__ import annotations

import re
from difflib import unified_diff
from typing import Any

from proctor.core.extras import import_extra

_PARTS = re.compile(r"<NME> (?P<name>.*?)\n<BEF> (?P<file>.*?)\n<MSG> (?P<message>.*?)\n<DFF> (?P<diff>.*)", re.DOTALL)
_HUNK = re.compile(r"^@@ .*? @@.*\n", re.MULTILINE)
_NO_LINE_END = re.compile(r"^\\ No newline at end of file$\n?", re.MULTILINE)
_BEHIND = re.compile(r"\n(?![ +@\\-]|\Z)")  # a line that no hunk can have
_NEW_FILE = "ADDFILE"


def split_diff(content: str) -> dict[str, str]:
    """The parts, by name, of what a diff model writes: file name, old file, message, change; none in another form."""
    match = _PARTS.match(content)
    return match.groupdict() if match else {}


def has_hunk(text: str) -> bool:
    return re.search(r"^[ \t]*@@ ", text, re.MULTILINE) is not None


def first_hunks(text: str) -> str:
    """The hunks at the beginning of a completion, without the text that follows them; '' where there are none."""
    hunks = _BEHIND.split(text.lstrip())[0]
    return hunks if has_hunk(hunks) else ""


def apply_diff(file: str, diff: str) -> str:
    """The file with as much of the change as fits, found by its text: models count lines badly."""
    position = 0
    for hunk in _HUNK.split(_NO_LINE_END.sub("", diff))[1:]:
        before, after = _sides(hunk)
        if file == _NEW_FILE:
            return after
        if not before and position == 0:  # lines to be put before all others
            file, position = f"{after}\n{file}", 1
            continue
        start = file.find(before, position)
        end = start + len(before)
        if before and start >= 0 and file[end : end + 1] in ("", "\n"):
            file = file[:start] + after + file[end:]
            position = start + len(after)
    return file


def _sides(hunk: str) -> tuple[str, str]:
    """What the change takes, and what it leaves."""
    lines = [line for line in hunk.split("\n") if line]
    before = [line[1:] for line in lines if line[0] in " -"]
    after = [line[1:] for line in lines if line[0] in " +"]
    return "\n".join(before), "\n".join(after)


def make_diff(old: str, new: str) -> str:
    """The hunks that make the new text of the old one."""
    return "\n".join(list(unified_diff(old.split("\n"), new.split("\n"), lineterm=""))[2:])


# The other kind, in which a hunk counts characters and writes them as an address does: that of diff-match-patch.


def apply_character_patch(old: str, patch: str) -> str:
    """The text with the patch; '' where it is none."""
    engine = _engine()
    try:
        return str(engine.patch_apply(engine.patch_fromText(patch.lstrip()), old)[0])
    except ValueError:
        return ""


def make_character_patch(old: str, new: str) -> str:
    engine = _engine()
    return str(engine.patch_toText(engine.patch_make(old, new)))


def _engine() -> Any:
    return import_extra("diff_match_patch", "The prompt form diff", "diff").diff_match_patch()
