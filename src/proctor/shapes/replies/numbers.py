"""Numbers in a reply, in digits and in words, without those that count something else."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise, product

from proctor.shapes.replies.reader import CACHED, Kind, Mention, Mentions, definite

_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_UNITS = f"zero one two three four five six seven eight nine {_TEENS}".split()
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_WORDS = {
    "one hundred": 100,
    **{
        f"{ten} {unit}": 20 + 10 * i + j
        for (i, ten), (j, unit) in product(enumerate(_TENS), enumerate(_UNITS[:10]))
        if j
    },
    **{ten: 20 + 10 * i for i, ten in enumerate(_TENS)},
    **{unit: i for i, unit in enumerate(_UNITS)},
    "none": 0,
    "nil": 0,
    "single": 1,
    "dozen": 12,
}
_THING = r"(?:shapes?|squares?|circles?|triangles?|ones?|objects?|items?|matches|such|match)"
_NUMERAL = re.compile(
    r"(?P<digits>(?:(?<![\w.])-)?(?<![\w.])[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?![\w%]))"
    rf"|(?P<zero>\bno(?= (?:\w+ ){{0,3}}{_THING}\b)(?! other)|(?:\bnot|n't|\bcannot) (?:(?:see|"
    rf"find|"
    rf"spot) )?(?:any(?! image| picture| canvas)|a single|one)|"
    rf"\bnothing matches|\bneither(?= (?:of (?:them|these|those|which|the two) )?(?:is|are) ))\b|"
    rf"(?P<only>\b(?:that|this|it)(?: is|'s) the only one)\b|"
    rf"\b(?P<word>{'|'.join(word.replace(' ', '[ -]') for word in _WORDS)})\b",
    re.I,
)
_VAGUE = re.compile(
    r"(?:\b(?:at least|at most|more than|less than|fewer than|over|about|approximately|around|"
    r"roughly|nearly|"
    r"almost|up to)|~|≈)\s*$",
    re.I,
)
_VAGUE_AFTER = re.compile(
    r"\s+(?:\w+ ){1,3}(?:that|which|of which) (?:are|is)(?:n't| not)\b|\s+or (?:more|fewer|less|so)\b|\+", re.I
)
_PRONOUN_BEFORE = re.compile(
    r"\b(?:the(?: only)?|this|that|each|every|which|another|other|any|small|large|red|blue|"
    r"yellow|green|purple|"
    r"orange|brown|black|first|second|third|last|next|right|left|by|no|same|new|single|missed|"
    r"miss)\s*$",
    re.I,
)
_PRONOUN_AFTER = re.compile(
    r"\s+(?:by one|at a time|another|can|to|more|of which|per|each|place|way|case|side|moment|"
    r"time)\b|[- ]by",
    re.I,
)
_OF_THEM_AFTER = re.compile(r"\s+(?:at|in|on|is|has|with)\b|\s*\(", re.I)
_N = rf"(?:\d+|{'|'.join(_UNITS)})"
# Numbers of a whole, before that of its part: "5 squares, 3 of which are small".
_WHOLE = re.compile(
    rf"\b{_N} \w+(?=,? of (?:which|whom)\b|,? (?:but |and )?only {_N} of (?:them|these|those)\b)|"
    rf"\b{_N} \w+: (?={_N} \w+,? (?:\w+ )?of (?:which|them|these|those)\b)|"
    rf"\b{_N}\b[^,.;\n]{{0,30}},\s(?={_N}\b(?<!one) of (?:which|whom))",
    re.I,
)
_ELSE = re.compile(
    r"(?:^|(?<=[\s,:;]))\(?\d{1,2}\)(?=[^\S\n]+[a-z])|"
    rf"(?<=\d)/\d+\b(?= (?:of|{_THING})\b)|(?<=\d) / \d+\b(?= (?:of|{_THING})\b)|"
    rf"\bout of a total of {_N}\b|"
    rf"\b(?:step|shape|line|event|item|case|option|figure|image|row|statement|swap|move|"
    rf"rule)\s#?\d+\b|#\d+|"
    rf"\b(?:out of|of|among|from|all|all of)(?: all)?(?: of)?(?: the| these| those|"
    rf" its)? {_N}\b(?= (?:\w+ ){{0,3}}{_THING}|\s*[.,;!)\n]|\s*$)"
    r"|\b\d+(?:\.\d+)? units?\b|\bdistance (?:of )?\d+(?:\.\d+)?|\b\d+\s?(?:by|x|×)\s?\d+\b",
    re.I,
)


_BESIDES = re.compile(r"\b(?:and|but|with)\s+$", re.I)
_AND = re.compile(r"(?:\s+\w+){1,5}\s*(?:,|,?\s*\b(?:and|plus)\b)\s*(?:\w+\s+)?", re.I)
# Counting aloud, up to the number that it leads to.
_ALOUD = re.compile(
    r"\b(?:1|one)\b(?:[\s,.]{1,5}(?:and )?(?:\d+|two|three|four|five|six|seven|eight|nine|"
    r"ten)\b){1,20}(?=\W+\w)",
    re.I,
)
_SUM_OF = re.compile(r"(?:total|count|number|sum|tally)\s*$", re.I)


def without_other_numbers(text: str) -> str:
    text = _ALOUD.sub(lambda found: re.split(r"\W+", found[0])[-1] if _is_counting(found[0]) else found[0], text)
    return _without(_ELSE, text)


def _without_wholes(text: str) -> str:
    return without_other_numbers(_without(_WHOLE, text))


def _without(numbers: re.Pattern[str], text: str) -> str:
    return numbers.sub(
        lambda found: found[0] if _SUM_OF.search(text, max(0, found.start() - 8), found.start()) else " ", text
    )


def _is_counting(sequence: str) -> bool:
    numbers = [_WORDS.get(word, word) for word in re.findall(r"\w+", sequence.lower()) if word != "and"]
    return len(numbers) > 2 and [str(number) for number in numbers] == [str(i + 1) for i in range(len(numbers))]


def _value(found: re.Match[str]) -> str:
    if found["zero"]:
        return "0"
    if found["only"]:
        return "1"
    if found["word"]:
        return str(_WORDS[re.sub(r"[ -]", " ", found["word"].lower())])
    whole, _, decimals = found["digits"].replace(",", "").partition(".")
    sign, whole = whole[: whole.startswith("-")], whole.lstrip("-").lstrip("0") or "0"
    return f"{sign}{whole}.{decimals}" if decimals.strip("0") else f"{sign if whole != '0' else ''}{whole}"


def _is_pronoun(passage: str, found: re.Match[str]) -> bool:
    if (found["word"] or "").lower() != "one":
        return False
    before = passage[max(0, found.start() - 20) : found.start()]
    if re.search(r"\b(?:only|just) the $", before, re.I):
        return False
    return bool(_PRONOUN_BEFORE.search(before) or _PRONOUN_AFTER.match(passage, found.end()))


def _is_vague(passage: str, found: re.Match[str]) -> bool:
    before = passage[max(0, found.start() - 20) : found.start()]
    return bool(_VAGUE.search(before) or _VAGUE_AFTER.match(passage, found.end()))


@lru_cache(maxsize=CACHED)
def find_numbers(passage: str) -> Mentions:
    found = [
        match for match in _NUMERAL.finditer(passage) if not (_is_pronoun(passage, match) or _is_vague(passage, match))
    ]
    mentions = definite(passage, (Mention(match.start(), match.end(), _value(match)) for match in found))
    others = [m for m in mentions if not _is_one_of_them(passage, m)]
    return _apart(passage, tuple(others) or mentions)


@lru_cache(maxsize=CACHED)
def _find(passage: str) -> Mentions:
    """Without what is said besides: of "3 large ones and no small ones", the 3."""
    found = find_numbers(passage)
    besides = [m.value == "0" and _BESIDES.search(passage[max(0, m.start - 10) : m.start]) for m in found]
    return tuple(m for m, aside in zip(found, besides, strict=True) if not aside) or found


def _is_one_of_them(passage: str, mention: Mention) -> bool:
    """Is it the first one in "two: one at the top, one below", and not a part of "two here and one is there"?"""
    if passage[mention.start : mention.end].lower() != "one" or not _OF_THEM_AFTER.match(passage, mention.end):
        return False
    if re.search(r"\b(?:only|just|exactly) $", passage[: mention.start], re.I):
        return False
    joined = re.search(r"\band $", passage[: mention.start], re.I) is not None
    return not joined or len(re.findall(r"\bone\b", passage, re.I)) > 1


def _apart(passage: str, mentions: Mentions) -> Mentions:
    """Of "2 small ones and 2 large ones", the second 2 is not the first one again."""
    apart = list(mentions[:1])
    for before, mention in pairwise(mentions):
        gap = passage[before.end : mention.start]
        again = before.value == mention.value and len(gap) < 80 and _AND.fullmatch(gap)
        apart.append(mention._replace(value=f"{mention.value} more") if again else mention)
    return tuple(apart)


_SUM_BEFORE = re.compile(r"(?:=|\btotal(?: of| is|:)?|\bmaking|\bmakes|\bgiving|\bgives)\s*(?:it\s+)?$", re.I)
_PART = re.compile(r" of (?:them|these|those)\b", re.I)
_SUM_AFTER = re.compile(r"(?:\s+\w+){0,4}?\s+(?:in total|altogether|overall|in all)\b", re.I)


def _choose(passage: str, mentions: Mentions) -> str | None:
    """Of several numbers, the one that is called their sum."""
    sums = {
        m.value
        for m in mentions
        if _SUM_BEFORE.search(passage[max(0, m.start - 20) : m.start]) or _SUM_AFTER.match(passage[m.end :])
    }
    parts = {m.value for m in mentions if re.search(r"\band $", passage[: m.start]) and _PART.match(passage, m.end)}
    if len(parts) == 1:
        return parts.pop()
    if len(sums) == 1:
        return sums.pop()
    first, *between, last = (_count(m) for m in mentions)
    if between and re.search(r"\bminus\b|\bwithout\b|\s-\s", passage):
        return mentions[-1].value if last == first - sum(between) else None
    if between and first == sum(between) + last:
        return mentions[0].value
    return mentions[-1].value if between and last == first + sum(between) else None


def _count(mention: Mention) -> float:
    return float(mention.value.removesuffix(" more"))


NUMBERS = Kind(_find, _choose, prepare=_without_wholes)
