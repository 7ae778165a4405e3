"""How wide a text will be, as far as that can be said without its font, and how to make it fit."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

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
_BOLD = 1.1
ELLIPSIS = "…"
_SPACE = re.compile(r"[^\S\xa0]+")  # a no-break space is a letter like others


def width(text: str, size: float, *, bold: bool = False) -> float:
    return sum(map(_advance, text)) * size * (_BOLD if bold else 1)


@lru_cache(maxsize=4096)
def _advance(character: str) -> float:
    if character in _ADVANCE:
        return _ADVANCE[character]
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    return 1.0 if ord(character) > 0x24F else 0.8


def shorten(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """The text with its middle left out where there is no room: names of models differ at both ends."""
    text = _SPACE.sub(" ", text).strip()
    if width(text, size, bold=bold) <= room:
        return text
    for kept in range(min(len(text) - 1, int(room / (0.27 * size)) + 1), 0, -1):
        head = (kept + 1) // 2
        shorter = f"{text[:head].rstrip()}{ELLIPSIS}{text[len(text) - (kept - head) :].lstrip()}"
        if width(shorter, size, bold=bold) <= room:
            return shorter
    return ELLIPSIS if width(ELLIPSIS, size, bold=bold) <= room else ""


def wrap(text: str, room: float, size: float, most: int = 3, *, bold: bool = False) -> list[str]:
    """In lines that fit; what the last of them has no room for is left out of its middle."""
    lines: list[str] = []
    words = [word for word in _SPACE.split(text) if word]
    while words and len(lines) < most - 1:
        taken = 1
        while taken < len(words) and width(" ".join(words[: taken + 1]), size, bold=bold) <= room:
            taken += 1
        lines.append(shorten(" ".join(words[:taken]), room, size, bold=bold))
        words = words[taken:]
    if words:
        lines.append(shorten(" ".join(words), room, size, bold=bold))
    return lines
