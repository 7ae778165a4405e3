"""Colours in a reply: the one that a shape has in the end, not those that it had."""

from __future__ import annotations

import re
from functools import lru_cache

from proctor.shapes.canvas import FORMS, LARGE
from proctor.shapes.replies.markup import ITEM
from proctor.shapes.replies.reader import CACHED, Kind, Mention, Mentions, definite

_COLOURS = "|".join(LARGE.colours)
_COLOUR_WORD = re.compile(rf"\b(?<!ish )(?<!ish-)({_COLOURS})s?\b", re.I)
_PAST = re.compile(
    r"\b(?:was|were|used to be|formerly|originally|initially|previously|(?:start|began|"
    r"begin)\w*(?: out)?(?: as)?|"
    r"original:|from|once)\s+(?:(?:a|an|the|small|large|first)\s+)*$",
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


_FORM_AFTER = re.compile(rf" (?:{'|'.join(FORMS)})\b", re.I)


@lru_cache(maxsize=CACHED)
def _find_colour(passage: str) -> Mentions:
    found = (Mention(m.start(), m.end(), m[1].lower()) for m in _COLOUR_WORD.finditer(passage))
    if not _UNCHANGED.search(passage):
        found = (m for m in found if not _PAST.search(passage[max(0, m.start - 40) : m.start]))
    mentions = definite(passage, found)
    mentions = tuple(m for m in mentions if not _PAST_AFTER.match(passage, m.end)) or mentions
    # By what the shape is called at first: "The large blue circle turns green".
    first = next((i for i, m in enumerate(mentions) if not _FORM_AFTER.match(passage, m.end)), 0)
    return mentions[first:]


def _choose_colour(passage: str, mentions: Mentions) -> str | None:
    """The colour that a shape has or gets, not the one by which it is called: "the red square turns blue"."""
    if re.search(r"\bor\b|/", passage):
        return None
    cues = [(m, _CHANGE.search(passage[max(0, m.start - 40) : m.start])) for m in mentions]
    got: list[str] = []
    last: Mention | None = None  # a change and what is joined to it: "painted blue and then red"
    for m, cue in cues:
        joined = last and re.search(r"\b(?:and|then|later)\s+(?:then |finally |later )?$", passage[last.end : m.start])
        if cue or joined or _LATER.match(passage, m.end):
            got.append(m.value)
            last = m
    changed = any(cue and cue["change"] for _, cue in cues) or len(re.findall(r"\bafter\b", passage, re.I)) > 1
    if re.search(r"\b(?:goes|went|history|sequence|progression|changes)\b", passage, re.I):
        return mentions[-1].value
    if changed:
        return got[-1] if got else mentions[-1].value
    return got[0] if len(set(got)) == 1 else None


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
    rf"\b(?:all |every |the )*(?:small |large )?(?:squares|circles|triangles|shapes) (?:all )?"
    rf"(?:turn|become|change to|are (?:turned|recolou?red|painted)) (?:{_COLOURS})\b|"
    rf"\b(?:all |every |the |any |each )*(?:of the )?(?:{_COLOURS}) (?:shapes|ones|figures|"
    rf"objects|things|squares|circles|triangles)"
    rf"(?: \w+)? (?:turns?|becomes?|became|turned|changes?|changed|switch(?:es)?|goes?|go|"
    rf"are (?:turned|recolou?red|swapped|"
    rf"exchanged))(?: \w+){{0,2}}? (?:{_COLOURS})\b(?: (?:shapes?|ones?))?(?: and vice versa)?|"
    rf"\b(?:swap|exchange|switch)(?:s|es|ed|d|ping|ing)?(?: \w+)? (?:{_COLOURS}) (?:and|with|for|"
    rf"<->|↔) (?:{_COLOURS})\b|"
    rf"\b(?:{_COLOURS})\s*->\s*(?:{_COLOURS})\W{{1,3}}(?=(?:does|is|has|would|do)(?:n't| not| no)\b)|"
    rf"\b(?:{_COLOURS}) (?:and|<->|↔|<=>) (?:{_COLOURS})(?: \w+)? (?:swap|exchange|switch|"
    rf"trade)\w*\b",
    re.I,
)


_NUMBERED_EVENT = re.compile(r"\b(?:event|step|swap|change|rule) ?#?\d+ ?\([^()\n]*->[^()\n]*\)", re.I)
# By which colour a shape is called where it says no more than where it is.
_IS_AT = re.compile(
    rf"\b(?:small|large) (?P<colour>{_COLOURS}) \w+ (?:is|was|starts|begins)(?: \w+)? (?:at|"
    rf"in)\b",
    re.I,
)


