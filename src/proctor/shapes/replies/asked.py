"""What a question asks about: with it in hand, a person reads a reply that could answer several questions.

"There are 3 small squares and 2 large ones" tells both numbers; "the circle is left of the square" says where the
square is, too; "there is a large circle" does not say whether there is a small one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise

from proctor.shapes.canvas import FORMS, LARGE, SIZES
from proctor.shapes.replies.claims import yes_no_about
from proctor.shapes.replies.colours import COLOURS
from proctor.shapes.replies.directions import DIRECTIONS, OPPOSITES, invert
from proctor.shapes.replies.numbers import NUMBERS, find_numbers, without_other_numbers
from proctor.shapes.replies.polar import ENTAILMENT, YES_NO
from proctor.shapes.replies.reader import CACHED, Kind, Mention, Mentions, read_reply
from proctor.shapes.replies.shapes import SHAPES
from proctor.shapes.replies.statements import PHRASE, SORTS, Attributes, attributes, contradict

# -- numbers ------------------------------------------------------------------------------------------------------

_LABEL = re.compile(r"([^,.;:()]*)(?:[:=]|\b(?:is|are))\s*(?:(?:exactly|only|just)\s+)?$", re.I)
_COUNTED = re.compile(r"[^,.;:()\d]*")


_SHAPES: Attributes = frozenset(["shape"])  # of any form
_THEM: Attributes = frozenset(["them"])  # of what the sentence before was about
_OF_THEM = re.compile(r"\s*of (?:them|these|those|which)\b", re.I)


def _counted(passage: str, mentions: Mentions) -> list[Attributes]:
    """What each number counts; nothing where the passage does not say."""
    counted: list[Attributes] = []
    form: Attributes = frozenset()
    for mention, end in zip(mentions, [*(m.start for m in mentions[1:]), len(passage)], strict=False):
        after = _COUNTED.match(passage[mention.end : end])
        said = after[0].partition(" and ")[0] if after else ""
        label = _LABEL.search(passage[max(0, mention.start - 60) : mention.start])
        if label and not attributes(said) and attributes(label[1]):
            said = label[1]
        things = attributes(said)
        if things and _OF_THEM.match(said):  # of those that were counted before
            things |= counted[-1] - SORTS[2] - _SHAPES if counted else _THEM
        if not things & SORTS[2]:
            things |= _SHAPES if re.search(r"\bshapes?\b", said, re.I) else form if things else things
        form = things & SORTS[2] or form
        counted.append(things)
    return counted


def _is_asked(things: Attributes, asked: Attributes) -> bool:
    """Are these what was asked for, if only by the attributes that tell them from others, as in "3 small ones"?"""
    if things >= _THEM:
        return things - _THEM - _SHAPES <= asked
    return bool(things) and things == asked - SORTS[2] - _SHAPES


_ITEMISED = re.compile(rf"\(([^()]*\d[^()]*\b(?:{'|'.join((*SIZES, *LARGE.colours, *FORMS))})s?\b[^()]*)\)", re.I)


def numbers_about(question: str) -> list[Kind]:
    """First only numbers of what was asked for, and those that say nothing; then all but those of something else."""
    asked = attributes(question)
    if not asked:
        return [NUMBERS]
    asked = asked if asked & SORTS[2] else asked | _SHAPES

    @lru_cache(maxsize=CACHED)
    def find(passage: str) -> Mentions:
        mentions = find_numbers(passage)
        counted = list(zip(mentions, _counted(passage, mentions), strict=True))
        for fits in (asked.__eq__, lambda things: _is_asked(things, asked)):
            if any(fits(things) for _, things in counted):
                return tuple(m for m, things in counted if not things or fits(things))
        mentions = NUMBERS.find(passage)
        return tuple(m for m, things in zip(mentions, _counted(passage, mentions), strict=True) if not things)

    @lru_cache(maxsize=CACHED)
    def find_others(passage: str) -> Mentions:
        mentions = NUMBERS.find(passage)
        return tuple(
            m for m, things in zip(mentions, _counted(passage, mentions), strict=True) if not contradict(things, asked)
        )

    def prepare(text: str) -> str:
        return _ITEMISED.sub(r", \1", without_other_numbers(text))

    return [replace(NUMBERS, find=find, prepare=prepare), replace(NUMBERS, find=find_others, prepare=prepare)]


# -- where one shape is, seen from another ------------------------------------------------------------------------

_TWO = re.compile(
    r"\b(?:is|where is) the (?P<a>\w+ \w+ \w+) (?P<relation>relative to|to the left or to the right of|above or below|"
    r"to the left of|to the right of|above|below) the (?P<b>\w+ \w+ \w+)\?",
    re.I,
)
_CLAUSE = re.compile(r"(?:[^.,;:\n]|,(?= (?:to|on|above|below|left|right|directly|just|slightly|further)\b))+")
_AT_PLACE = re.compile(r",? (?:at )?\(\),?")
_VERB = re.compile(r"\s*(?:is|are|lies|sits|stands|comes|we find|there is)\s+(?:the |a )?", re.I)


def _turned(text: str, a: Attributes, b: Attributes) -> str:
    """The text with "B is left of A" read as "B is right of A": what it says of A."""
    return _CLAUSE.sub(lambda clause: _turn_clause(clause[0], a, b), _AT_PLACE.sub(" ", text))


def _turn_clause(clause: str, a: Attributes, b: Attributes) -> str:
    for first, second in pairwise(PHRASE.finditer(clause)):
        if _means(first[0], b, a) and _means(second[0], a, b):
            middle = clause[first.end() : second.start()]
            return clause[: first.end()] + invert(middle) + clause[second.start() :]
        inverted = _means(first[0], a, b) and _means(second[0], b, a)  # "left of A is B"
        if inverted and _VERB.fullmatch(clause[first.end() : second.start()]):
            return invert(clause[: first.start()]) + clause[first.start() :]
    return clause


def _means(phrase: str, shape: Attributes, other: Attributes) -> bool:
    return attributes(phrase) <= shape and not attributes(phrase) <= other


def directions_about(question: str) -> Kind:
    if not (found := _TWO.search(question)):
        return DIRECTIONS
    a, b = attributes(found["a"]), attributes(found["b"])
    return replace(DIRECTIONS, prepare=lambda text: _turned(DIRECTIONS.prepare(text), a, b))


def _state_relation(asked: str, a: Attributes, b: Attributes, sentence: str) -> str | None:
    """What a sentence about the two says: the relation asked about, or its opposite."""
    for first, second in pairwise(PHRASE.finditer(sentence)):
        middle = sentence[first.end() : second.start()]
        if _means(first[0], b, a) and _means(second[0], a, b):
            middle = invert(middle)
        elif not (_means(first[0], a, b) and _means(second[0], b, a)):
            continue
        denied = re.search(r"\bnot\b|n't\b", middle, re.I) is not None
        values = {mention.value for mention in DIRECTIONS.find(re.sub(r"\bnot\b|n't\b", "", middle))}
        if values == {asked}:
            return "No" if denied else "Yes"
        if values == {OPPOSITES[asked]} and not denied:
            return "No"
    return None


def entailment_about(question: str) -> Kind:
    if not (found := _TWO.search(question)) or " or " in found["relation"]:
        return ENTAILMENT
    asked = DIRECTIONS.find(found["relation"])[0].value
    relation = partial(_state_relation, asked, attributes(found["a"]), attributes(found["b"]))
    return replace(ENTAILMENT, state=lambda sentence: ENTAILMENT.state(sentence) or relation(sentence))


# -- shapes -------------------------------------------------------------------------------------------------------

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
    "2nd": "second",
    "3rd": "third",
    "4th": "fourth",
    "5th": "fifth",
    "6th": "sixth",
    "first": "",
    "1st": "",
}
_RANK = re.compile(
    r"\b(?:(?P<number>first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|1st|2nd|3rd|\d+th)[ -])?"
    r"(?:(?P<end>nearest|closest|farthest|furthest|highest|lowest|leftmost|rightmost|topmost|uppermost|bottommost)|"
    r"from (?:the )?(?P<side>left|right|top|bottom))\b",
    re.I,
)
_BEFORE_SHAPE = re.compile(
    r"(?:\s+(?:shape|one))?(?:\s+(?:to|from) the \S+)?\s*(?:\(\s*\)\s*)?(?:(?:is|was|must be|"
    r"would be)(?:\s+(?:now|then|"
    r"therefore))?|[:=(]|->)\s*(?:the |a )?",
    re.I,
)
_AFTER_SHAPE = re.compile(
    r"\s*(?:\([^()]*\)\s*)?,?\s*(?:is|was|as|being)\s+(?:(?:now|indeed|clearly|only)\s+)?(?:the )?", re.I
)

Rank = tuple[str, str]


def _rank(found: re.Match[str]) -> Rank:
    number, end = (found["number"] or "").lower(), (found["end"] or found["side"]).lower()
    return _SAME.get(number, number), _SAME.get(end, end)


def _rank_of(passage: str, mention: Mention) -> Rank | None:
    """The rank that the passage gives to a shape: "the second lowest is the …", "the … is the second lowest"."""
    after = _AFTER_SHAPE.match(passage, mention.end)
    if after and (found := _RANK.match(passage, after.end())):
        return _rank(found)
    before = passage[max(0, mention.start - 80) : mention.start]
    *_, last = (None, *_RANK.finditer(before))
    return _rank(last) if last and _BEFORE_SHAPE.fullmatch(before, last.end()) else None


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
        return tuple(m for m in others if _rank_of(passage, m) in (None, rank)) if rank else others

    return [replace(SHAPES, find=find), SHAPES]


ABOUT: dict[Kind, Callable[[str], list[Kind]]] = {
    NUMBERS: numbers_about,
    YES_NO: lambda question: [yes_no_about(question)],
    ENTAILMENT: lambda question: [entailment_about(question)],
    DIRECTIONS: lambda question: [directions_about(question)],
    SHAPES: shapes_about,
    COLOURS: lambda question: [COLOURS],
}


@lru_cache(maxsize=64)
def kinds_about(kind: Kind, question: str) -> list[Kind]:
    """How to look for answers of this kind, with the question in hand: in turn, until one is found."""
    return ABOUT[kind](question)


def read_about(text: str, kind: Kind, question: str) -> str | None:
    answers = (read_reply(text, about) for about in kinds_about(kind, question))
    return next((answer for answer in answers if answer is not None), None)
