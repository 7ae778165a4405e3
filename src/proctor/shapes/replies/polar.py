"""Yes and No in a reply, and Cannot be determined."""

from __future__ import annotations

import re
from functools import lru_cache

from proctor.shapes.replies.cues import WHETHER
from proctor.shapes.replies.reader import CACHED, Kind, Mention, Mentions, definite

UNDETERMINED = "Cannot be determined"

_YES = re.compile(
    r"\b(?:yes|yep|yeah|yup|affirmative)\b|\b(?:not|n't|isn't)\s+(?:false|incorrect|untrue)\b|"
    r"\b(?<!not )(?<!n't )(?<!opposite is )(?<!reverse is )true\b|"
    r"(?:^\W*|\b(?:that|this|it|statement|claim|which)(?: is|'s) )correct\b(?! answer)|\bi (?:think|believe) so\b",
    re.I,
)
_NO = re.compile(
    r"\b(?:nope|nah|negative|untrue)\b|\b(?<!not )(?<!n't )(?:false|incorrect)\b|"
    r"(?:\bnot|n't)\s+(?:true|correct|the case)\b|\b(?:definitely|certainly|absolutely|of course|clearly) not\b|"
    r"\bnot at all\b|(?<=\byes or )no\b|(?<=\byes/)no\b|"
    r"\bno(?=\s*(?:$|[^\w\s'-])|\s+-|\s+(?:and|or|because|since|as|it|there|this|that|they|i|we|but|is|if|from|"
    r"yes|would|are|seem)\b)(?!\.\s*\d)",
    re.I,
)
_LETTER = re.compile(r"^\W*([yn])\W*$", re.I)


@lru_cache(maxsize=CACHED)
def _find_polar(passage: str) -> Mentions:
    if letter := _LETTER.match(passage):
        return (Mention(letter.start(1), letter.end(1), "Yes" if letter[1] in "yY" else "No"),)
    found = [Mention(match.start(), match.end(), "Yes") for match in _YES.finditer(passage)]
    found += [Mention(match.start(), match.end(), "No") for match in _NO.finditer(passage)]
    return definite(passage, (m for m in sorted(found) if not WHETHER.search(passage[max(0, m.start - 80) : m.start])))


_THERE = r"\bthere(?:'s| is| are| was| were| exists?| still is| still are)\b"
_DENIAL = re.compile(
    rf"{_THERE}(?: now| currently| still)*(?: no| not| none)\b(?! doubt| need| other| way| one else| more need)|"
    r"\bthere (?:is|are|was|were|does)n't\b|\b(?:is|are|does|do)(?: not|n't)\W*$|"
    r"\b(?:is|are|does|do)(?: not|n't) (?:between|present|exist|there|contain|hold|satisfied|met|on the canvas|"
    r"in the canvas)\b|\bno longer (?:present|there|exists?|on|in)\b|"
    r"\b(?:do not|don't|cannot|can't) (?:see|find) (?:an?|any|one|such)\b(?! image| picture| canvas)|"
    r"\b(?:shape|square|circle|triangle|it) is (?:absent|missing|gone)\W*$|"
    r"\b(?:see|sees|find|found|contains?|has|have|includes?|shows?) no (?:\w+ ){0,3}(?:shape|square|circle|"
    r"triangle)s?\b|^\W*(?:no|none of)\b(?! other)[^.]*\b(?:shape|square|circle|triangle)s?\b",
    re.I,
)
_ASSERTION = re.compile(
    rf"{_THERE}(?: now| currently| still| indeed)*(?:\W*$| (?:an?|one|two|three|four|five|\d+|exactly|at least|"
    rf"such)\b)|"
    r"^\W*it (?:is|does)\W*$|^\W*such an? [\w ]{1,40} exists\b|"
    r"\b(?:is|lies|sits)(?: still| indeed| now)? (?:between|present|there|on the canvas|in the canvas)\b|"
    r"\b(?:statement|claim|condition) holds\b|"
    r"\b(?:canvas|list|description|picture|image) (?:contains|includes|has|shows) (?:an?|one|two|\d+)\b[^,;]*$|"
    r"\b(?:conditions?|statement|claim|parts?) (?:is|are)(?: both)? (?:met|satisfied|fulfilled)\b",
    re.I,
)
_COMPARISON = re.compile(r"\b(?:more|fewer|less|as many|same|equal)\b", re.I)


