"""Whether a shape is between two others, by what a reply says of their places."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from proctor.shapes.replies import cues
from proctor.shapes.replies.orders import orders
from proctor.shapes.replies.polar import YES_NO, state_existence
from proctor.shapes.replies.reader import Kind
from proctor.shapes.replies.statements import PHRASE, Attributes, attributes, full_name, full_names, named


def between_about(question: str) -> Kind | None:
    if not (found := _IS_BETWEEN.search(question)):
        return None
    subject, *ends = map(attributes, found.groups())
    axis = "above|below" if re.search(r"\babove and below\b", question) else "left|right"
    rules = (_state_between, _tell_between, _order_between)
    state, tell, whole = (partial(rule, subject, tuple(ends), axis) for rule in rules)
    return replace(YES_NO, state=state, tell=tell, whole=whole)


_IS_BETWEEN = re.compile(r"\bis the (\w+ \w+ \w+) between the (\w+ \w+ \w+) and the (\w+ \w+ \w+)\?", re.I)
_OPPOSITE = {"above": "below", "below": "above", "left": "right", "right": "left"}
_SIDE = re.compile(r"\b(above|below|left|right|higher|lower)\b", re.I)
_SPELLED_SIDE = {"higher": "above", "lower": "below"}


_OUTERMOST = re.compile(
    r"\bthe (?:\w+most|highest|lowest|outer\w*)(?: one| shape)? (?:of (?:the|all) three|of them|among)\b", re.I
)


_ALONG = {"left|right": r"\bhorizontal(?:ly)?\b", "above|below": r"\bvertical(?:ly)?\b"}
_NOT_ALONG = re.compile(r"\W*(?:it's |it is |but )*not (?:horizontally|vertically)\W*", re.I)


def _of_axis(axis: str, sentence: str) -> str:
    """The sentence without clauses about the other axis: "it is horizontally, but not vertically"."""
    (other,) = (word for name, word in _ALONG.items() if name != axis)
    clauses = re.split(r"[,;]|\b(?:but|although|however|while)\b", sentence)
    own = [clause for clause in clauses if not re.search(other, clause, re.I)]
    return sentence if len(own) == len(clauses) else ", ".join(own)


def _state_between(subject: Attributes, ends: tuple[Attributes, ...], axis: str, sentence: str) -> str | None:
    if re.search(r"\b(?:is|lies|falls|sits) outside\b", sentence, re.I):
        return "No"
    if (found := _OUTERMOST.search(sentence)) and not re.search(r"\bnot\b|n't\b", sentence):
        before = [phrase.things for phrase in named(sentence[: found.start()]) if phrase.things]
        return "No" if not before or before[0] <= subject else None
    if re.search(r"\bnot in (?:the middle|between)\b", sentence, re.I):
        return "No"
    if re.search(r"\b(?:the one in between|in the middle|the middle one)\b", sentence, re.I):
        before = [attributes(phrase[0]) for phrase in PHRASE.finditer(sentence)]
        return None if not before else "Yes" if before[0] and before[0] <= subject else "No"
    if (clauses := _of_axis(axis, sentence)) != sentence:
        return _state_between(subject, ends, axis, clauses) if clauses.strip() else None
    *_, last = re.split(r"\b(?:so|therefore|hence|thus)\b", sentence)
    if "between" in last:
        sentence = last
    if _NOT_ALONG.fullmatch(sentence):
        return "No"
    answer = state_existence(sentence)
    clause = re.split(r"[,;]|\b(?:but|so)\b", sentence.partition("between")[0])[-1]
    if re.match(r"\W*(?:it|that|this|not)\b", clause, re.I):
        return answer
    before = [attributes(phrase[0]) for phrase in PHRASE.finditer(sentence.partition("between")[0])]
    if not answer or not before or before[-1] <= subject:
        return answer
    return "No" if answer == "Yes" and before[-1] in ends else None


def _tell_between(subject: Attributes, ends: tuple[Attributes, ...], axis: str, sentence: str) -> str | None:
    """On which side of either end the shape is, where the sentence says so of both, along the axis asked about."""
    if cues.HEDGE.search(sentence):
        return None
    if answer := _sides_of_ends(subject, ends, axis, sentence):
        return answer
    own = rf"(?:the )?(?:{axis}|{'higher|lower' if 'above' in axis else '(?!)'})"
    if not re.search(rf"\b(?:{own})\b", sentence, re.I):
        return None
    phrases = [phrase.things for phrase in named(sentence)]
    first = phrases[0] if phrases else frozenset()
    pronoun = re.match(r"\W*(?:no\b\W*|yes\b\W*)?(?:it|it's|this one)\b", sentence, re.I)
    if not pronoun and not (first and first <= subject and not any(first <= end for end in ends)):
        return None
    if re.search(
        rf"(?<!not )(?<!n't )\b{own}\b(?: than| of| to)*(?:\s+the)?\s+(?:both|the other two|"
        rf"the two others)\b",
        sentence,
        re.I,
    ):
        return "No"
    sides = _sides(sentence, ends, axis)
    if len(sides) < 2 or re.search(r"\b(?:not|or|neither)\b|n't\b", sentence, re.I):
        return None
    return "No" if sides[0] == sides[1] else "Yes"


_ONE_AND_OTHER = re.compile(r"\bone\b(?P<one>[^,;]*?)(?:,|;|\band\b|\bwhile\b)[^,;]*\bthe other\b(?P<other>.*)", re.I)


def _sides_of_ends(subject: Attributes, ends: tuple[Attributes, ...], axis: str, sentence: str) -> str | None:
    """Where the ends are, seen from the shape: "A is to the left of it and B to the right", "both are above it"."""
    if re.search(r"\b(?:not|or|neither)\b|n't\b", sentence, re.I):
        return None
    if found := _ONE_AND_OTHER.search(sentence):
        one, other = (_SIDE.findall(part) for part in found.groups())
        if len(one) == len(other) == 1 and {_spell(one[0]), _spell(other[0])} <= set(axis.split("|")):
            return "No" if _spell(one[0]) == _spell(other[0]) else "Yes"
    phrases = [phrase for phrase in named(sentence) if phrase.things]
    sides: dict[Attributes, str] = {}
    waiting: list[Attributes] = []
    for i, phrase in enumerate(phrases):
        following = phrases[i + 1].things if i + 1 < len(phrases) else frozenset()
        said = [_spell(side) for side in _SIDE.findall(phrase.after)]
        if phrase.things == subject and following in ends and len(said) == 1 and said[0] in axis.split("|"):
            sides[following] = _OPPOSITE[said[0]]
        if phrase.things not in ends:
            waiting = []
            continue
        waiting.append(phrase.things)
        if following in ends and not said:
            continue  # "A and B are …"
        seen = following == subject or (not following and re.search(r"\b(?:it|this|that)\b", phrase.after, re.I))
        if seen and len(said) == 1 and said[0] in axis.split("|"):
            sides |= dict.fromkeys(waiting, said[0])
        waiting = []
    if len(sides) < len(ends):
        return None
    return "No" if len(set(sides.values())) == 1 else "Yes"


def _spell(side: str) -> str:
    return _SPELLED_SIDE.get(side.lower(), side.lower())


_MIDDLE = re.compile(r"\b(?:middle|centre|center)(?: one| shape)?(?: is)?\s*[:=]?\s*(?:the )?(?=small|large)", re.I)


def _order_between(
    subject: Attributes, ends: tuple[Attributes, ...], axis: str, sentences: Sequence[str]
) -> str | None:
    """Whether the shape stands between the ends in an order that the reply lists."""
    for sentence in sentences:
        middle = _MIDDLE.search(sentence)
        for start, _, name in full_names(sentence) if middle else []:
            if middle and start == middle.end():
                return "Yes" if attributes(name) == subject else "No"
    for order in orders(sentences, full_names):
        names = [full_name(shape) for shape in (subject, *ends)]
        if order.axis in ("", "y" if "above" in axis else "x") and all(name in order.names for name in names):
            place, *places = map(order.names.index, names)
            return "Yes" if min(places) < place < max(places) else "No"
    return None


def _sides(sentence: str, ends: tuple[Attributes, ...], axis: str) -> list[str]:
    """The side of the first end and that of the second one; fewer where the sentence does not say both."""
    sides = []
    for end in ends:
        for phrase in named(sentence):
            side = [m[1].lower() for m in _SIDE.finditer(phrase.before)]
            if phrase.things == end and side:
                sides.append(_spell(side[-1]))
                break
    return sides if all(side in axis.split("|") for side in sides) else []
