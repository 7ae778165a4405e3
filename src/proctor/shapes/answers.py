"""Typed parsers: what a candidate's text says, or None when it says nothing definite.

All follow one order: the thinking aloud of a model is left out; an answer that stands alone in the first or the
last line counts; then one that is announced ("the answer is …"); then the only one that occurs at all. Text with
several different answers and no sign which is meant says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from proctor.shapes.canvas import FORMS, LARGE, SIZES
from proctor.thoughts import without_thoughts

_ANNOUNCED = re.compile(r"\banswer(?:\s+is)?\s*[:=]?\s*([^\n]*)", re.IGNORECASE)

_NEITHER = re.compile(
    r"\b(?:yes\s*(?:/|and|or)\s*no|no\s*(?:/|and|or)\s*yes|no\s+(?:idea|clue|way|information|answer))\b", re.IGNORECASE
)

UNDETERMINED = "Cannot be determined"

Finder = Callable[[str], list[str]]  # all answers that occur in a text, in their order


def parse_yes_no(text: str) -> str | None:
    """Yes or No; a reply that begins with one of them means it, unless it takes it back."""
    text = _NEITHER.sub("", without_thoughts(text))
    alone = {sentence.strip().lower() for sentence in re.split(r"[.!?,\n]+", text)} & {"yes", "no"}
    first = re.match(r"\W*(yes|no)\b", text, re.IGNORECASE)
    return first[1].capitalize() if first and len(alone) < 2 else _settle(text, _yes_no)


def parse_entailment(text: str) -> str | None:
    """Yes, No, or Cannot be determined, which may be said in other words; a reply that begins with one means it."""
    first = _OPENING.match(without_thoughts(text))
    found = _entailments(first[0]) if first else []
    if found and (UNDETERMINED in found) == (found[0] == UNDETERMINED):  # "No, it cannot be determined" means neither
        return found[0]
    return _settle(text, _entailments)


def parse_integer(text: str) -> str | None:
    """A whole number in digits: 3 for '3', 'three' and 'There are 3.', 0 for 'none'."""
    return _settle(text, _integers)


def parse_direction(text: str) -> str | None:
    """Left, Right, Above, Below, or a vertical and a horizontal one together, such as 'Below Right'."""
    return _settle(text, _directions)


def parse_colour(text: str) -> str | None:
    """A colour: 'red'."""
    return _settle(text, _colours)


def parse_shape(text: str) -> str | None:
    """The full name of a shape: 'small red square'."""
    return _settle(text, _shapes)


def _settle(text: str, find: Finder) -> str | None:
    text = without_thoughts(text)
    lines = [line for line in text.splitlines() if line.strip()]
    short = [find(part) for part in (*lines[:1], *lines[-1:]) if len(part.split()) <= 4]
    if alone := [found[0] for found in short if len(set(found)) == 1]:
        return _only(alone)
    announced = _ANNOUNCED.findall(text)
    for part in reversed(announced):
        if (answer := _only(find(part))) is not None:
            return answer
    return _only(find(text))


def _only(found: Iterable[str]) -> str | None:
    different = set(found)
    return different.pop() if len(different) == 1 else None


def _yes_no(text: str) -> list[str]:
    return [word.capitalize() for word in re.findall(r"\b(yes|no)\b", text, re.IGNORECASE)]


_UNDETERMINED_WORDS = (
    r"\b(?:(?:can ?not|can['’]t|could not|couldn['’]t|(?:impossible|not possible|no way|unable) to)(?: \w+){0,2}"
    r" (?:determined?|tell|told|say|said|know|known|infer|inferred|deduced?)|(?:not enough|insufficient) information"
    r"|not (?:determined|known)|undetermined|indeterminate|unknown)\b"
)
_OPENING = re.compile(rf"\W*(?:yes\b|no\b|(?:it |it is )?{_UNDETERMINED_WORDS})[^.!?\n]*", re.IGNORECASE)


def _entailments(text: str) -> list[str]:
    rest, count = re.subn(_UNDETERMINED_WORDS, "", text, flags=re.IGNORECASE)  # "no way to tell" is not a No
    return _yes_no(rest) + [UNDETERMINED] * count


_SMALL = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_TEENS = ("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_ONES = (*_SMALL, *_TEENS)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORDS = {word: number for number, word in enumerate(_ONES)} | {"none": 0, "no": 0}
_NUMBER = re.compile(
    rf"(?P<digits>-?\d[\d,]*(?:\.\d+)?)|\b(?P<tens>{'|'.join(_TENS)})(?:[- ](?P<ones>{'|'.join(_ONES[1:10])}))?\b"
    rf"|\b(?P<word>{'|'.join(_WORDS)})\b",
    re.IGNORECASE,
)


def _integers(text: str) -> list[str]:
    return [number for match in _NUMBER.finditer(text) if (number := _integer(match)) is not None]


def _integer(match: re.Match[str]) -> str | None:
    if match["digits"]:
        value = float(match["digits"].replace(",", ""))
        return str(int(value)) if value.is_integer() else None
    if match["tens"]:
        tens = 20 + 10 * _TENS.index(match["tens"].lower())
        return str(tens + (_ONES.index(match["ones"].lower()) if match["ones"] else 0))
    return str(_WORDS[match["word"].lower()])


_SIDES = {
    "Above": "above over top upper up upward north",
    "Below": "below under underneath beneath bottom lower down downward south",
    "Left": "left leftward west",
    "Right": "right rightward east",
}
_SIDE_OF = {word: side for side, words in _SIDES.items() for word in words.split()}
_COMPASS = re.compile(r"\b(north|south)(east|west)\b", re.IGNORECASE)


def _directions(text: str) -> list[str]:
    words = re.findall(r"[a-z]+", _COMPASS.sub(r"\1 \2", text).lower())
    found = {_SIDE_OF[word] for word in words if word in _SIDE_OF}
    vertical, horizontal = found & {"Above", "Below"}, found & {"Left", "Right"}
    if not found or len(vertical) > 1 or len(horizontal) > 1:
        return []  # nothing, or both sides of an axis
    return [" ".join([*vertical, *horizontal])]


_COLOUR = re.compile(rf"\b({'|'.join(LARGE.colours)})\b", re.IGNORECASE)


def _colours(text: str) -> list[str]:
    return [word.lower() for word in _COLOUR.findall(text)]


_SHAPE = re.compile(rf"\b({'|'.join(SIZES)})[ ,]+({'|'.join(LARGE.colours)})[ ,]+({'|'.join(FORMS)})\b", re.IGNORECASE)


def _shapes(text: str) -> list[str]:
    return [" ".join(parts).lower() for parts in _SHAPE.findall(text)]
