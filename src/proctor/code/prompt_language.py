"""Detects the programming language of a prompt, or prose."""

from __future__ import annotations

import re
from itertools import groupby

from proctor.code import reply
from proctor.core.errors import UnknownNameError
from proctor.sandbox.languages import find_language

# Text that means nothing to a compiler, in any of the languages: comments and long strings, perhaps cut off.
_BLOCKS = re.compile(
    r'"""(?s:.*?)(?:"""|\Z)'
    r"|'''(?s:.*?)(?:'''|\Z)"
    r"|/\*(?s:.*?)(?:\*/|\Z)"
    r"|\(\*(?s:.*?)(?:\*\)|\Z)"
    r"|\{-(?s:.*?)(?:-\}|\Z)"
    r"|#\|(?s:.*?)(?:\|#|\Z)"
    r"|^=(?:begin|pod)\b(?s:.*?)(?:^=(?:end|cut)\b|\Z)",
    re.MULTILINE,
)
_STRING = re.compile(r'"[^"\n]*"|`[^`\n]*`')
# The marks of turns, commits and gaps that some models were trained with.
_SPECIAL = re.compile(
    r"<\|\w+\|>|\[/?INST\]|<(?:start|end)_of_turn>|<(?:commit|issue|fim|file)[_-]\w+>|<(?:NME|BEF|MSG|DFF)>"
)
_COMMENT = re.compile(r"(?:#|//|--|;|%|\*|<[!?]).*")
_CODE = re.compile(r"[{}=;\[\]<>|&\\]|\)\s*:|\w\(\)")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
# Words of English sentences that are neither keywords nor usual names in programs.
_ENGLISH = frozenset(
    {"an", "are", "below", "following", "given", "how", "its", "should", "than", "that", "the", "there", "what"}
    | {"which", "write", "you", "your"}
)
_FEW, _MANY = 3, 4  # plain words: of a sentence with a capital and a full stop, and of any other
_IDEOGRAPHS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{4}")


def canonical_language(name: str) -> str:
    """The sandbox's name of a language, without the way its tests run; a name that it does not know as it is."""
    try:
        name = find_language(name).name
    except UnknownNameError:
        return name
    return name.partition("-")[0]


def is_declared(attribute: str, thing: object, base: type) -> bool:
    """Whether an object or one of its classes says the attribute, and not only the base of them all."""
    return attribute in vars(thing) or any(attribute in vars(cls) for cls in type(thing).__mro__ if cls is not base)


def known_language(name: object) -> str:
    """The same, '' for a name that is no language of the sandbox; `humaneval-rs` is named after its end."""
    for candidate in (str(name), str(name).rpartition("-")[2]):
        try:
            return find_language(candidate).name.partition("-")[0]
        except UnknownNameError:
            continue
    return ""


def language_in(prompt: str) -> str:
    """The language that the text itself gives away: Python, where it is a program or the beginning of one."""
    return "python" if prompt.strip() and reply.begins_python(prompt) else ""


def is_prose(prompt: str) -> bool:
    """Whether a prompt has what no program has: sentences outside of comments and strings, marks of a model's turns."""
    if _SPECIAL.search(prompt):
        return True
    lines = _STRING.sub('""', _BLOCKS.sub(" ", prompt)).split("\n")
    return any(_is_sentence(line) for line in lines if line[:1].strip() and not _COMMENT.match(line))


def _is_sentence(line: str) -> bool:
    if _IDEOGRAPHS.search(line):
        return True
    tokens = [token.strip("\"'`,.:?!()") for token in line.split()]
    words = [token if _WORD.fullmatch(token) else "" for token in tokens]
    if line[0].isupper() and line.rstrip()[-1] in ".?!:" and not _CODE.search(line):
        return sum(map(bool, words)) >= _FEW
    runs = [list(run) for plain, run in groupby(words, bool) if plain]
    return any(len(run) >= _MANY and _ENGLISH & {word.lower() for word in run} for run in runs)
