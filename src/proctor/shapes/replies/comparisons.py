"""Whether there are as many of one sort as of another, by what a reply says of both numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from proctor.shapes.replies import cues
from proctor.shapes.replies.numbers import find_numbers, without_other_numbers
from proctor.shapes.replies.polar import YES_NO
from proctor.shapes.replies.reader import Kind
from proctor.shapes.replies.statements import Attributes, attributes, named, says_exists


def comparison_about(question: str) -> Kind | None:
    if not (found := _AS_MANY.search(question)):
        return None
    one, other = (phrase.things for phrase in list(named(found[1]))[:2])
    tell = partial(_tell_counts, one, other)
    return replace(YES_NO, state=_state_equality, tell=tell, whole=partial(_compare_counts, one, other))


_AS_MANY = re.compile(r"^are there as many ([^?]*)\?", re.I)
_EQUAL = re.compile(
    r"\bthe same\b(?! (?:shape|one|place|colour|size|form))|"
    r"\bas many\b|\bequal(?:ly)?\b|\bsame (?:number|amount|count|quantity)\b|"
    r"\b(?:counts?|"
    r"numbers?) (?:do |does )?"
    r"(?:match|agree)|\bof each\b(?! other)|\bfor (?:both|each)\b|\bno difference\b|\b(?:two|three|four|five|"
    r"one|\d+) each\b|\bequals\b|"
    r"\bboth (?:counts|numbers|totals|groups|amounts|sets|"
    r"are|come to|have)\b(?=[^.]*\d)|\b(?:tie|tied|a tie)\b|\bneither more nor (?:fewer|less)\b|"
    r"\bno (?:more|fewer) (?:and|or|nor) no "
    r"(?:more|fewer)\b",
    re.I,
)
_UNEQUAL = re.compile(
    r"\b(?:twice|double|half|thrice|(?:two|three|four|\d+) times)(?: as many| the number)\b|"
    r"(?:\bnot|n't)\b[^,;]*\b(?:as many|equal(?:ly)?|the same|match|agree)\b|\bunequal\b|"
    r"\bdiffer(?:ent|s)?\b|\b(?:fewer|more|less)\W*$|\bmore numerous\b|(?<!no )\bdifference of (?!0|zero)|"
    r"\b(?:one|two|three|\d+) (?:more|fewer|less)\b|(?<!no )(?<!neither )(?<!not )\b(?:more|"
    r"fewer|less)\b[^,;]*\b(?:squares?|"
    r"circles?|triangles?|shapes?|ones?|than)\b|\boutnumber|\bexceeds?\b|\b(?:greater|higher|"
    r"larger|smaller|lower) than\b|≠|!=",
    re.I,
)


def _state_equality(sentence: str) -> str | None:
    if cues.HEDGE.search(sentence):
        return None
    if _UNEQUAL.search(sentence) and not re.search(r"\bneither more nor\b", sentence, re.I):
        return "No"
    return "Yes" if _EQUAL.search(sentence) else None


def _counts(one: Attributes, other: Attributes, sentence: str) -> dict[Attributes, set[str]]:
    """The numbers that the sentence gives for each of the two groups."""
    counts: dict[Attributes, set[str]] = {one: set(), other: set()}
    text = without_other_numbers(sentence)
    mentions = find_numbers(text)
    phrases = list(named(text))
    for i, mention in enumerate(mentions):
        start = mentions[i - 1].end if i else 0
        end = mentions[i + 1].start if i + 1 < len(mentions) else len(text)
        before = [phrase for phrase in phrases if start <= phrase.start and phrase.end <= mention.start]
        labelled = _LABEL.search(text, start, mention.start) is not None
        if labelled and not before and attributes(text[start : mention.start]):
            pass  # "black = 2"
        elif not before or not labelled:
            before = [phrase for phrase in phrases if mention.end <= phrase.start < end][:1]
        things = before[-1].things if before else attributes(_after(text, mention.end))
        if not before and not things and _LABEL.search(text, start, mention.start):
            things = attributes(text[start : mention.start])
        fitting = [
            group
            for group in (one, other)
            if things == group
            or (not before and things and things <= group)
            or (before and all(phrase.things >= group for phrase in before))
        ]
        if len(fitting) == 1:
            counts[fitting[0]].add(mention.value.removesuffix(" more"))
    return counts


_LABEL = re.compile(r"(?:[:=;(]|->|\b(?<!there )(?:is|are|count|number))\W*$", re.I)
_ADJECTIVES = re.compile(r"(?:\s+\w+){0,2}")


def _after(text: str, start: int) -> str:
    found = _ADJECTIVES.match(text, start)
    return found[0] if found else ""


def _tell_counts(one: Attributes, other: Attributes, sentence: str) -> str | None:
    if cues.HEDGE.search(sentence):
        return None
    *_, last = re.split(r"\bbut\b", sentence)
    if answer := _state_equality(last):
        return answer
    if {says_exists(one, sentence), says_exists(other, sentence)} == {"Yes", "No"}:
        return "No"
    return _compare(_counts(one, other, sentence))


_TWO_NUMBERS = re.compile(r"\W*\w+\W*(?:\b(?:and|vs|versus|to)\b\W*)?\w+\W*$", re.I)


def _compare_counts(one: Attributes, other: Attributes, sentences: Sequence[str]) -> str | None:
    """Where each group has been counted in a sentence of its own."""
    if len(sentences) == 1 and not attributes(sentences[0]) and _TWO_NUMBERS.match(sentences[0]):
        first, *rest = (m.value.removesuffix(" more") for m in find_numbers(sentences[0]))
        return "Yes" if rest == [first] else "No" if len(rest) == 1 else None
    counts: dict[Attributes, set[str]] = {one: set(), other: set()}
    for sentence in sentences:
        for group, values in _counts(one, other, sentence).items():
            counts[group] |= values
    return _compare(counts)


def _compare(counts: dict[Attributes, set[str]]) -> str | None:
    if any(len(values) != 1 for values in counts.values()):
        return None
    return "Yes" if len(set.union(*counts.values())) == 1 else "No"
