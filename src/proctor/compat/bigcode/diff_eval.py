"""Patches in the form that diff models write: which file, what it was, what is to be done, and the change."""

from __future__ import annotations

import re

_PARTS = re.compile(r"<NME> (?P<name>.*?)\n<BEF> (?P<file>.*?)\n<MSG> (?P<message>.*?)\n<DFF> (?P<diff>.*)", re.DOTALL)
_HUNK = re.compile(r"^@@ .*? @@.*\n", re.MULTILINE)
_NO_LINE_END = re.compile(r"^\\ No newline at end of file$\n?", re.MULTILINE)
_NEW_FILE = "ADDFILE"


def split_diff(content: str) -> dict[str, str]:
    """Its parts by name; none where it has another form."""
    match = _PARTS.match(content)
    return match.groupdict() if match else {}


def apply_diff(file: str, diff: str) -> str:
    """The file with as much of the change as fits, found by its text: models count lines badly."""
    place = 0
    for hunk in _HUNK.split(_NO_LINE_END.sub("", diff))[1:]:
        before, after = _sides(hunk)
        if file == _NEW_FILE:
            return after
        if not before and place == 0:  # lines to be put before all others
            file, place = f"{after}\n{file}", 1
            continue
        start = file.find(before, place)
        end = start + len(before)
        if before and start >= 0 and file[end : end + 1] in ("", "\n"):
            file = file[:start] + after + file[end:]
            place = start + len(after)
    return file


def _sides(hunk: str) -> tuple[str, str]:
    """What the change takes, and what it leaves."""
    lines = [line for line in hunk.split("\n") if line]
    before = [line[1:] for line in lines if line[0] in " -"]
    after = [line[1:] for line in lines if line[0] in " +"]
    return "\n".join(before), "\n".join(after)
