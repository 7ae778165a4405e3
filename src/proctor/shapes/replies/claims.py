"""Whether a claim with and, or, not is true, by what a reply says of its two parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import and_, or_, xor

from proctor.shapes.replies import cues
from proctor.shapes.replies.polar import YES_NO
from proctor.shapes.replies.reader import Kind, Mentions
from proctor.shapes.replies.statements import Attributes, attributes, named, says_exists


def claim_about(question: str) -> Kind | None:
    if not question.startswith("Is it true"):
        return None
    operator, parts = _operator(question), _parts(question)
    find = partial(_find_of_claim, parts)
    tell = partial(_tell_claim, operator, "there is no" in question)
    whole = partial(_claim_of_parts, operator, parts)
    return replace(YES_NO, find=find, prepare=_name_parts, state=_state_claim, tell=tell, whole=whole)


_CLAIM = (
    r"\b(?:claim|statement|sentence|whole|it|condition|conjunction|disjunction|expression|"
    r"proposition|the (?:or|and|xor))"
)
_CLAIM_HOLDS = re.compile(rf"{_CLAIM} (?:holds?|(?:is|are)(?: both)? (?:met|satisfied|fulfilled))\b", re.I)
_CLAIM_FAILS = re.compile(
    rf"{_CLAIM} (?:fails?|(?:does|do)(?:n't| not) hold|(?:is|are)(?:n't| not)(?: both)? (?:met|"
    rf"satisfied|fulfilled))\b",
    re.I,
)
_TRUE = r"(?:true|hold|holds|met|satisfied|fulfilled|exists?|correct|the case|present|there)"
_BOTH = re.compile(rf"\bboth(?! are (?:not|false))(?: of them)?(?: \w+){{0,6}}? {_TRUE}\b|^\W*both\W*$", re.I)
_NEITHER = re.compile(
    rf"\b(?:neither|none)(?: of (?:them|the \w+))?(?: \w+){{0,2}} {_TRUE}\b|^\W*neither\W*$|"
    rf"\bboth(?: \w+){{0,2}} (?:are )?(?:false|fail)\b",
    re.I,
)
_ONE = re.compile(
    rf"\b(?:only|exactly|just)(?: the)? (?:one|first|second)(?: of (?:them|"
    rf"the two))?(?: \w+){{0,2}} {_TRUE}\b|"
    rf"\bone(?: \w+)? is {_TRUE}\b.*\bthe other\b.*\b(?:not|isn't|false)\b|"
    rf"\bnot both\b(?= (?:\w+ ){{0,3}}{_TRUE})",
    re.I,
)
_EXISTS = re.compile(r"\b(?:exists?|present|there)\b", re.I)  # says nothing of a part that denies that there is one
_ONE_PART = (
    r"\b(?:at least one|(?:the )?(?:first|second|one|other))(?: of the)?(?: \w+)?"
    r"(?: part| condition| half| clause)?(?: is| =|:| ->)"
)
_PART_HOLDS = re.compile(rf"{_ONE_PART} (?:true|met|satisfied|fulfilled|the case)\b", re.I)
_PART_FAILS = re.compile(rf"{_ONE_PART} (?:false|untrue|(?:not|n't) (?:true|met|satisfied|fulfilled|the case))\b", re.I)
_VERDICTS = {  # of both parts, one of them and neither
    "and": ("Yes", "No", "No"),
    "or": ("Yes", "Yes", "No"),
    "xor": ("No", "Yes", "No"),
}


def _operator(question: str) -> str:
    claim = question.partition("?")[0]
    if "not both" in claim:
        return "xor"
    return "or" if " or " in claim else "and"


Part = tuple[Attributes, bool]  # what there is, and whether the part of the claim says that there is none


def _parts(question: str) -> list[Part]:
    found = re.findall(r"there is (no|an?) ([\w ]+?)(?= and there| or there|[,?]|$)", question.partition("?")[0])
    return [(attributes(what), said == "no") for said, what in found]


_LETTERED = re.compile(r"\b(?-i:[AB])(?=\s*(?:[:=]|is\b|->|\())", re.I)
_OPERATION = re.compile(
    r"\b(?:true|false|[tf])\s*(?:and|or|xor|[∧∨⊕&])\s*(?:not )?(?:true|false|[tf])\s*(?:is|=+|"
    r"->|gives|makes|evaluates to|:)\s*",
    re.I,
)


def _name_parts(text: str) -> str:
    """The text with the letters for parts called so, and without the truths of which another is the result."""
    letters = {found[0] for found in _LETTERED.finditer(text)}
    return _OPERATION.sub("so ", _LETTERED.sub(lambda found: f"part {found[0]}", text) if len(letters) > 1 else text)


_THEREFORE = re.compile(rf"{cues.HENCE.pattern}|\banswer\b", re.I)


def _find_of_claim(parts: Sequence[Part], passage: str) -> Mentions:
    """Without the Yes or No that a passage gives to one part: "There is a red circle, yes."."""
    mentions = YES_NO.find(passage)
    if not mentions:
        return ()
    phrases = [phrase for phrase in named(passage) if phrase.things]
    return tuple(
        m
        for m in mentions
        if len({p.things for p in phrases if p.end <= m.start}) != 1
        or _THEREFORE.search(passage, 0, m.start)
        or not any(p.things == things and p.end <= m.start for p in phrases for things, _ in parts)
    )


_CONNECTIVES: dict[str, Callable[[bool, bool], bool]] = {"and": and_, "or": or_, "xor": xor}


_ONLY = re.compile(r"^\W*(?:there is )?only (?:the|an?) ([\w ]{3,30}?)(?: (?:is|exists)\b|\W*$)", re.I)


def _claim_of_parts(operator: str, parts: Sequence[Part], sentences: Sequence[str]) -> str | None:
    """Whether the claim holds, from what the reply says of its two parts."""
    if len(parts) != 2:
        return None
    said = [_said_of_part(things, sentences) for things, _ in parts]
    for sentence in sentences:
        only = _ONLY.search(sentence)
        for i, (things, _) in enumerate(parts):
            if only and attributes(only[1]) == things:
                said = [j == i for j in range(2)]
    if None in said:
        return None  # half a statement
    truths = [exists != denied for exists, (_, denied) in zip(said, parts, strict=True)]
    return "Yes" if _CONNECTIVES[operator](*truths) else "No"


def _said_of_part(things: Attributes, sentences: Sequence[str]) -> bool | None:
    said = {says_exists(things, sentence) for sentence in sentences} - {None}
    return said == {"Yes"} if len(said) == 1 else None


def _state_claim(sentence: str) -> str | None:
    return "No" if _CLAIM_FAILS.search(sentence) else "Yes" if _CLAIM_HOLDS.search(sentence) else None


def _tell_claim(operator: str, denies: bool, sentence: str) -> str | None:
    """Of how many parts the sentence says that they are true."""
    if cues.HEDGE.search(sentence) or (denies and _EXISTS.search(sentence)):
        return None
    both, one, neither = _VERDICTS[operator]
    if operator == "or" and _PART_HOLDS.search(sentence):
        return "Yes"
    if operator == "and" and _PART_FAILS.search(sentence):
        return "No"
    if _NEITHER.search(sentence):
        return neither
    if _ONE.search(sentence):
        return one
    return both if _BOTH.search(sentence) else None
