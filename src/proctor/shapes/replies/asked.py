"""What a question asks about: with it in hand, a person reads a reply that could answer several questions.

"There are 3 small squares and 2 large ones" tells both numbers; "the circle is left of the square" says where the
square is, too; "there is a large circle" does not say whether there is a small one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise

from proctor.shapes.canvas import FORMS, LARGE, SIZES
from proctor.shapes.replies.colours import COLOURS, without_other_places
from proctor.shapes.replies.cues import UNFINISHED
from proctor.shapes.replies.directions import DIRECTIONS, OPPOSITES, WORD, invert
from proctor.shapes.replies.numbers import NUMBERS, find_numbers, without_other_numbers
from proctor.shapes.replies.orders import orders
from proctor.shapes.replies.polar import ENTAILMENT, YES_NO
from proctor.shapes.replies.ranks import shapes_about
from proctor.shapes.replies.reader import CACHED, Kind, Mention, Mentions, read_reply
from proctor.shapes.replies.shapes import SHAPES
from proctor.shapes.replies.statements import (
    PHRASE,
    SORTS,
    Attributes,
    attributes,
    contradict,
    full_name,
    full_names,
    is_number,
    named,
    says_exists,
)
from proctor.shapes.replies.yes_no import say_certainly, yes_no_about

# -- numbers ------------------------------------------------------------------------------------------------------

_LABEL = re.compile(r"([^,.;:()]*)(?:[:=;]|\b(?:is|are))\s*(?:(?:exactly|only|just)\s+)?$", re.I)
_COUNTED = re.compile(r"[^,.;:()\d]*")


_SHAPES: Attributes = frozenset(["shape"])  # of any form
_THEM: Attributes = frozenset(["them"])  # of what the sentence before was about
_OF_THEM = re.compile(r"\s*of (?:them|these|those|which)\b", re.I)
_ARE = re.compile(r"(?: shapes?)? (?:is|are)\b", re.I)
_THAT_IS = re.compile(r"\b(?:that|which) (?:is|are)\b", re.I)
_HEADED = re.compile(r"\W*([\w ]{3,40}):[^=:]*(?:=|->)\s*$")
_SAID = re.compile(r"\b(?:is|are)\b.*[:=;]", re.I)  # a sentence of its own, not the name of what is counted


def _counted(passage: str, mentions: Mentions) -> list[Attributes]:
    """What each number counts; nothing where the passage does not say."""
    counted: list[Attributes] = []
    form: Attributes = frozenset()
    whole: Attributes = frozenset()  # of which a number that follows may count a part: "4 squares, only 2 are red"
    for mention, end in zip(mentions, [*(m.start for m in mentions[1:]), len(passage)], strict=False):
        after = _COUNTED.match(passage[mention.end : end])
        said = after[0].partition(" and ")[0] if after else ""
        is_part = _ARE.match(said) is not None
        if after and (is_part or _THAT_IS.search(said)):
            said = after[0]
        label = _LABEL.search(passage[max(0, mention.start - 60) : mention.start])
        headed = _HEADED.match(passage[: mention.start])  # "Red: circle, triangle = 2"
        if headed and not attributes(said):
            said = headed[1]
        elif label and not attributes(said) and attributes(label[1]) and not _SAID.search(label[0]):
            said = label[1]
        things = attributes(said)
        if things and _OF_THEM.match(said):  # of those that were counted before
            things |= counted[-1] - SORTS[2] - _SHAPES if counted else _THEM
        elif is_part and things:
            things |= whole - _SHAPES
        else:
            whole = things
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


_THERE = re.compile(r"\b(?:there|has|have|i|we|see|shows?|contains?)\b", re.I)


def _may_be_asked(passage: str, number: Mention, things: Attributes, asked: Attributes) -> bool:
    """Whether a number of shapes is the answer although it is called by the form alone: "5 triangles".

    That there are five triangles does not say how many small ones there are.
    """
    own = things - _SHAPES
    if own >= asked - _SHAPES:
        return True
    is_form = own <= SORTS[2] and own <= attributes(_after(passage, number.end))
    return own < asked and is_form and not _THERE.search(passage, 0, number.start)


_NOUN = re.compile(r"\W*\w+")


def _after(passage: str, end: int) -> str:
    noun = _NOUN.match(passage, end)
    return noun[0] if noun else ""


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
        counted = zip(mentions, _counted(passage, mentions), strict=True)
        return tuple(m for m, things in counted if not things or _may_be_asked(passage, m, things, asked))

    def prepare(text: str) -> str:
        return _ITEMISED.sub(r", \1", without_other_numbers(_with_wholes_that_fit(asked, text)))

    whole = partial(_count_named, asked)
    return [
        replace(NUMBERS, find=find, prepare=prepare, whole=whole),
        replace(NUMBERS, find=find_others, prepare=prepare, whole=whole),
    ]


_PAIR = re.compile(
    r"\b(?:an? (?:couple|pair|duo)|both) of (?:them\b|(?:\w+ ){0,3}(?:shapes?|squares?|circles?|"
    r"triangles?)\b)",
    re.I,
)
_ALL_FIT = re.compile(
    r"\b(?P<all>all) (?P<n>\d+)(?P<of>(?: of the)?(?: \w+){0,3}) (?P<are>are (?P<what>[^.;,]{3,40}))", re.I
)
_ONLY_ONE = re.compile(r"^[^\w\n]*(?:there(?:'s| is) )?(?:only|just)\b|\bthe only\b|\band no others?\b", re.I | re.M)
_IS_ONE = re.compile(r"\W*there(?:'s| is) an? (?!\w+ (?:of|number))[\w ()]+\W*$", re.I)
_CUT_OFF = re.compile(rf"\b(?:{'|'.join((*SIZES, *LARGE.colours))})\s*$", re.I)  # before the form of a shape
_REST = re.compile(r"\b(?:others?|rest|remaining)\b", re.I)
_OPEN = re.compile(
    r"\b(?:not|no(?! others?\b)|or|if|whether|could|might|may|maybe|example|such as|let me|let's|"
    r"need)\b|n't\b|\.\.\.$",
    re.I,
)


def _with_wholes_that_fit(asked: Attributes, text: str) -> str:
    """ "All 7 shapes are red" counts red shapes; in "all 7 shapes", the number says nothing of them."""

    def reword(found: re.Match[str]) -> str:
        fits = attributes(found["what"]) | attributes(found["of"]) >= asked - _SHAPES
        return f"{found['n']}{found['of'].replace(' of the', '')} {found['are']}" if fits else found[0]

    return _ALL_FIT.sub(reword, text)


def _count_named(asked: Attributes, sentences: Sequence[str]) -> str | None:
    """How many shapes a reply names, where it gives no number and all that it names are of the sort asked for."""
    text = "\n".join(sentences)
    if {says_exists(asked - _SHAPES, sentence) for sentence in sentences} - {None} == {"No"}:
        return "0"
    if _PAIR.search(text) and not _OPEN.search(text):
        return "2"
    asked -= _SHAPES
    phrases = [[phrase.things for phrase in named(sentence) if phrase.things] for sentence in sentences]
    if phrases and len(phrases[-1]) > 1 and phrases[-1][0] == asked:  # the last sentence lists them
        phrases = phrases[-1:]
    shown = [things for sentence in phrases for things in sentence]
    whole = {things for things in shown if len(things) == len(SORTS)}
    fitting = {things for things in whole if things >= asked}
    if len(sentences) == 1 and len(shown) == 1 and asked <= shown[0] and _IS_ONE.match(text):
        return "1"
    if (
        find_numbers(without_other_numbers(re.sub(r"\(\)", " ", text)))
        or _CUT_OFF.search(text)
        or _OPEN.search(text)
        or UNFINISHED.search(text.rstrip(" ."))
    ):
        return None
    only = _ONLY_ONE.search(text) is not None
    if only and (len(fitting) == 1 or any(asked <= things for things in shown)) and len(whole) < 2:
        return "1"
    if (
        whole == fitting
        and len(shown) == sum(things in fitting or things == asked for things in shown)
        and len(fitting) > 1
    ):
        return str(len(fitting))
    return "1" if len(fitting) == 1 and whole == fitting and _REST.search(text) else None


# -- where one shape is, seen from another ------------------------------------------------------------------------

_TWO = re.compile(
    r"\b(?:is|where is) the (?P<a>\w+ \w+ \w+) (?P<relation>relative to|"
    r"to the left or to the right of|above or below|"
    r"to the left of|to the right of|above|below) the (?P<b>\w+ \w+ \w+)\?",
    re.I,
)
_CLAUSE = re.compile(r"(?:[^.,;:\n]|,(?= (?:to|on|above|below|left|right|directly|just|slightly|further)\b))+")
_SENTENCE = re.compile(r"(?<=[.\n])")
_FROM = re.compile(r"\bfrom (?:the )?$", re.I)
_TO = re.compile(r"\W*(?:(?:in order )?to|until|and)\b(?: \w+){0,3}? (?:the )?", re.I)
_AT_PLACE = re.compile(r",? (?:at )?\(\),?(?=[^\S\n]*\w)")
_VERB = re.compile(r"\s*(?:is|are|lies|sits|stands|comes|we find|there is)\s+(?:the |a )?", re.I)


def _turned(text: str, a: Attributes, b: Attributes) -> str:
    """The text with "B is left of A" read as "B is right of A": what it says of A."""
    text = _AT_PLACE.sub(" ", re.sub(r"\b[Δδd]([xy])\b", r"\1", text))
    sentences = _SENTENCE.split(text)
    return "".join(_turn_sentence(sentence, a, b) for sentence in sentences)


def _turn_sentence(sentence: str, a: Attributes, b: Attributes) -> str:
    for first, second in pairwise(PHRASE.finditer(sentence)):
        if _FROM.search(sentence, max(0, first.start() - 12), first.start()) and _TO.fullmatch(
            sentence, first.end(), second.start()
        ):
            if _means(first[0], a, b) and _means(second[0], b, a):  # the way from A to B
                return invert(sentence)
            if _means(first[0], b, a) and _means(second[0], a, b):
                return sentence
    return _CLAUSE.sub(lambda clause: _turn_clause(clause[0], a, b), sentence)


def _turn_clause(clause: str, a: Attributes, b: Attributes) -> str:
    phrases = [phrase for phrase in PHRASE.finditer(clause) if not is_number(clause, phrase)]
    for first, second in pairwise(phrases):
        if _means(first[0], b, a) and _means(second[0], a, b):
            middle = clause[first.end() : second.start()]
            return clause[: first.end()] + invert(middle) + clause[second.start() :]
        inverted = _means(first[0], a, b) and _means(second[0], b, a)  # "left of A is B"
        if inverted and _VERB.fullmatch(clause[first.end() : second.start()]):
            return invert(clause[: first.start()]) + clause[first.start() :]
    if len(phrases) == 1 and _means(phrases[0][0], b, a) and _IS_SOMEWHERE.match(clause, phrases[0].end()):
        return clause[: phrases[0].end()] + invert(clause[phrases[0].end() :])  # "B is left of it"
    shapes = list(filter(None, (attributes(phrase[0]) for phrase in phrases)))
    if shapes and all(_is_strange(shape, a, b) for shape in shapes):
        return WORD.sub(lambda word: " " * len(word[0]), clause)
    return _without_others(clause, phrases, a, b)


def _is_strange(shape: Attributes, a: Attributes, b: Attributes) -> bool:
    """Is it another shape than the two asked about?"""
    return contradict(shape, a) and contradict(shape, b) and len(shape) == len(SORTS)


def _without_others(clause: str, phrases: list[re.Match[str]], a: Attributes, b: Attributes) -> str:
    """The clause without the direction in which it sees another pair of shapes, as in "B is above C"."""
    for first, second in pairwise(phrases):
        middle = clause[first.end() : second.start()]
        shapes = attributes(first[0]), attributes(second[0])
        strange = any(_is_strange(shape, a, b) for shape in shapes)
        if strange and _VERB.fullmatch(middle):  # "left of A is C"
            clause = re.sub(r"\S", " ", clause[: first.start()]) + clause[first.start() :]
        elif strange and _IS_SOMEWHERE.match(middle):
            clause = clause[: first.end()] + re.sub(r"\S", " ", middle) + clause[second.start() :]
    return clause


_IS_SOMEWHERE = re.compile(r"\s*(?:is|are|lies|sits|stands)\b", re.I)
_COMPARED = re.compile(
    r"\b(?:(?P<less>smaller|lower|less|lesser)|(?P<more>larger|greater|higher|bigger|more)|"
    r"(?P<same>same|equal|identical))\b",
    re.I,
)
_OWN_AXIS = re.compile(r"\b(?P<axis>[xy])(?:[- ]?(?:coordinate|value|position)s?)?\b", re.I)


def _compare_axes(a: Attributes, b: Attributes, sentences: Sequence[str]) -> str | None:
    """What "x is smaller and y is greater" comes to, where it is said of the shape asked about."""
    text = sentences[-1] if sentences else ""
    names = [phrase.things for phrase in named(text) if phrase.things]
    about_b = bool(names) and names[0] <= b and not names[0] <= a
    if re.search(r"\b(?:not|or|if)\b|n't\b", text, re.I) or (names and not about_b and not names[0] <= a):
        return None
    found: dict[str, str] = {}
    for part in re.split(r"[,;]|\b(?:and|but|while)\b", text):
        axes, compared = list(_OWN_AXIS.finditer(part)), list(_COMPARED.finditer(part))
        if not axes and not compared:
            continue
        if len(axes) != 1 or len(compared) != 1 or axes[0]["axis"].lower() in found:
            return None
        found[axes[0]["axis"].lower()] = str(compared[0].lastgroup)
    across = {"less": "Left", "more": "Right"}.get(found.get("x", ""), "")
    up = {"less": "Below", "more": "Above"}.get(found.get("y", ""), "")
    direction = " ".join(filter(None, (up, across))) if len(found) == 2 else ""
    return (" ".join(map(OPPOSITES.__getitem__, direction.split())) if about_b else direction) or None


_ENDS = {"x": ("Left", "Right"), "y": ("Below", "Above")}


def _in_order(a: Attributes, b: Attributes, sentences: Sequence[str]) -> str | None:
    """Where one shape is seen from another, by an order of several: "From left to right: …"."""
    for order in orders(sentences, full_names):
        names = full_name(a), full_name(b)
        if order.axis in _ENDS and all(name in order.names for name in names):
            first, second = map(order.names.index, names)
            return _ENDS[order.axis][(first > second) == order.rising]
    return None


def _means(phrase: str, shape: Attributes, other: Attributes) -> bool:
    return attributes(phrase) <= shape and not attributes(phrase) <= other


def directions_about(question: str) -> Kind:
    if not (found := _TWO.search(question)):
        return DIRECTIONS
    a, b = attributes(found["a"]), attributes(found["b"])

    def whole(sentences: Sequence[str]) -> str | None:
        return _in_order(a, b, sentences) or _compare_axes(a, b, sentences)

    return replace(DIRECTIONS, prepare=lambda text: _turned(DIRECTIONS.prepare(text), a, b), whole=whole)


_OF_IT = re.compile(
    r"^\W*(?P<no>not )?(?:it|it's|it is|to)\b[^.;,:]{0,30}|(?<=[;:,])\s*(?:it|it's|"
    r"it is)\b[^.;,:]{0,40}",
    re.I,
)


_IT_IS_THERE = re.compile(
    r",\s*(?:so |thus |hence |therefore )?it(?:'s| is) (?:\w+ )?(?:to the |on the )?(?:left|"
    r"right|above|below)(?: of it)?\W*$",
    re.I,
)
_NOT_SAID = re.compile(
    r"(?:\b(?:not|cannot|nothing|no \w+|whether|if)\b|n't\b)[^.;,]*\b(?:follow|conclude|say|"
    r"infer|know|tell|determine|state)",
    re.I,
)


def _state_relation(asked: str, a: Attributes, b: Attributes, sentence: str) -> str | None:
    """What a sentence about the two says: the relation asked about, or its opposite."""
    if _NOT_SAID.search(sentence):
        return None
    phrases = list(PHRASE.finditer(sentence))
    if (where := _IT_IS_THERE.search(sentence)) and phrases and _means(phrases[0][0], a, b):
        values = {mention.value for mention in DIRECTIONS.find(where[0])}
        return "Yes" if values == {asked} else "No" if values == {OPPOSITES[asked]} else None
    if all(_means(phrase[0], b, a) for phrase in phrases):
        *_, said = (None, *(found[0] for found in _OF_IT.finditer(sentence)))
        values = {mention.value for mention in DIRECTIONS.find(said)} if said else set()
        if values and not re.search(r"\b(?:not|or|could|might|may|if|whether)\b|n't\b", said or "", re.I):
            return "Yes" if values == {asked} else "No" if values == {OPPOSITES[asked]} else None
    for first, second in pairwise(phrases):
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
    return replace(
        ENTAILMENT, state=lambda sentence: ENTAILMENT.state(sentence) or relation(sentence), whole=say_certainly
    )


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
    if text.isupper() and " " in text.strip():
        text = text.lower()
    if kind is COLOURS:
        text = without_other_places(text, question)
    return next(filter(None, (read_reply(text, about) for about in kinds_about(kind, question))), None)