def _state(sentence: str) -> str | None:
    """A bare statement, taken for the answer to "Is there …?" or "Is it …?"; half a statement is none."""
    if re.search(r"\b(?:whether|if|let me|let's|need to)\b", sentence, re.I):
        return None
    denied, asserted = _DENIAL.search(sentence), _ASSERTION.search(sentence)
    if bool(denied) == bool(asserted) or (asserted and _COMPARISON.search(sentence)):
        return None
    return "No" if denied else "Yes"


YES_NO = Kind(_find_polar, state=_state, polar=True)

_KNOW = (
    r"(?:be\s+)?(?:\w+ly\s+)?(?:determined?|known?|inferred|infer|deduced?|established?|concluded?|decided|tell|"
    r"told|say|said|derived?|answered|settled|ascertain(?:ed)?|compared?)"
)
_OPEN = re.compile(
    r"\b(?:cannot|can't|can not|could not|couldn't|not possible to|isn't possible to|impossible to|unable to|"
    r"no way to|no way of|"
    rf"not enough (?:\w+ )?to|insufficient (?:\w+ )?to|not able to|not allow us to|"
    rf"not be possible to)\s+{_KNOW}(?!ing you)\b"
    r"|\b(?:cannot|can't|can not) (?:definitively |conclusively )?(?:be )?(?:determined?|told|known)\b|"
    r"\bno way (?:to|of) (?:knowing|telling)\b|(?:\bnot|n't) (?:determin(?:able|ed?)|decid(?:able|ed))\b|"
    r"\b(?:un|in)determin(?:ed|ate|able)\b|"
    r"(?:\binsufficient|\btoo little|(?:\bnot|n't)(?: \w+){0,2} enough|\binadequate) (?:info|information|data|"
    r"evidence|details)\b|\binconclusive\b|\bundecidable\b"
    rf"|\b(?:no|neither|nothing) (?:\w+ ){{0,6}}can (?:be drawn|be made|{_KNOW})\b"
    r"|\bmay or may not\b|\b(?:could be|it's|it is) either\b",
    re.I,
)
_PERHAPS_OPEN = re.compile(
    r"\b(?:unknown|unclear|ambiguous|insufficient|not (?:specified|stated|given))\b"
    r"|\b(?:text|description|lines?|information|statements?|facts?) (?:do(?:es)?(?: not|n't)) "
    r"(?:say|tell|specify|state|mention|reveal|settle)\b(?! that\b)",
    re.I,
)


@lru_cache(maxsize=CACHED)
def _find_entailment(passage: str) -> Mentions:
    opened = definite(passage, (Mention(match.start(), match.end(), UNDETERMINED) for match in _OPEN.finditer(passage)))
    polar = [m for m in _find_polar(passage) if not any(o.start <= m.start < o.end for o in opened)]
    if not opened and not polar:
        return tuple(Mention(match.start(), match.end(), UNDETERMINED) for match in _PERHAPS_OPEN.finditer(passage))
    return tuple(sorted([*opened, *polar]))


def _state_briefly(sentence: str) -> str | None:
    """ "It is." and "It is not.", but no more: that something is there does not say what follows from the text."""
    brief = re.fullmatch(r"\W*it (?:is|does)( not|n't)?\W*", sentence, re.I)
    return None if brief is None else "No" if brief[1] else "Yes"


ENTAILMENT = Kind(_find_entailment, state=_state_briefly, polar=True, exclusive=True)
