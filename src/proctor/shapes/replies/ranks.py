"""Which shape a reply means that names several: by rank, by an order, by the directions in which they are seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from proctor.shapes.places import ORDINALS
from proctor.shapes.replies.directions import DIRECTIONS
from proctor.shapes.replies.orders import orders
from proctor.shapes.replies.reader import CACHED, Kind, Mention, Mentions
from proctor.shapes.replies.shapes import SHAPES
from proctor.shapes.replies.statements import full_names

_REFERENCE = re.compile(r"\b(?:nearest to|farthest from|seen from) the (\w+ \w+ \w+)\b", re.I)
_SAME = {
    "closest": "nearest",
    "furthest": "farthest",
    "left": "leftmost",
    "right": "rightmost",
    "top": "highest",
    "bottom": "lowest",
    "topmost": "highest",
    "uppermost": "highest",
    "bottommost": "lowest",
}
_NUMBERS = {word: i for i, word in enumerate(ORDINALS)}
_NUMBER = rf"(?:{'|'.join(sorted(ORDINALS, key=len, reverse=True))}|\d+(?:st|nd|rd|th))"
_END = "nearest|closest|farthest|furthest|highest|lowest|leftmost|rightmost|topmost|uppermost|bottommost"
_RANK = re.compile(
    rf"\b(?:(?P<number>{_NUMBER})[ -])?(?:(?:place|position|one|shape) )?(?:counting )?"
    rf"(?:(?P<end>{_END})|from (?:the )?(?P<side>left|right|top|bottom))\b|"
    rf"(?:^\W*|[;,]\s*)(?:position|place|rank|no\.?|number)\s*#?(?P<position>\d+)\b|"
    rf"^\W*(?P<only>top|bottom)(?=:)|"
    rf"\b(?P<alone>{_NUMBER})(?: (?:place|position|one))?(?=\s*(?:$|[,.;:(]|is\b|and\b|"
    rf"the (?:small|large)|(?:small|large)))",
    re.I,
)
_BEFORE_SHAPE = re.compile(
    r"(?:\s+(?:shape|one))?(?:\s+(?:to|from) the \S+)?\s*(?:\(\s*\)\s*)?(?:(?:is|was|must be|"
    r"comes|stands|"
    r"would be)(?:\s+(?:now|then|"
    r"therefore))?|[:=(]|->)\s*(?:the |a )?|\s+(?:the )?",
    re.I,
)
_AFTER_SHAPE = re.compile(
    r"\s*\(\s*(?:the )?|\s*(?:\([^()]*\)\s*)?,?\s*(?:(?:is|was|as|being|stands?|sits?|comes?|ranks?|lies|ends up|"
    r"finishes|in|at)\s+)+"
    r"(?:(?:now|indeed|clearly|only|in)\s+)*(?:the )?",
    re.I,
)

Rank = tuple[int, str]  # the number, from 0, and the end from which is counted; no end where the reply gives none


def _rank(found: re.Match[str]) -> Rank:
    number = (found["number"] or found["alone"] or "").lower()
    end = (found["end"] or found["side"] or found["only"] or "").lower()
    if found["position"]:
        return int(found["position"]) - 1, ""
    position = int(number[:-2]) - 1 if number[:1].isdigit() else _NUMBERS.get(number, 0)
    return position, _SAME.get(end, end)


def _rank_of(passage: str, mention: Mention) -> Rank | None:
    """The rank that the passage gives to a shape: "the second lowest is the …", "the … is the second lowest"."""
    after = _AFTER_SHAPE.match(passage, mention.end)
    if after and (found := _RANK.match(passage, after.end())):
        return _rank(found)
    before = passage[max(0, mention.start - 80) : mention.start]
    *_, last = (None, *_RANK.finditer(before + passage[mention.start : mention.start + 6]))
    return _rank(last) if last and _BEFORE_SHAPE.fullmatch(before, last.end()) else None


def _may_be(said: Rank | None, asked: Rank) -> bool:
    """Whether a shape of this rank may be the one asked for: a number alone counts from the same end."""
    return said is None or said == asked or (not said[1] and said[0] == asked[0])


def shapes_about(question: str) -> list[Kind]:
    """Without the shape from which is measured, and without those that are said to have another rank."""
    reference, asked = _REFERENCE.search(question), _RANK.search(question)
    if not reference and not asked:
        return [SHAPES]
    measured = reference[1].lower() if reference else ""
    rank = _rank(asked) if asked else None

    @lru_cache(maxsize=CACHED)
    def find(passage: str) -> Mentions:
        others = tuple(mention for mention in SHAPES.find(passage) if mention.value != measured)
        if rank is None:
            return _not_seen(passage, others)
        beyond = _NOT_LEVEL if rank[0] else _BEYOND.get(rank[1])
        after = _AFTER_OTHERS.match(passage)
        first = after.end() if after else 0
        return tuple(
            m
            for m in others
            if _may_be(_rank_of(passage, m), rank)
            and m.start >= first
            and not (beyond and beyond.match(passage, m.end))
            and not _THAN.search(passage, max(0, m.start - 12), m.start)
        )

    whole: Whole = partial(_ranked, measured, rank) if rank else partial(_odd_one, question)
    return [replace(SHAPES, find=find, whole=whole), SHAPES]


_IS_MORE = (
    r"\s*(?:\(\s*[^()]*\)\s*)?,?\s*(?:is|lies|sits|stands)(?: (?:slightly|only|just|a (?:bit|"
    r"little)|much|even|still))*"
)
_BEYOND = {  # what is said of a shape that is less far towards the end asked for
    end: re.compile(rf"{_IS_MORE} (?:{words})\b", re.I)
    for end, words in {
        "lowest": "higher",
        "highest": "lower",
        "leftmost": "(?:further|farther|more) (?:to the )?right",
        "rightmost": "(?:further|farther|more) (?:to the )?left",
        "nearest": "farther|further",
        "farthest": "nearer|closer",
    }.items()
}
_NOT_LEVEL = re.compile(
    rf"{_IS_MORE} (?:higher|lower|(?:further|farther|more) (?:to the )?(?:left|right)|nearer|closer|farther|further)\b",
    re.I,
)
_AFTER_OTHERS = re.compile(r"\W*(?:right )?after [^.;:]*\b(?:comes?|follows|we (?:have|get|find))\b", re.I)
_THAN = re.compile(r"\bthan (?:the |a )?$", re.I)
_DIRECTION_AFTER = re.compile(
    r"\s*(?:\([^()]*\)\s*)?(?:is|are|lies?|sits?|->|:|;|=|both|in|at|to the|the|direction|\s|"
    r",)*\s*(?:above|below|upper|lower|top|bottom|"
    r"north|south)[- ]?(?:left|right|east|west)?\b",
    re.I,
)


def _is_seen(passage: str, mention: Mention) -> bool:
    """Is it only said in which direction it is, and not that it alone is there?"""
    before = passage[max(0, mention.start - 12) : mention.start]
    if re.search(r"\bonly (?:the )?$", before, re.I) or re.search(r"\bothers?\b|\btwo\b", passage[mention.end :], re.I):
        return False
    return _DIRECTION_AFTER.match(passage, mention.end) is not None


def _not_seen(passage: str, mentions: Mentions) -> Mentions:
    """Without those of which only the direction is said: "A and B are above left, C is above right"."""
    kept: list[Mention] = []
    after: Mention | None = None  # the one after it, where that is left out
    for mention in reversed(mentions):
        joined = after and re.fullmatch(r"\s*,?\s*(?:and\s+)?(?:the\s+)?", passage[mention.end : after.start])
        if joined or _is_seen(passage, mention):
            after = mention
        else:
            kept.append(mention)
            after = None
    return tuple(reversed(kept))


Whole = Callable[[Sequence[str]], str | None]
_AXES_OF_ENDS = {
    "leftmost": ("x", True),
    "rightmost": ("x", False),
    "lowest": ("y", True),
    "highest": ("y", False),
    "nearest": ("d", True),
    "farthest": ("d", False),
}


def _ranked(measured: str, rank: Rank, sentences: Sequence[str]) -> str | None:
    """The shape of the rank asked for in a list that begins at the end from which is counted."""
    number, end = rank
    axis, rising = _AXES_OF_ENDS[end]
    for order in orders(sentences, full_names):
        names = [name for name in order.names if name != measured]
        if order.axis in ("", axis) and order.rising == rising and number < len(names):
            return names[number]
    return None


_THREE = re.compile(r"\bthe (\w+ \w+ \w+), the (\w+ \w+ \w+) and the (\w+ \w+ \w+)\. Which one is the odd one out")
_ALIKE = re.compile(r"\b(?:same (?:direction|quadrant|side|area)|both|share)\b", re.I)


def _odd_one(question: str, sentences: Sequence[str]) -> str | None:
    """Of three shapes, the one that is not said to be in the direction of the two others."""
    three = _THREE.search(question)
    if not three:
        return None
    directions: dict[str, set[str]] = {name: set() for name in three.groups()}
    odd: set[str] = set()
    for sentence in sentences:
        if re.search(r"\b(?:or|not|if|whether)\b|n't\b", sentence, re.I):
            continue
        found = [(start, end, name) for start, end, name in full_names(sentence) if name in directions]
        names = {name for _, _, name in found}
        if len(names) == 2 and _ALIKE.search(sentence):
            odd |= set(directions) - names
        elif len(names) == len(found):
            stop, shared = len(sentence), set[str]()
            for start, end, name in reversed(found):
                between = sentence[end:stop]
                if not re.fullmatch(r"\s*,?\s*(?:and|,)?\s*(?:the )?", between):
                    shared = {mention.value for mention in DIRECTIONS.find(between)}
                directions[name] |= shared
                stop = start
    if len(odd) == 1:
        return odd.pop()
    if odd or any(len(values) != 1 for values in directions.values()):
        return None
    seen = [next(iter(values)) for values in directions.values()]
    unique = [name for name, value in zip(directions, seen, strict=True) if seen.count(value) == 1]
    return unique[0] if len(unique) == 1 else None
