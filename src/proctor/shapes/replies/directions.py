"""Directions in a reply: left, upper right, "below it and to the left", without the words that only look like one."""

from __future__ import annotations

import re
from functools import lru_cache

from proctor.shapes.replies import cues
from proctor.shapes.replies.markup import ITEM
from proctor.shapes.replies.reader import CACHED, Kind, Mention, Mentions, definite

_WORDS = {
    "Left": r"left(?:wards?|[- ]hand)?|west(?:wards?)?",
    "Right": r"right(?:wards?|[- ]hand)?|east(?:wards?)?",
    "Above": r"above|up|upper|upwards?|top|atop|higher|north(?:wards?)?|"
    r"over(?= (?:it|the (?:\w+ ){0,2}(?:square|circle|triangle|shape|one))|"
    r"\W*$)(?<!left over)(?<!moving over)",
    "Below": r"below|under|underneath|beneath|down|downwards?|bottom|lower|south(?:wards?)?",
}
WORD = re.compile("|".join(rf"(?P<{value}>\b(?:{words})\b)" for value, words in _WORDS.items()), re.I)
_BETWEEN = re.compile(
    r"(?:\s*(?:by )?\d+(?: units?| steps?| places?)?)?[\s,;/-]*(?:of|from|than)?\s*(?:it|them|"
    r"the (?:\w+ ){0,3}(?:square|circle|triangle|shape|one))?[\s,()]*(?:(?:and|"
    r"but also|plus|as well as)\b|"
    r"[&+])?\s*(?:(?:there|it is|it's|is|lies|also|slightly|further|farther|directly|more|far|"
    r"a (?:little )?bit|"
    r"a little|\d+|units?|steps?)\s+)*(?:to|on|towards?|at)?\s*(?:the|its)?\s*(?:side)?[\s-]*",
    re.I,
)
_NAMED = (
    r"(?:stated|shown|noted|explained|mentioned|described|seen|computed|listed|given|see|"
    r"analysis|lines?|steps?|"
    r"information|reasoning|list|from|the|as)"
)
_SIMILAR = re.compile(
    r"(?:(?<=\bi'm )|(?<=\bi am ))right\b|(?<!the )(?<!to )(?<!\bits )\b(?!(?-i:Right (?:Above|"
    r"Below)\b))right (?=next|near|beside|at|in|on|above|below|under|over|after|before|away|"
    r"now|there|here|by|between|beneath|to the left|to the right)|"
    r"(?m:^)[^\w\n]*ok(?:ay)?,? right\b(?=,)|"
    r"\b(?:that's|that is|you're|you are|all|quite) right\b|\balright\b|"
    r"\bright-angled\b|\bright (?:answer|angle|away|now|shape|choice|order|way)\b|"
    r"(?<!\d )\b(?:lines|steps|list|information|coordinates) (?:above|below)\b|\bleft ?over\b|"
    r"\bleft (?:with|out|behind|alone|unchanged|to (?:do|check|compare))\b|\bup and down\b|"
    r"\bnothing is left\b|"
    r"\b(?:nothing|units?|steps?|what's|what is) left\b|(?<!and )(?<!left )(?<!right )\bup (?:to|until|with)\b|"
    r"\b(?:top|bottom|left|right)(?: side| edge| half| part)? of the (?:canvas|picture|image|"
    r"grid|board)\b|"
    r"\bon top of (?:that|this|which)\b|\bbottom line\b|\btop of (?:the|my) (?:list|page|head)\b|"
    r"\b(?:the|my|see|in) (?!square|circle|triangle|shape|one|is)\w+ (?:above|below)(?=\s*(?:$|"
    r"[,.:;)]))"
    rf"|(?<!\d )(?<!one )(?<!two )(?<!three )(?<!four )(?<!five )\b{_NAMED} (?:above|"
    rf"below)(?=\s*(?:$|[,.:;)]))|"
    rf"\babove all\b|"
    rf"\b(?:the|see) (?:above|below)\b(?! the| and| left| right)|\babove-mentioned\b"
    r"|\b(?:lower|higher|upper|top|bottom)[- ](?:x|y|value|coordinate|number|one|row|bound|"
    r"vertical|"
    r"horizontal)\b(?:[- ](?:coordinate|value|position)s?)?|"
    r"\bfrom (?:the )?(?:top|bottom|left|right|above|below)(?: to (?:the )?(?:top|bottom|left|"
    r"right))?\b",
    re.I,
)
_UP_OR_DOWN = re.compile(r"\b(?:up|down)\b", re.I)
_MOVED = re.compile(
    r"(?:^|[\n:,;.!?>(-]|\d|\b(?:units?|steps?|mov\w+|straight|further|farther|diagonally|"
    r"slightly|is|it's|and|"
    r"but|or|then|net|go|goes|going|point\w*|lead\w*|also))\W*$",
    re.I,
)
_AND_ASIDE = re.compile(r"\s*(?:,|and|&|\+)?\s*(?:to (?:the|its) )?(?:left|right)\b", re.I)
_COMPASS = re.compile(r"\b(north|south)[- ]?(east|west)(?:ern|wards?)?\b", re.I)
_UNSPACED = re.compile(r"\b(above|below|upper|lower|top|bottom)(left|right)\b", re.I)
_SHORT_COMPASS = re.compile(r"\b([NS])([EW])\b")
_AXES = re.compile(
    r"\bvertical|\bhorizontal|\balso\b|\bboth\b|\bx\b.*\by\b|\by\b.*\bx\b|\bbecause\b.*\bbecause\b|"
    r"\bsince\b.*\bsince\b|\bso\b.*\bso\b|->.*->",
    re.I | re.S,
)


