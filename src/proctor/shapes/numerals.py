"""Numbers in a reply, in digits and in words, without those that count something else."""

from __future__ import annotations

import re
from itertools import product

from proctor.shapes.replies import Kind, Mention, definite

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORDS = {
    **{f"{ten} {unit}": 20 + 10 * i + j for (i, ten), (j, unit) in product(enumerate(_TENS), enumerate(_UNITS[:10])) if j},
    **{ten: 20 + 10 * i for i, ten in enumerate(_TENS)},
    **{unit: i for i, unit in enumerate(_UNITS)},
    "none": 0,
    "nil": 0,
    "single": 1,
    "dozen": 12,
}
_THING = r"(?:shapes?|squares?|circles?|triangles?|ones?|objects?|items?|matches|such|match)"
_NUMERAL = re.compile(
    r"(?P<digits>(?:(?<![\w.])-)?(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?(?![\w%]))"
    rf"|(?P<zero>\bno(?= (?:\w+ ){{0,3}}{_THING}\b)(?! other)|(?:\bnot|n't) (?:any|a single|one)|\bnothing matches)\b"
    rf"|\b(?P<word>{'|'.join(word.replace(' ', '[ -]') for word in _WORDS)})\b",
    re.I,
)
_VAGUE = re.compile(
    r"(?:\b(?:at least|at most|more than|less than|fewer than|over|about|approximately|around|roughly|nearly|almost|up to)|~|≈)\s*$", re.I
)
_PRONOUN_BEFORE = re.compile(
    r"\b(?:the(?: only)?|this|that|each|every|which|another|other|any|small|large|red|blue|yellow|green|purple|orange|brown|black|"
    r"first|second|third|last|next|right|left|by|no|same|new)\s*$",
    re.I,
)
_PRONOUN_AFTER = re.compile(r"\s+(?:by one|at a time|another|can|to|more)\b|[- ]by", re.I)
_N = rf"(?:\d+|{'|'.join(_UNITS)})"
_ELSE = re.compile(
    rf"\b(?:step|shape|line|event|item|case|option|figure|image|row|statement|swap|move|rule)\s#?\d+\b|#\d+"
    rf"|\b(?:out of|of|among|from|all|all of)(?: all)?(?: of)?(?: the| these| those| its)? {_N}\b(?= (?:\w+ ){{0,3}}{_THING}|\W*$)(?<!total of )"
    r"|\b\d+(?:\.\d+)? units?\b|\bdistance (?:of )?\d+(?:\.\d+)?",
    re.I,
)


def _without_other_numbers(text: str) -> str:
    return _ELSE.sub(lambda found: found[0] if "total" in text[max(0, found.start() - 8) : found.start()] else " ", text)


def _value(found: re.Match[str]) -> str:
    if found["zero"]:
        return "0"
    if found["word"]:
        return str(_WORDS[re.sub(r"[ -]", " ", found["word"].lower())])
    whole, _, decimals = found["digits"].replace(",", "").partition(".")
    return f"{whole}.{decimals}" if decimals.strip("0") else str(int(whole))


def _is_pronoun(passage: str, found: re.Match[str]) -> bool:
    if (found["word"] or "").lower() != "one":
        return False
    before = passage[max(0, found.start() - 20) : found.start()]
    return bool(_PRONOUN_BEFORE.search(before) or _PRONOUN_AFTER.match(passage[found.end() :]))


def _find(passage: str) -> list[Mention]:
    found = (
        Mention(match.start(), match.end(), _value(match))
        for match in _NUMERAL.finditer(passage)
        if not _is_pronoun(passage, match) and not _VAGUE.search(passage[max(0, match.start() - 20) : match.start()])
    )
    return definite(passage, found)


_SUM_BEFORE = re.compile(r"(?:=|\btotal(?: of| is|:)?|\bmaking|\bmakes|\bgiving|\bgives)\s*(?:it\s+)?$", re.I)
_SUM_AFTER = re.compile(r"(?:\s+\w+){0,4}?\s+(?:in total|altogether|overall|in all)\b", re.I)


def _choose(passage: str, mentions: list[Mention]) -> str | None:
    """Of several numbers, the one that is called their sum."""
    sums = {
        m.value
        for m in mentions
        if _SUM_BEFORE.search(passage[max(0, m.start - 20) : m.start]) or _SUM_AFTER.match(passage[m.end :])
    }
    return sums.pop() if len(sums) == 1 else None


NUMBERS = Kind(_find, _choose, prepare=_without_other_numbers)
