"""Which shape a reply means that names several: by rank, by an order, by the directions in which they are seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial

from proctor.shapes.places import ORDINALS
from proctor.shapes.replies import cues
from proctor.shapes.replies.directions import DIRECTIONS
from proctor.shapes.replies.orders import orders
from proctor.shapes.replies.reader import CACHED, Kind, Mention, Mentions, bare
from proctor.shapes.replies.shapes import SHAPES
from proctor.shapes.replies.statements import full_names

_REFERENCE = re.compile(r"\b(?:nearest to|farthest from|seen from) the (\w+ \w+ \w+)\b", re.I)
_SAME = {
    "closest": "nearest",
    "furthest": "farthest",
    "left": "leftmost",
    "right": "rightmost",
    "top": "highest",
    "bottom": "lowest",
    "topmost": "highest",
    "uppermost": "highest",
    "bottommost": "lowest",
}
_NUMBERS = {word: i for i, word in enumerate(ORDINALS)}
_NUMBER = rf"(?:{'|'.join(sorted(ORDINALS, key=len, reverse=True))}|\d+(?:st|nd|rd|th))"
_END = "nearest|closest|farthest|furthest|highest|lowest|leftmost|rightmost|topmost|uppermost|bottommost"
_RANK = re.compile(
    rf"\b(?:furthest|farthest|most) (?:to the )?(?P<far>left|right)\b|"
    rf"\b(?:(?P<number>{_NUMBER}|next)[ -])?(?:(?:place|position|one|shape) )?(?:counting )?"
    rf"(?:(?P<end>{_END})(?! (?:to the )?(?:left|right)\b)|from (?:the )?(?P<side>left|right|top|bottom))\b|"
    rf"(?:^\W*|[;,]\s*)(?:position|place|rank|no\.?|number)\s*#?(?P<position>\d+)\b|"
    rf"^\W*(?P<only>top|bottom)(?=:)|^\W*(?P<next>next|then)(?=\s*:)|\b(?P<one>top|bottom|left|"
    rf"right)(?= (?:one|shape)\b)|"
    rf"\b(?P<alone>{_NUMBER})(?: (?:place|position|one))?(?=\s*(?:$|[,.;:(]|is\b|and\b|"
    rf"the (?:small|large)|(?:small|large)))",
    re.I,
)
_BEFORE_SHAPE = re.compile(
    r"(?:\s+(?:shape|one))?(?:\s+(?:to|from) the \S+)?\s*(?:\(\s*\)\s*)?(?:(?:is|was|must be|"
    r"comes|stands|"
    r"would be)(?:\s+at [xy] \(\)\s*\()?(?:\s+(?:now|then|"
    r"therefore))?|[:=(]|->)\s*(?:the |a )?|\s+(?:the )?",
    re.I,
)
_AFTER_SHAPE = re.compile(
    r"\s*\(\s*(?:the )?|\s*(?:\([^()]*\)\s*)?,?\s*(?:(?:is|was|as|being|stands?|sits?|comes?|ranks?|lies|ends up|"
    r"finishes|in|at)\s+)+"
    r"(?:(?:now|indeed|clearly|only|in)\s+)*(?:the )?|\s+(?:(?:that|which)\s+(?:is|was)\s+)?(?:the )?",
    re.I,
)

_LATER = -1  # the number of "the next lowest": it is not the first
Rank = tuple[int, str]  # the number, from 0, and the end from which is counted; no end where the reply gives none


def _rank(found: re.Match[str]) -> Rank:
    number = (found["number"] or found["alone"] or "").lower()
    end = (found["end"] or found["side"] or found["only"] or found["one"] or found["far"] or "").lower()
    if found["position"]:
        return int(found["position"]) - 1, ""
    if number == "next" or found["next"]:
        return _LATER, _SAME.get(end, end)
    position = int(number[:-2]) - 1 if number[:1].isdigit() else _NUMBERS.get(number, 0)
    return position, _SAME.get(end, end)


def _rank_of(passage: str, mention: Mention) -> Rank | None:
    """The rank that the passage gives to a shape: "the second lowest is the …", "the … is the second lowest"."""
    after = _AFTER_SHAPE.match(passage, mention.end)
    if after and (found := _RANK.match(passage, after.end())):
        return _rank(found)
    before = passage[max(0, mention.start - 80) : mention.start]
    *_, last = (None, *_RANK.finditer(before + passage[mention.start : mention.start + 6]))
    return _rank(last) if last and _BEFORE_SHAPE.fullmatch(before, last.end()) else None


def _may_be(said: Rank | None, asked: Rank) -> bool:
    """Whether a shape of this rank may be the one asked for: a number alone counts from the same end."""
    if said is None or said == asked or (not said[1] and said[0] == asked[0]):
        return True
    return said[0] == _LATER and said[1] in ("", asked[1]) and asked[0] > 0


def shapes_about(question: str) -> list[Kind]:
    """Without the shape from which is measured, and without those that are said to have another rank."""
    reference, asked = _REFERENCE.search(question), _RANK.search(question)
    if not reference and not asked:
        return [SHAPES]
    is_now = re.search(r"\bnow\?", question) is not None
    measured = reference[1].lower() if reference else ""
    rank = _rank(asked) if asked else None

    @lru_cache(maxsize=CACHED)
    def find(passage: str) -> Mentions:
        others = tuple(mention for mention in SHAPES.find(passage) if mention.value != measured)
        if rank is None:
            return _not_seen(passage, others)
        if is_now:
            others = tuple(m for m in others if not (_was(passage, m) or _EVENT.match(passage, m.end)))
        beyond = _NOT_LEVEL if rank[0] else _BEYOND.get(rank[1])
        after = _AFTER_OTHERS.match(passage)
        first = after.end() if after else 0
        return tuple(
            m
            for m in others
            if _may_be(_rank_of(passage, m), rank)
            and m.start >= first
            and not (beyond and beyond.match(passage, m.end))
            and not _THAN.search(passage, max(0, m.start - 12), m.start)
            and not _MORE_THAN_ONE.match(passage, m.end)
        )

    def tell(sentence: str) -> str | None:
        """The shape that a sentence gives the very rank asked for."""
        if rank is None and _ODD.search(sentence):
            names = {name for *_, name in full_names(sentence)}
            return names.pop() if len(names) == 1 else None
        if rank and not rank[0] and (further := _further(sentence, rank[1])):
            return further
        if cues.SEEMING.search(sentence) or _PAST.search(sentence):
            return None
        named = {
            m.value for m in SHAPES.find(sentence) if rank and (said := _rank_of(sentence, m)) and _may_be(said, rank)
        }
        return named.pop() if len(named) == 1 else None

    whole: Whole = partial(_ranked, measured, rank, is_now) if rank else partial(_odd_one, question)
    return [replace(SHAPES, find=find, tell=tell, whole=whole, join=partial(_without_rows_after, tell)), bare(SHAPES)]


_ROW = re.compile(r"\W*(?:[xyd] \(\)|-?\d+(?:\.\d+)?)\s*(?:->|[:;=])", re.I)


def _without_rows_after(tell: Callable[[str], str | None], sentences: list[str]) -> list[str]:
    """Without the rows of a table that come after the one with the rank asked for."""
    while len(sentences) > 1 and _ROW.match(sentences[-1]) and not tell(sentences[-1]) and any(map(tell, sentences)):
        sentences = sentences[:-1]
    return sentences


_PAST = re.compile(
    r"\bat (?:first|the (?:start|beginning|outset))\b|\b(?:initial|original|start)\w*\b|"
    r"\bbefore the (?:moves?|swaps?)\b",
    re.I,
)
_PRESENT = re.compile(r"\bbut\b|[,;:]|\bnow\b|\bafter\b|\bends?\b", re.I)


_EVENT = re.compile(r"(?: and the \S+)? swap(?:s|ped)? places\b|,? moves? \d+\b", re.I)


def _was(passage: str, mention: Mention) -> bool:
    """Is it said where the shape was before the moves?"""
    before = list(_PRESENT.finditer(passage, 0, mention.start))
    after = _PRESENT.search(passage, mention.end)
    clause = passage[before[-1].end() if before else 0 : after.start() if after else len(passage)]
    return _PAST.search(clause) is not None


_IS_MORE = (
    r"\s*(?:\(\s*[^()]*\)\s*)?,?\s*(?:is|lies|sits|stands)(?: (?:slightly|only|just|a (?:bit|"
    r"little)|much|even|still))*"
)
_BEYOND = {  # what is said of a shape that is less far towards the end asked for
    end: re.compile(rf"{_IS_MORE} (?:{words})\b", re.I)
    for end, words in {
        "lowest": "higher",
        "highest": "lower",
        "leftmost": "(?:further|farther|more) (?:to the )?right",
        "rightmost": "(?:further|farther|more) (?:to the )?left",
        "nearest": "farther|further",
        "farthest": "nearer|closer",
    }.items()
}
# What is said of a shape that is further towards an end than another one.
_COMPARATIVES = {
    "lowest": "lower",
    "highest": "higher",
    "leftmost": "(?:further|farther|more) (?:to the )?left",
    "rightmost": "(?:further|farther|more) (?:to the )?right",
    "nearest": "nearer|closer",
    "farthest": "farther|further",
}
_VALUES = {
    "lowest": "(?:smaller|lower) y",
    "highest": "(?:larger|greater|higher|bigger) y",
    "leftmost": "(?:smaller|lower) x",
    "rightmost": "(?:larger|greater|higher|bigger) x",
}
_MORE_THAN_ONE = re.compile(
    rf"{_IS_MORE} (?:{'|'.join(_COMPARATIVES.values())})(?: away)?(?: from \w+)? than (?:the |a )?(?:small|large)\b",
    re.I,
)


def _further(sentence: str, end: str) -> str | None:
    """The shape that is further still towards the end: "A is at 3, but B is lower"."""
    if found := re.search(
        rf"\b(?:no|none|nothing)\b[\w ]{{0,30}} (?:{_COMPARATIVES[end]}|{_VALUES.get(end, '(?!)')}) than (?:the |a )?",
        sentence,
        re.I,
    ):
        return next((name for start, _, name in full_names(sentence) if start == found.end()), None)
    further = re.compile(rf"{_IS_MORE} (?:{_COMPARATIVES[end]})(?: still| yet| away)*\s*(?:$|[,.;(])", re.I)
    *_, last = (None, *(m.value for m in SHAPES.find(sentence) if further.match(sentence, m.end)))
    return last


_NOT_LEVEL = re.compile(
    rf"{_IS_MORE} (?:higher|lower|(?:further|farther|more) (?:to the )?(?:left|right)|nearer|closer|farther|further)\b",
    re.I,
)
_AFTER_OTHERS = re.compile(r"\W*(?:right )?after [^.;:]*\b(?:comes?|follows|we (?:have|get|find))\b", re.I)
_THAN = re.compile(r"\bthan (?:the |a )?$", re.I)
_DIRECTION_AFTER = re.compile(
    r"\s*(?:\([^()]*\)\s*)?(?:is|are|lies?|sits?|->|:|;|=|both|in|at|to the|the|direction|\s|"
    r",)*\s*(?:above|below|upper|lower|top|bottom|"
    r"north|south)[- ]?(?:left|right|east|west)?\b",
    re.I,
)


def _is_seen(passage: str, mention: Mention) -> bool:
    """Is it only said in which direction it is, and not that it alone is there?"""
    before = passage[max(0, mention.start - 12) : mention.start]
    if re.search(r"\bonly (?:the )?$", before, re.I) or re.search(r"\bothers?\b|\btwo\b", passage[mention.end :], re.I):
        return False
    return _DIRECTION_AFTER.match(passage, mention.end) is not None


def _not_seen(passage: str, mentions: Mentions) -> Mentions:
    """Without those of which only the direction is said: "A and B are above left, C is above right"."""
    kept: list[Mention] = []
    after: Mention | None = None  # the one after it, where that is left out
    for mention in reversed(mentions):
        joined = after and re.fullmatch(r"\s*,?\s*(?:and\s+)?(?:the\s+)?", passage[mention.end : after.start])
        if joined or _is_seen(passage, mention):
            after = mention
        else:
            kept.append(mention)
            after = None
    return tuple(reversed(kept))


Whole = Callable[[Sequence[str]], str | None]
_AXES_OF_ENDS = {
    "leftmost": ("x", True),
    "rightmost": ("x", False),
    "lowest": ("y", True),
    "highest": ("y", False),
    "nearest": ("d", True),
    "farthest": ("d", False),
}


_FIRST_LINE = re.compile(r"\W*shapes stand in a line\b", re.I)


def _ranked(measured: str, rank: Rank, is_now: bool, sentences: Sequence[str]) -> str | None:
    """The shape of the rank asked for in a list that begins at the end from which is counted."""
    number, end = rank
    if is_now:
        sentences = [sentence for sentence in sentences if not (_PAST.search(sentence) or _FIRST_LINE.match(sentence))]
    axis, rising = _AXES_OF_ENDS[end]
    for order in orders(sentences, full_names):
        if order.is_line and not order.axis and not (is_now and axis == "y"):
            continue  # shapes stand in a line from top to bottom only where they are swapped
        names = [name for name in order.names if name != measured]
        if order.axis not in ("", axis) or number >= len(names):
            continue
        if order.rising == rising:
            return names[number]
        if order.is_line:
            return names[-1 - number]
    return None


_THREE = re.compile(r"\bthe (\w+ \w+ \w+), the (\w+ \w+ \w+) and the (\w+ \w+ \w+)\. Which one is the odd one out")
_ODD = re.compile(r"^(?!.*(?:\bnot\b|n't\b)).*\bodd (?:one|man|shape)\b", re.I)
_ALL_BUT = re.compile(
    r"\b(?:everything|all|each|every one|the others)\b[^.;]{0,20}\b(?:but|except(?: for)?) (?:the )?", re.I
)
_ALIKE = re.compile(r"\b(?:same (?:direction|quadrant|side|area)|both|share)\b", re.I)


def _odd_one(question: str, sentences: Sequence[str]) -> str | None:
    """Of three shapes, the one that is not said to be in the direction of the two others."""
    three = _THREE.search(question)
    if not three:
        return None
    directions: dict[str, set[str]] = {name: set() for name in three.groups()}
    odd: set[str] = set()
    for sentence in sentences:
        if re.search(r"\b(?:or|not|if|whether)\b|n't\b", sentence, re.I):
            continue
        if but := _ALL_BUT.search(sentence):
            odd |= {name for start, _, name in full_names(sentence) if start == but.end()}
            continue
        found = [(start, end, name) for start, end, name in full_names(sentence) if name in directions]
        label = {mention.value for mention in DIRECTIONS.find(sentence.partition(":")[0])} if ":" in sentence else set()
        if label and found and sentence.index(":") < found[0][0]:  # "Below left: A and B"
            for *_, name in found:
                directions[name] |= label
            continue
        names = {name for _, _, name in found}
        if len(names) == 2 and _ALIKE.search(sentence):
            odd |= set(directions) - names
        elif len(names) == len(found):
            stop, shared = len(sentence), set[str]()
            for start, end, name in reversed(found):
                between = sentence[end:stop]
                if not re.fullmatch(r"\s*,?\s*(?:and|,)?\s*(?:the )?", between):
                    shared = {mention.value for mention in DIRECTIONS.find(between)}
                directions[name] |= shared
                stop = start
    if len(odd) == 1:
        return odd.pop()
    if odd or any(len(values) != 1 for values in directions.values()):
        return None
    seen = [next(iter(values)) for values in directions.values()]
    unique = [name for name, value in zip(directions, seen, strict=True) if seen.count(value) == 1]
    return unique[0] if len(unique) == 1 else None