_ARROWS = {
    "↑": "above",
    "⬆": "above",
    "↓": "below",
    "⬇": "below",
    "←": "left",
    "⬅": "left",
    "->": "right",
    "↗": "above right",
    "↖": "above left",
    "↘": "below right",
    "↙": "below left",
}
_ARROW = re.compile("|".join(_ARROWS))
_SYMBOLS = re.compile(r"^[^\w\n]+$", re.M)


def _without_similar_words(text: str) -> str:
    text = _SYMBOLS.sub(lambda line: _ARROW.sub(lambda m: _ARROWS[m[0]], line[0]), text)
    text = _SHORT_COMPASS.sub(
        lambda m: f"{'above' if m[1] == 'N' else 'below'} {'right' if m[2] == 'E' else 'left'}", text
    )
    text = _SIMILAR.sub(" ", _COMPASS.sub(r"\1 \2", _UNSPACED.sub(r"\1 \2", text)))
    return _UP_OR_DOWN.sub(
        lambda m: (
            m[0] if _AND_ASIDE.match(text, m.end()) or _MOVED.search(text[max(0, m.start() - 20) : m.start()]) else ""
        ),
        text,
    )


@lru_cache(maxsize=CACHED)
def _find(passage: str) -> Mentions:
    joined: list[Mention] = []
    for word in WORD.finditer(passage):
        single = Mention(word.start(), word.end(), str(word.lastgroup))
        if joined and (pair := _join(passage, joined[-1], single)):
            joined[-1] = pair
        else:
            joined.append(single)
    mentions = definite(passage, joined)
    both = combine([mention.value for mention in mentions])
    if len(mentions) == 2 and both and _AXES.search(passage) and not re.search(r"\bor\b", passage):
        return (Mention(mentions[0].start, mentions[1].end, both),)
    return mentions


def _join(passage: str, a: Mention, b: Mention) -> Mention | None:
    """Two words for one direction: "above" and "to the left", or the same one twice."""
    between = passage[a.end : b.start]
    if len(between) > 60 or _BETWEEN.fullmatch(between) is None or re.search(r";\s*it\b", between, re.I):
        return None
    value = combine([a.value, b.value])
    return Mention(a.start, b.end, value) if value else None


OPPOSITES = {"Left": "Right", "Right": "Left", "Above": "Below", "Below": "Above"}


def invert(text: str) -> str:
    """The text with every direction turned into its opposite."""
    return WORD.sub(lambda word: OPPOSITES[str(word.lastgroup)].lower(), text)


def combine(values: list[str]) -> str | None:
    """One direction of several words; None where they contradict each other."""
    words = {word for value in values for word in value.split()}
    if {"Left", "Right"} <= words or {"Above", "Below"} <= words:
        return None
    return " ".join(word for word in ("Above", "Below", "Left", "Right") if word in words)


_LONE = re.compile(r"^\W*(?:\w+\W+){0,2}\w+\W*$")  # three words at most
_AXIS = re.compile(r"\b(?:[xy]|horizontal\w*|vertical\w*)\b", re.I)
_ANSWER = re.compile(r"\banswer\b", re.I)
_ACROSS = re.compile(r"\b(?:x|horizontal\w*)\b", re.I)
_UPRIGHT = re.compile(r"\b(?:y|vertical\w*)\b", re.I)
_IT = re.compile(r"\bit(?:'s| is)\b", re.I)
_FINAL = re.compile(r"\b(?:therefore|thus|hence|answer|direction|final|so the)\b|\x02", re.I)


def _join_axes(sentences: list[str]) -> list[str]:
    """Where one sentence tells left or right and the next one above or below, of the same shape, they are one."""
    joined = sentences[:1]
    for sentence in sentences[1:]:
        direction = _both(joined[-1], sentence) if _is_parallel(joined[-1], sentence) else None
        if direction:
            joined[-1] = direction
        else:
            joined.append(sentence)
    return joined


def _is_parallel(a: str, b: str) -> bool:
    if any(cue.search(a) for cue in (cues.SEEMING, cues.BELIEF, cues.PRELIMINARY, _ANSWER)):
        return False
    if _ACROSS.search(a) and _UPRIGHT.search(b) and not (_UPRIGHT.search(a) or _ACROSS.search(b)):
        return True
    if _FINAL.search(b) or a.startswith(ITEM) != b.startswith(ITEM):
        return False
    alike = any(rule.search(a) and rule.search(b) for rule in (_AXIS, _IT, _LONE))
    return alike or re.search(r"\balso\b", b) is not None


def _both(a: str, b: str) -> str | None:
    """The direction that two sentences give together, where each of them gives one, along different axes."""
    first, second = ({mention.value for mention in _find(sentence)} for sentence in (a, b))
    if len(first) != 1 or len(second) != 1 or any(" " in value for value in first | second):
        return None
    both = combine([*first, *second])
    return both if both and " " in both else None


DIRECTIONS = Kind(_find, prepare=_without_similar_words, join=_join_axes)
