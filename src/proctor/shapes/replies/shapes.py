"""Shapes in a reply, by size, colour and form in any order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from proctor.shapes.canvas import FORMS, LARGE, SIZES
from proctor.shapes.replies.markup import ITEM
from proctor.shapes.replies.reader import CACHED, Kind, Mention, Mentions, definite

_SPELLED = {"big": "large", "little": "small", "tiny": "small"}
_ATTRIBUTES = {
    **{word: (0, word) for word in SIZES},
    **{word: (0, plain) for word, plain in _SPELLED.items()},
    **{colour: (1, colour) for colour in LARGE.colours},
    **{form: (2, form) for form in FORMS},
    "triangular": (2, "triangle"),
    "circular": (2, "circle"),
}
_ATTRIBUTE = re.compile(rf"(?<![a-z])({'|'.join(_ATTRIBUTES)})s?(?![a-z])", re.I)
_LABEL = re.compile(r"\b(?:sized?|colou?r(?:ed)?|form|shape|type|kind)\b", re.I)
_GLUE = re.compile(
    rf"(?:[\s,;:=/>'\"()*{ITEM}-]|\.\s+(?=$|it is|it's|{_LABEL.pattern})|'s\b|"
    rf"\b(?:the|one|and|in|of|is|a|an|its|it|that|which|with|shape's)\b|{_LABEL.pattern})*",
    re.I,
)
_SPACE = re.compile(r"[ -]*")
_NAME = re.compile(r"\b\w+~\w+~\w+\b")


Words = list[re.Match[str]]


def _name_shapes(text: str) -> str:
    """The text with every shape that has a size, a colour and a form called by them, in this order, as one word."""
    pieces, position = [], 0
    for words in _shapes(text):
        pieces += [text[position : words[0].start()], _name(words)]
        position = words[-1].end()
    return "".join([*pieces, text[position:]])


def _shapes(text: str) -> Iterator[Words]:
    """The words of each shape. Where a run has others as well, only those that commas part from the others."""
    for run in _runs(text, list(_ATTRIBUTE.finditer(text)), _GLUE):
        threes = [run[i : i + 3] for i in range(0, len(run), 3)]
        parts = threes if all(map(_name, threes)) else _runs(text, run, _SPACE)
        yield from filter(_name, parts)


def _runs(text: str, words: Words, glue: re.Pattern[str]) -> Iterator[Words]:
    """The words in groups, where only glue is between those of a group."""
    run: Words = []
    for word in words:
        between = text[run[-1].end() : word.start()] if run else ""
        if len(between) > 40 or not glue.fullmatch(between) or ("\n" in between and not _LABEL.search(between)):
            yield run
            run = []
        run.append(word)
    if run:
        yield run


def _name(words: Words) -> str:
    """Size, colour and form; nothing where it is not one of each."""
    kinds = dict(_ATTRIBUTES[word[1].lower()] for word in words)
    return "~".join(kinds[sort] for sort in range(3)) if len(words) == len(kinds) == 3 else ""


# Before a shape with which another one is compared.
_REFERENCE = re.compile(r"\b(?:than|compared (?:to|with)|relative to|seen from)\s+(?:the |a )?$", re.I)


@lru_cache(maxsize=CACHED)
def _find_shape(passage: str) -> Mentions:
    found = definite(passage, (Mention(m.start(), m.end(), m[0].replace("~", " ")) for m in _NAME.finditer(passage)))
    return () if all(_is_reference(passage, mention) for mention in found) else found


_PREPOSITION = re.compile(
    r"\b(?:below|above|under|over|beside|behind|after|before|near|of|next to|from|to|with)\s+(?:the |a )?$", re.I
)


def _follows_preposition(passage: str, mention: Mention) -> bool:
    return _PREPOSITION.search(passage[max(0, mention.start - 30) : mention.start]) is not None


def _is_reference(passage: str, mention: Mention) -> bool:
    return _REFERENCE.search(passage[max(0, mention.start - 30) : mention.start]) is not None


_BEFORE_PREDICATE = re.compile(
    r"(?:\b(?:is|be|are)|'s|:|=|->)\s*(?:(?:the|a|an|now|then|therefore|thus|indeed)\s+)*$", re.I
)
_SUBJECT = re.compile(
    r"\s*(?:,[^,]{1,60},)?\s*(?:,? which\s+)?(?:is|was|comes|has|would be|must be|makes|becomes|wins|"
    r"ends)\b(?!\s+(?:\w+ly\s+|just\s+)?(?:at\b|located\b|positioned\b|to the (?:left|right)|"
    r"above|below|left of|right of|higher|lower|"
    r"further|farther|closer|nearer|next to|before|after)\b)",
    re.I,
)


def _choose_shape(passage: str, mentions: Mentions) -> str | None:
    """What "the leftmost is …" ends with, or what "… is the leftmost" begins with."""
    listed = {
        a.value
        for a, b in pairwise(mentions)
        if a.value != b.value
        and re.fullmatch(r"\s*(?:,|/|,?\s*(?:and|or|nor))\s*(?:the |a )?", passage[a.end : b.start])
    }
    if " or " in passage:
        return None
    if re.search(r"\bso it(?:'s| is)\b", passage) and not _is_reference(passage, mentions[-1]):
        return mentions[-1].value
    predicates = [m for m in mentions if _BEFORE_PREDICATE.search(passage[max(0, m.start - 40) : m.start])]
    if predicates:
        rest = passage[predicates[0].end : predicates[-1].start]
        named = {m.value for m in predicates[: 1 if re.search(r"\b(?:next|others?|remaining)\b", rest) else None]}
        return named.pop() if len(named) == 1 and not named & listed else None
    subjects = {
        m.value for m in mentions if _SUBJECT.match(passage, m.end) and not _follows_preposition(passage, m)
    } - listed
    return subjects.pop() if len(subjects) == 1 else None


SHAPES = Kind(_find_shape, _choose_shape, prepare=_name_shapes)
