"""Text layout without a font: estimated widths, shortening, wrapping."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from proctor.analysis.plots.style import SMALL, TEXT, TITLE

# Advance widths of the printable ASCII characters in hundredths of the font size, from a wide
# sans-serif face: in max_lines system fonts the same text is a little narrower.
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
_BOLD_FACTOR = 1.1
ELLIPSIS = "…"
_SPACE = re.compile(r"[^\S\xa0]+")  # a no-break space is n

_SIZES = {"pp-title": TITLE, "pp-small": SMALL}
_BOLD = ("pp-title", "pp-strong")


def text_width(text: str, kind: str = "") -> float:
    """The width of a text with these classes of the style sheet."""
    return sum(map(_advance, text)) * _size(kind) * (_BOLD_FACTOR if any(name in _BOLD for name in kind.split()) else 1)


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


def shorten(text: str, max_width: float, kind: str = "") -> str:
    """Leaves out the middle of a text that is too wide: names of models differ at both ends."""
    text = _SPACE.sub(" ", text).strip()
    if text_width(text, kind) <= max_width:
        return text
    # Start at the number of the narrowest letters that fit.
    for n in range(min(len(text) - 1, int(max_width / (min(_ADVANCE.values()) * _size(kind))) + 1), 0, -1):
        head = (n + 1) // 2
        shorter = f"{text[:head].rstrip()}{ELLIPSIS}{text[len(text) - (n - head) :].lstrip()}"
        if text_width(shorter, kind) <= max_width:
            return shorter
    return ELLIPSIS if text_width(ELLIPSIS, kind) <= max_width else ""


def wrap(text: str, max_width: float, kind: str = "", max_lines: int = 3) -> list[str]:
    """Breaks a text into lines; the last one is shortened if needed."""
    lines: list[str] = []
    words = [word for word in _SPACE.split(text) if word]
    while words and len(lines) < max_lines - 1:
        n = 1
        while n < len(words) and text_width(" ".join(words[: n + 1]), kind) <= max_width:
            n += 1
        lines.append(shorten(" ".join(words[:n]), max_width, kind))
        words = words[n:]
    if words:
        lines.append(shorten(" ".join(words), max_width, kind))
    return lines
