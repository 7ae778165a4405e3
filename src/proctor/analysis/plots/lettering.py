"""How wide a text will be, as far as that can be said without its font, and how to make it fit."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from proctor.analysis.plots.style import SMALL, TEXT, TITLE

# Advance of the printable ASCII characters in hundredths of the letter size, after a wide sans-serif face: in the
# faces that most systems choose, the same text is a little shorter.
_ADVANCES = {
    27: "'",
    28: "ijl",
    30: "IJ",
    32: " ,.",
    34: "/:;\\|",
    36: "f-",
    40: "()[]t!",
    42: "r",
    46: '"',
    50: "*_`",
    53: "sz?",
    56: "cL",
    59: "Fkvxy",
    62: "PTYaoe",
    64: "ESbdghnpqu$0123456789{}",
    69: "KAVBRXZ",
    75: "CUHN",
    79: "DG&OQ",
    84: "w#+<=>^~",
    87: "M",
    100: "%mW@",
}
_ADVANCE = {character: advance / 100 for advance, characters in _ADVANCES.items() for character in characters}
_BOLDER = 1.1
ELLIPSIS = "…"
_SPACE = re.compile(r"[^\S\xa0]+")  # a no-break space is a letter like others

_SIZES = {"pp-title": TITLE, "pp-small": SMALL}
_BOLD = ("pp-title", "pp-strong")


def text_width(text: str, kind: str = "") -> float:
    """Of a text of this kind, which is one or more classes of the style sheet."""
    return sum(map(_advance, text)) * _size(kind) * (_BOLDER if any(name in _BOLD for name in kind.split()) else 1)


def _size(kind: str) -> float:
    return next((_SIZES[name] for name in kind.split() if name in _SIZES), TEXT)


@lru_cache(maxsize=4096)
def _advance(character: str) -> float:
    if character in _ADVANCE:
        return _ADVANCE[character]
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    return 1.0 if ord(character) > 0x24F else 0.8


def shorten(text: str, room: float, kind: str = "") -> str:
    """The text with its middle left out where there is no room: names of models differ at both ends."""
    text = _SPACE.sub(" ", text).strip()
    if text_width(text, kind) <= room:
        return text
    # No more than as many of the narrowest letters as there is room for.
    for kept in range(min(len(text) - 1, int(room / (min(_ADVANCE.values()) * _size(kind))) + 1), 0, -1):
        head = (kept + 1) // 2
        shorter = f"{text[:head].rstrip()}{ELLIPSIS}{text[len(text) - (kept - head) :].lstrip()}"
        if text_width(shorter, kind) <= room:
            return shorter
    return ELLIPSIS if text_width(ELLIPSIS, kind) <= room else ""


def wrap(text: str, room: float, kind: str = "", most: int = 3) -> list[str]:
    """In lines that fit; what the last of them has no room for is left out of its middle."""
    lines: list[str] = []
    words = [word for word in _SPACE.split(text) if word]
    while words and len(lines) < most - 1:
        taken = 1
        while taken < len(words) and text_width(" ".join(words[: taken + 1]), kind) <= room:
            taken += 1
        lines.append(shorten(" ".join(words[:taken]), room, kind))
        words = words[taken:]
    if words:
        lines.append(shorten(" ".join(words), room, kind))
    return lines