def _with_arrows(text: str) -> str:
    text = _NUMBERED_EVENT.sub(" -> ", text)
    text = _IS_AT.sub(lambda name: name[0].replace(name["colour"], " ", 1), _EVENT.sub(" ", text))
    text = _SYMBOLS.sub(lambda line: "".join(_DISCS.get(letter, letter) for letter in line[0]), text)
    return re.sub(r"(?<=[a-z]) > (?=[a-z])", " -> ", text)


_STEP = re.compile(r"^\W*->|^\W*(?:start\w*|first|then|next|after that|later)\b", re.I)


_NO_CHANGE = re.compile(
    r"^\W*(?:there (?:are|were) )?(?:no (?:further|more|other) (?:changes?|events?|swaps?)|"
    r"nothing (?:else )?change[sd]?)\b",
    re.I,
)


_COLOUR_OF_NAME = rf"(?:{_COLOURS})(?= (?:{'|'.join(FORMS)})\b)"
_ONLY_NAMES = re.compile(
    rf"(?:(?!\b(?:{_COLOURS})\b).|{_COLOUR_OF_NAME})*{_COLOUR_OF_NAME}(?:(?!\b(?:{_COLOURS})\b).)*", re.I
)
_LAST_EVENT = re.compile(rf"{ITEM}(?!.*\b(?:{'|'.join(FORMS)})\b).*->[^>]*\w[^>]*$", re.I)
_STUB = re.compile(r"\W*(?:event|step|swap|change) ?#?\d*\W*", re.I)
_UNAFFECTED = re.compile(
    r"\b(?:unaffected|unchanged|irrelevant|not affected|no (?:change|effect)|n/a|(?:not|"
    r"n't) (?:apply|affect|concern|matter|change))\b",
    re.I,
)


def _is_unaffected(sentence: str) -> bool:
    """Is it an event that does nothing to the shape?"""
    return _UNAFFECTED.search(sentence) is not None and not _find_colour(sentence)


_AT_LAST = re.compile(r"\b(?:after|now|finally|in the end|at the end|ends?|becomes?|eventually)\b", re.I)
_ANSWER = re.compile(r"\banswer\b|\x02", re.I)


def _without_steps(sentences: list[str]) -> list[str]:
    """Without "Then blue.", where more follows."""
    ended = len(sentences)
    while len(sentences) > 1 and (_NO_CHANGE.match(sentences[-1]) or _is_unaffected(sentences[-1])):
        sentences = sentences[:-1]
    if sentences and _STUB.fullmatch(sentences[-1]):  # an event of which nothing is left, since it is of others
        return _without_steps(sentences[:-1]) if len(sentences) < ended else []
    told = [sentence for sentence in sentences if not _ONLY_NAMES.fullmatch(sentence)]  # not only what it is called
    if sentences[-1:] == told[-1:] and any(map(_find_colour, told)):
        sentences = told
    if sentences and _LAST_EVENT.match(sentences[-1]):  # events in a list, each with what comes of it
        return [sentences[-1].lstrip(ITEM)]
    answered = any(_ANSWER.search(sentence) for sentence in sentences[:-1])
    if sentences and not answered and _AT_LAST.search(sentences[-1]) and len(_find_colour(sentences[-1])) == 1:
        return sentences[-1:]
    return [sentence for sentence in sentences[:-1] if not _STEP.match(sentence)] + sentences[-1:]


_PLACE = re.compile(r"[(\[]\s*(?:x\s*[=:]\s*)?([-−–]?\d+)\s*[,;]\s*(?:y\s*[=:]\s*)?([-−–]?\d+)\s*[)\]]", re.I)
_SENTENCE = re.compile(r"(?<=[.;\n])|\b(?=(?:but|while|whereas|so)\b)")
_CLAUSE = re.compile(r"(?<=,)(?!\s*[-−–\d])|\b(?=and\b)")


def without_other_places(text: str, question: str) -> str:
    """The text without the colours of shapes at other places than the one asked about."""
    if not (asked := _PLACE.search(question)):
        return text
    place = _place(asked)
    sentences = []
    for sentence in _SENTENCE.split(text):
        places = {_place(found) for found in _PLACE.finditer(sentence)}
        clauses = _CLAUSE.split(sentence) if place in places else [sentence]
        other = False
        if places <= {place}:
            clauses = []
            sentences.append(sentence)
        for clause in clauses:
            if named := {_place(found) for found in _PLACE.finditer(clause)}:
                other = place not in named
            sentences.append(_COLOUR_WORD.sub("", clause) if other else clause)
    return "".join(sentences)


def _place(found: re.Match[str]) -> tuple[int, ...]:
    return tuple(int(number.replace("−", "-").replace("–", "-")) for number in found.groups())


COLOURS = Kind(_find_colour, _choose_colour, prepare=_with_arrows, join=_without_steps, steps=True)
