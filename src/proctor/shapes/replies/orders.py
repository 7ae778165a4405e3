"""Shapes that a reply lists in order: "From left to right: …", "Sorted by distance: … (14.0), … (27.1)"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from proctor.shapes.replies.markup import ITEM

NameIn = Callable[[str], list[tuple[int, int, str]]]  # start, end and name of each shape in a sentence


class Order(NamedTuple):
    names: list[str]
    rising: bool  # from left to right, from bottom to top, from near to far
    axis: str  # x, y, d for distances; empty where the reply does not say
    is_line: bool = False  # a line of all shapes: what is last in it is first from the other end


_SEPARATOR = re.compile(
    r"\s*(?:\([^()]*\)|[:=]\s*-?\d+(?:\.\d+)?|\b(?:at|with)\s+(?:[xy]\s*)?\(\)|\(?[xy] \(\)\)?|"
    r"-?\d+(?:\.\d+)?)?\s*(?:[,;<>()]|->|\bthen\b|"
    r"\b(?:and|next|finally|last)\b|-?\d+(?:\.\d+)?\b[.):]?|\d(?:st|nd|rd|th)\b|:|\s|\bthe\b)*",
    re.I,
)
_VALUE = re.compile(
    r"\s*(?:\(\s*(?:[xyd]|distance|dist\.?)?\s*[=:≈~]?\s*|"
    r"[:=≈~;]\s*)(-?\d+(?:\.\d+)?)\b(?!\s*/)",
    re.I,
)
_VALUE_BEFORE = re.compile(r"(-?\d+(?:\.\d+)?)\s*[(:=]\s*(?:the\s+)?$")

# Where the list begins, by its words: axis, and whether it rises.
_STARTS: tuple[tuple[re.Pattern[str], str, bool], ...] = tuple(
    (re.compile(pattern, re.I), axis, rising)
    for pattern, axis, rising in (
        (
            r"\bleft[ -]to[ -]right\b|\bleftmost (?:first|to)\b|"
            r"(?<!to )\bleftmost(?: is)?:?\s*(?:the )?$|\bfrom (?:the )?left(?:most)?\b",
            "x",
            True,
        ),
        (
            r"\bright[ -]to[ -]left\b|\brightmost (?:first|to)\b|"
            r"(?<!to )\brightmost(?: is)?:?\s*(?:the )?$|\bfrom (?:the )?right(?:most)?\b",
            "x",
            False,
        ),
        (
            r"\bbottom[ -]to[ -]top\b|\blowest (?:first|to)\b|"
            r"(?<!to )\blowest(?: is)?:?\s*(?:the )?$|^\W*bottom:\s*(?:the )?$|\bfrom (?:the )?(?:bottom|lowest)\b|"
            r"\bupwards\b|\bbottom[ -]up\b",
            "y",
            True,
        ),
        (
            r"\btop[ -]to[ -]bottom\b|\bhighest (?:first|to)\b|"
            r"(?<!to )\bhighest(?: is)?:?\s*(?:the )?$|^\W*top:\s*(?:the )?$|\bfrom (?:the )?(?:top|highest)\b|"
            r"\bdownwards\b|\btop[ -]down\b",
            "y",
            False,
        ),
        (
            r"\b(?:nearest|closest|shortest|smallest) (?:first|to)\b|(?<!to )\b(?:nearest|"
            r"closest)(?: is)?:?\s*(?:the )?$|\bfrom (?:the )?(?:nearest|closest|shortest)\b",
            "d",
            True,
        ),
        (
            r"\b(?:farthest|furthest|longest|largest) (?:first|to)\b|(?<!to )\b(?:farthest|"
            r"furthest)(?: is)?:?\s*(?:the )?$|\bfrom (?:the )?(?:farthest|furthest|longest)\b",
            "d",
            False,
        ),
        (r"\b(?:ascending|increasing)\b|\bsmallest to largest\b", "", True),
        (r"\b(?:descending|decreasing)\b|\blargest to smallest\b", "", False),
    )
)


_LINE = re.compile(r"\b(?:line|order|arrangement|sequence|row)\b", re.I)


def _said(text: str) -> tuple[str, bool] | None:
    """The axis and the direction that a heading names, None where it names none or several."""
    found = {(axis, rising) for pattern, axis, rising in _STARTS if pattern.search(text)}
    return found.pop() if len(found) == 1 else None


def orders(sentences: Sequence[str], names_in: NameIn) -> Iterator[Order]:
    """Every list of shapes in the reply that is in an order, the last one first."""
    for i in range(len(sentences) - 1, -1, -1):
        found = names_in(sentences[i])
        if len(found) > 1 and (order := _in_line(sentences[i], found, sentences[i - 1] if i else "")):
            yield order
        elif sentences[i].startswith(ITEM) and (i + 1 == len(sentences) or not sentences[i + 1].startswith(ITEM)):
            first = i
            while first and sentences[first - 1].startswith(ITEM):
                first -= 1
            if order := _in_items(sentences[first : i + 1], names_in, sentences[first - 1] if first else ""):
                yield order


def _in_line(sentence: str, found: list[tuple[int, int, str]], heading: str) -> Order | None:
    gaps = [sentence[a[1] : b[0]] for a, b in pairwise(found)]
    if not all(len(gap) < 40 and _SEPARATOR.fullmatch(gap) for gap in gaps):
        return None
    names = [name for _, _, name in found]
    if len(set(names)) < len(names):
        return None
    before = sentence[: found[0][0]]
    said = _said(before) or _said(sentence[found[-1][1] :]) or (_said(heading) if heading.endswith(":") else None)
    signs = {sign for gap in gaps for sign in re.findall(r"[<>](?!\w)", gap.replace("->", " "))}
    if said is None and signs in ({"<"}, {">"}):
        said = "", signs == {"<"}
    is_line = _LINE.search(before) is not None or _LINE.search(heading) is not None
    order = _ordered(names, said, [_value(sentence, start, end) for start, end, _ in found])
    if order is None and is_line and len(names) > 2:
        return Order(names, False, "", is_line)
    return order and order._replace(is_line=is_line)


def _in_items(items: Sequence[str], names_in: NameIn, heading: str) -> Order | None:
    found = [(item, names_in(item)) for item in items]
    if len(items) < 2 or any(len(names) != 1 for _, names in found):
        return None
    names = [names[0][2] for _, names in found]
    values = [_value(item, *places[0][:2]) for item, places in found]
    order = _ordered(names, _said(heading), values) if len(set(names)) == len(names) else None
    return order and order._replace(is_line=_LINE.search(heading) is not None)


def _value(sentence: str, start: int, end: int) -> float | None:
    after, before = _VALUE.match(sentence, end), _VALUE_BEFORE.search(sentence[max(0, start - 20) : start])
    found = before or after
    return float(found[1]) if found else None


def _ordered(names: list[str], said: tuple[str, bool] | None, values: list[float | None]) -> Order | None:
    known = [value for value in values if value is not None]
    if len(known) == len(names):
        rises, falls = (
            all(a < b for a, b in pairs) for pairs in (list(pairwise(known)), [(b, a) for a, b in pairwise(known)])
        )
        if rises == falls or (said is None and len(names) < 3) or (said is not None and said[1] != rises):
            return None
        return Order(names, rises, said[0] if said else "")
    return Order(names, said[1], said[0]) if said else None
