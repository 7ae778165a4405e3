"""Colours in a reply: the one that a shape has in the end, not those that it had."""

from __future__ import annotations

import re
from functools import lru_cache

from proctor.shapes.canvas import LARGE
from proctor.shapes.replies.reader import CACHED, Kind, Mention, Mentions, definite

_COLOURS = "|".join(LARGE.colours)
_COLOUR_WORD = re.compile(rf"\b({_COLOURS})s?\b", re.I)
_PAST = re.compile(
    r"\b(?:was|were|used to be|formerly|originally|initially|previously|(?:start|began|begin)\w*(?: out)?(?: as)?|"
    r"from|once)\s+(?:(?:a|an|the|small|large|first)\s+)*$",
    re.I,
)
_PAST_AFTER = re.compile(
    r"\s+(?:no more|first|until|at first|before|initially|originally|earlier|previously|"
    r"at the (?:start|beginning)|in the beginning)\b",
    re.I,
)
_LATER = re.compile(r"\s+(?:later|afterwards|now|in the end|at the end|finally)\b", re.I)
_CHANGE = re.compile(
    r"(?:(?P<change>\bturn\w*|\bmak\w+|\bpaint\w+|\brecolou?r\w*|\bbec[ao]m\w+|\bto|\binto|->|\bthen|\blater|"
    r"\bafterwards|\beventually|\bfinally|\bend\w* (?:up|as))|\bnow|\bis|'s|\bremain\w*|\bstay\w*|\bas|"
    r"\bstill)\s+(?:(?:it|now|then|currently|again|a|an|the|small|large|finally|to|into|still|up|as|colou?red|"
    r"in)\s+)*$",
    re.I,
)


@lru_cache(maxsize=CACHED)
def _find_colour(passage: str) -> Mentions:
    found = (Mention(m.start(), m.end(), m[1].lower()) for m in _COLOUR_WORD.finditer(passage))
    if not re.search(r"\bstays?\b|\bremains?\b|\bsince then\b", passage, re.I):
        found = (m for m in found if not _PAST.search(passage[max(0, m.start - 40) : m.start]))
    mentions = definite(passage, found)
    return tuple(m for m in mentions if not _PAST_AFTER.match(passage, m.end)) or mentions


def _choose_colour(passage: str, mentions: Mentions) -> str | None:
    """The colour that a shape has or gets, not the one by which it is called: "the red square turns blue"."""
    if re.search(r"\bor\b|/", passage):
        return None
    cues = [(m, _CHANGE.search(passage[max(0, m.start - 40) : m.start])) for m in mentions]
    got = [m.value for m, cue in cues if cue or _LATER.match(passage, m.end)]
    changed = any(cue and cue["change"] for _, cue in cues)
    if re.search(r"\b(?:goes|went)\b", passage, re.I):
        return mentions[-1].value
    return got[-1] if changed or len(set(got)) == 1 else None


def _with_arrows(text: str) -> str:
    return re.sub(r"(?<=[a-z]) > (?=[a-z])", " -> ", text)


COLOURS = Kind(_find_colour, _choose_colour, prepare=_with_arrows)
