"""Colours in a reply: the one that a shape has in the end, not those that it had."""

from __future__ import annotations

import re
from functools import lru_cache

from proctor.shapes.canvas import LARGE
from proctor.shapes.replies.reader import CACHED, Kind, Mention, Mentions, definite

_COLOURS = "|".join(LARGE.colours)
_COLOUR_WORD = re.compile(rf"\b(?<!ish )(?<!ish-)({_COLOURS})s?\b", re.I)
_PAST = re.compile(
    r"\b(?:was|were|used to be|formerly|originally|initially|previously|(?:start|began|"
    r"begin)\w*(?: out)?(?: as)?|"
    r"from|once)\s+(?:(?:a|an|the|small|large|first)\s+)*$",
    re.I,
)
_PAST_AFTER = re.compile(
    r"\s+(?:no more|first|until|at first|before|initially|originally|earlier|previously|"
    r"at the (?:start|beginning)|in the beginning)\b",
    re.I,
)
_UNCHANGED = re.compile(
    r"\bstay(?:s|ed)?\b|\bremain(?:s|ed)?\b|\bsince then\b|\b(?:nothing|never|not|n't|"
    r"no event) (?:has |have |"
    r"was |is )?chang|"
    r"\bunchanged\b|\bno changes?\b|\bstill is\b|\bas before\b",
    re.I,
)
_LATER = re.compile(r"\s+(?:later|afterwards|now|in the end|at the end|finally)\b", re.I)
_CHANGE = re.compile(
    r"(?:(?P<change>\bturn\w*|\bmak\w+|\bpaint\w+|\brecolou?r\w*|\bbec[ao]m\w+|\bto|\binto|->|"
    r"\bthen|\blater|"
    r"\bafterwards|\beventually|\bfinally|\bend\w* (?:up|as))|\bnow|\bis|'s|\bremain\w*|"
    r"\bstay\w*|\bas|"
    r"\bstill)\s+(?:(?:it|now|then|currently|again|a|an|the|small|large|finally|to|into|still|up|"
    r"as|colou?red|"
    r"in)\s+)*$",
    re.I,
)


@lru_cache(maxsize=CACHED)
def _find_colour(passage: str) -> Mentions:
    found = (Mention(m.start(), m.end(), m[1].lower()) for m in _COLOUR_WORD.finditer(passage))
    if not _UNCHANGED.search(passage):
        found = (m for m in found if not _PAST.search(passage[max(0, m.start - 40) : m.start]))
    mentions = definite(passage, found)
    return tuple(m for m in mentions if not _PAST_AFTER.match(passage, m.end)) or mentions


def _choose_colour(passage: str, mentions: Mentions) -> str | None:
    """The colour that a shape has or gets, not the one by which it is called: "the red square turns blue"."""
    if re.search(r"\bor\b|/", passage):
        return None
    cues = [(m, _CHANGE.search(passage[max(0, m.start - 40) : m.start])) for m in mentions]
    got = [m.value for m, cue in cues if cue or _LATER.match(passage, m.end)]
    changed = any(cue and cue["change"] for _, cue in cues) or len(re.findall(r"\bafter\b", passage, re.I)) > 1
    if re.search(r"\b(?:goes|went)\b", passage, re.I):
        return mentions[-1].value
    return got[-1] if changed or len(set(got)) == 1 else None


_DISCS = dict(
    zip(
        "🔴🔵🟡🟢🟣🟠🟤⚫🟥🟦🟨🟩🟪🟧🟫⬛",
        2 * ["red", "blue", "yellow", "green", "purple", "orange", "brown", "black"],
        strict=True,
    )
)

_SYMBOLS = re.compile(r"^[^\w\n]+$", re.M)


# An event of the history told again: it is about all shapes of a colour.
_EVENT = re.compile(
    rf"\b(?:all |every |the |any |each )*(?:of the )?(?:{_COLOURS}) (?:shapes|ones|figures|"
    rf"objects|things|squares|circles|triangles)"
    rf"(?: \w+)? (?:turns?|becomes?|became|turned|changes?|changed|switch(?:es)?|goes?|go|"
    rf"are (?:turned|recolou?red|swapped|"
    rf"exchanged))(?: \w+){{0,2}}? (?:{_COLOURS})\b(?: (?:shapes?|ones?))?(?: and vice versa)?|"
    rf"\b(?:swap|exchange|switch)(?:s|es|ed|d|ping|ing)?(?: \w+)? (?:{_COLOURS}) (?:and|with|for|"
    rf"<->|↔) (?:{_COLOURS})\b|"
    rf"\b(?:{_COLOURS}) (?:and|<->|↔|<=>) (?:{_COLOURS})(?: \w+)? (?:swap|exchange|switch|"
    rf"trade)\w*\b",
    re.I,
)


# By which colour a shape is called where it says no more than where it is.
_IS_AT = re.compile(
    rf"\b(?:small|large) (?P<colour>{_COLOURS}) \w+ (?:is|was|starts|begins)(?: \w+)? (?:at|"
    rf"in)\b",
    re.I,
)


def _with_arrows(text: str) -> str:
    text = _IS_AT.sub(lambda name: name[0].replace(name["colour"], " ", 1), _EVENT.sub(" ", text))
    text = _SYMBOLS.sub(lambda line: "".join(_DISCS.get(letter, letter) for letter in line[0]), text)
    return re.sub(r"(?<=[a-z]) > (?=[a-z])", " -> ", text)


_STEP = re.compile(r"^\W*(?:start\w*|first|then|next|after that|later)\b", re.I)


_NO_CHANGE = re.compile(
    r"^\W*(?:there (?:are|were) )?(?:no (?:further|more|other) (?:changes?|events?|swaps?)|"
    r"nothing (?:else )?change[sd]?)\b",
    re.I,
)


_AT_LAST = re.compile(r"\b(?:after|now|finally|in the end|at the end|ends?|becomes?|eventually)\b", re.I)
_ANSWER = re.compile(r"\banswer\b|\x02", re.I)


def _without_steps(sentences: list[str]) -> list[str]:
    """Without "Then blue.", where more follows."""
    while len(sentences) > 1 and _NO_CHANGE.match(sentences[-1]):
        sentences = sentences[:-1]
    answered = any(_ANSWER.search(sentence) for sentence in sentences[:-1])
    if sentences and not answered and _AT_LAST.search(sentences[-1]) and len(_find_colour(sentences[-1])) == 1:
        return sentences[-1:]
    return [sentence for sentence in sentences[:-1] if not _STEP.match(sentence)] + sentences[-1:]


COLOURS = Kind(_find_colour, _choose_colour, prepare=_with_arrows, join=_without_steps)
