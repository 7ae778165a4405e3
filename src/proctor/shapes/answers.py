"""What a reply answers: Yes or No, a number, a direction, a colour, a shape, or one of a set of your own.

Each parser takes the whole reply and returns the answer in the form that the tasks use, or None where a person could
not tell. How the place of the answer is found is described in `proctor.shapes.replies`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from proctor.shapes.canvas import FORMS, LARGE, SIZES
from proctor.shapes.directions import DIRECTIONS
from proctor.shapes.markup import ITEM, plain_sentences
from proctor.shapes.numerals import NUMBERS
from proctor.shapes.replies import CACHED, Kind, Mention, Mentions, definite, read_reply

UNDETERMINED = "Cannot be determined"


def parse_yes_no(text: str) -> str | None:
    return read_reply(text, _POLAR)


def parse_entailment(text: str) -> str | None:
    """Yes, No or Cannot be determined."""
    return read_reply(text, _ENTAILMENT)


def parse_integer(text: str) -> str | None:
    """An integer in digits or in words; "none" is 0."""
    answer = read_reply(text, NUMBERS)
    return answer if answer is not None and re.fullmatch(r"-?\d+", answer) else None


def parse_direction(text: str) -> str | None:
    """Left, Right, Above, Below, or two of them, such as Above Left."""
    return read_reply(text, DIRECTIONS)


def parse_colour(text: str) -> str | None:
    return read_reply(text, _COLOUR)


def parse_shape(text: str) -> str | None:
    """A shape by size, colour and form, in any order."""
    return read_reply(text, _SHAPE)


def parse_choice(text: str, choices: Sequence[str]) -> str | None:
    """One of the choices, in their own spelling; upper and lower case are the same, except in single letters."""
    return read_reply(text, _choice_of(tuple(choices)))


@lru_cache(maxsize=64)
def _choice_of(choices: tuple[str, ...]) -> Kind:
    spelled = {" ".join(plain_sentences(choice.casefold())): choice for choice in choices}
    if len(spelled) < len(set(choices)) or "" in spelled:
        raise ValueError(f"choices that cannot be told apart in a text: {', '.join(choices)}")
    longest_first = sorted(spelled, key=len, reverse=True)
    words = "|".join(r"\s+".join(map(re.escape, key.split())) for key in longest_first if len(key) > 1)
    # A single letter is an answer where it stands alone: "A." and "(A)", but not "A square".
    letters = "".join(re.escape(spelled[key]) for key in longest_first if len(key) == 1)
    pattern = re.compile(
        rf"(?<!\w)(?:(?i:{words or '(?!)'})|[{letters or chr(0)}](?=\W*$|\s*[^\w\s]|\s+(?:because|since|as|is|and|or)\b))(?!\w)"
    )

    @lru_cache(maxsize=CACHED)
    def find(passage: str) -> Mentions:
        found = ((m.start(), m.end(), " ".join(m[0].casefold().split())) for m in pattern.finditer(passage))
        return definite(passage, (Mention(start, end, spelled[key]) for start, end, key in found))

    return Kind(find, polar="no" in spelled)


# -- Yes, No, Cannot be determined ----------------------------------------------------------------

_YES = re.compile(
    r"\b(?:yes|yep|yeah|yup|affirmative)\b|\b(?:not|n't|isn't)\s+(?:false|incorrect|untrue)\b|\b(?<!not )(?<!n't )(?<!opposite is )(?<!reverse is )true\b"
    r"|(?:^\W*|\b(?:that|this|it|statement|claim|which)(?: is|'s) )correct\b(?! answer)|\bi (?:think|believe) so\b",
    re.I,
)
_NO = re.compile(
    r"\b(?:nope|nah|negative|untrue)\b|\b(?<!not )(?<!n't )(?:false|incorrect)\b|(?:\bnot|n't)\s+(?:true|correct|the case)\b"
    r"|\b(?:definitely|certainly|absolutely|of course|clearly) not\b|\bnot at all\b"
    r"|\bno(?=\s*(?:$|[^\w\s'-])|\s+-|\s+(?:and|or|because|since|as|it|there|this|that|they|i|we|but|is|if|would|are|seem)\b)(?!\.\s*\d)",
    re.I,
)
_LETTER = re.compile(r"^\W*([yn])\W*$", re.I)


@lru_cache(maxsize=CACHED)
def _find_polar(passage: str) -> Mentions:
    if letter := _LETTER.match(passage):
        return (Mention(letter.start(1), letter.end(1), "Yes" if letter[1] in "yY" else "No"),)
    found = [Mention(match.start(), match.end(), "Yes") for match in _YES.finditer(passage)]
    found += [Mention(match.start(), match.end(), "No") for match in _NO.finditer(passage)]
    return definite(passage, sorted(found))


_THERE = r"\bthere(?:'s| is| are| was| were| exists?| still is| still are)\b"
_DENIAL = re.compile(
    rf"{_THERE}(?: now| currently| still)*(?: no| not| none)\b(?! doubt| need| other| way| one else| more need)|"
    r"\bthere (?:is|are|was|were|does)n't\b|\b(?:is|are|does|do)(?: not|n't)\W*$|\b(?:is|are|does|do)(?: not|n't) (?:between|present|exist|there|contain|hold|"
    r"satisfied|met|on the canvas|in the canvas)\b|\bno longer (?:present|there|exists?|on|in)\b|\b(?:do not|don't|cannot|can't) (?:see|find) (?:an?|any|one|such)\b(?! image| picture| canvas)|\b(?:absent|missing)\W*$|"
    r"\b(?:see|sees|find|found|contains?|has|have|includes?|shows?) no (?:\w+ ){0,3}(?:shape|square|circle|triangle)s?\b|"
    r"^\W*(?:no|none of)\b(?! other)[^.]*\b(?:shape|square|circle|triangle)s?\b",
    re.I,
)
_ASSERTION = re.compile(
    rf"{_THERE}(?: now| currently| still| indeed)*(?:\W*$| (?:an?|one|two|three|four|five|\d+|exactly|at least|such)\b)|"
    r"^\W*it (?:is|does)\W*$|^\W*such an? [\w ]{1,40} exists\b|\b(?:is|lies|sits)(?: still| indeed| now)? (?:between|present|there|on the canvas|in the canvas)\b|"
    r"\b(?:statement|claim|condition) holds\b|\b(?:canvas|list|description|picture|image) (?:contains|includes|has|shows) (?:an?|one|two|\d+)\b[^,;]*$|"
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


_POLAR = Kind(_find_polar, state=_state, polar=True)

_KNOW = (
    r"(?:be\s+)?(?:\w+ly\s+)?(?:determined?|known?|inferred|infer|deduced?|established?|concluded?|decided?|tell|told|say|said|derived?|"
    r"answered|settled|ascertain(?:ed)?|compared?)"
)
_OPEN = re.compile(
    r"\b(?:cannot|can't|can not|could not|couldn't|not possible to|isn't possible to|impossible to|unable to|no way to|no way of|"
    rf"not enough (?:\w+ )?to|insufficient (?:\w+ )?to|not able to|not allow us to|not be possible to)\s+{_KNOW}(?!ing you)\b"
    r"|\b(?:cannot|can't|can not) (?:definitively |conclusively )?(?:be )?(?:determined?|told|known)\b"
    r"|\bno way (?:to|of) (?:knowing|telling)\b|\b(?:not|n't) (?:determinable|determined)\b|\b(?:un|in)determin(?:ed|ate|able)\b"
    r"|(?:\binsufficient|(?:\bnot|n't)(?: \w+){0,2} enough|\binadequate) (?:info|information|data|evidence|details)\b|\binconclusive\b|\bundecidable\b"
    rf"|\b(?:no|neither) (?:\w+ ){{0,6}}can (?:be drawn|be made|{_KNOW})\b"
    r"|\bmay or may not\b|\b(?:could be|it's|it is) either\b",
    re.I,
)
_PERHAPS_OPEN = re.compile(r"\b(?:unknown|unclear|ambiguous|insufficient|not (?:specified|stated|given))\b", re.I)


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


_ENTAILMENT = Kind(_find_entailment, state=_state_briefly, polar=True, exclusive=True)

# -- colours --------------------------------------------------------------------------------------

_COLOURS = "|".join(LARGE.colours)
_COLOUR_WORD = re.compile(rf"\b({_COLOURS})s?\b", re.I)
_PAST = re.compile(
    r"\b(?:was|were|used to be|formerly|originally|initially|previously|(?:start|began|begin)\w*(?: out)?(?: as)?|from|once)\s+"
    r"(?:(?:a|an|the|small|large)\s+)*$",
    re.I,
)
_PAST_AFTER = re.compile(
    r"\s+(?:at first|before|initially|originally|earlier|previously|at the (?:start|beginning)|in the beginning)\b",
    re.I,
)
_CHANGE = re.compile(
    r"(?:(?P<change>\bturn\w*|\bmak\w+|\bpaint\w+|\brecolou?r\w*|\bbec[ao]m\w+|\bto|\binto|->|\bthen|\bfinally|\bend\w* (?:up|as))"
    r"|\bnow|\bis|'s|\bremain\w*|\bstay\w*|\bas|\bstill)\s+"
    r"(?:(?:it|now|then|currently|again|a|an|the|small|large|finally|to|into|still|up|as|colou?red|in)\s+)*$",
    re.I,
)


@lru_cache(maxsize=CACHED)
def _find_colour(passage: str) -> Mentions:
    found = (Mention(m.start(), m.end(), m[1].lower()) for m in _COLOUR_WORD.finditer(passage))
    mentions = definite(passage, (m for m in found if not _PAST.search(passage[max(0, m.start - 40) : m.start])))
    return tuple(m for m in mentions if not _PAST_AFTER.match(passage, m.end)) or mentions


def _choose_colour(passage: str, mentions: Mentions) -> str | None:
    """The colour that a shape has or gets, not the one by which it is called: "the red square turns blue"."""
    if re.search(r"\bor\b|/", passage):
        return None
    cues = [(m.value, _CHANGE.search(passage[max(0, m.start - 40) : m.start])) for m in mentions]
    got = [value for value, cue in cues if cue]
    changed = any(cue and cue["change"] for _, cue in cues)
    return got[-1] if changed or len(set(got)) == 1 else None


_COLOUR = Kind(_find_colour, _choose_colour)

# -- shapes ---------------------------------------------------------------------------------------

_SPELLED = {"big": "large", "little": "small", "tiny": "small"}
_ATTRIBUTES = {
    **{word: (0, word) for word in SIZES},
    **{word: (0, plain) for word, plain in _SPELLED.items()},
    **{colour: (1, colour) for colour in LARGE.colours},
    **{form: (2, form) for form in FORMS},
}
_ATTRIBUTE = re.compile(rf"(?<![a-z])({'|'.join(_ATTRIBUTES)})s?(?![a-z])", re.I)
_LABEL = re.compile(r"\b(?:sized?|colou?r(?:ed)?|form|shape|type|kind)\b", re.I)
_GLUE = re.compile(
    rf"(?:[\s,;:=/'\"()*{ITEM}-]|\.\s+(?=it is|it's|{_LABEL.pattern})|'s\b|\b(?:the|one|and|in|of|is|a|an|its|it|that|which|with|shape's)\b|{_LABEL.pattern})*",
    re.I,
)
_SPACE = re.compile(r"[ -]*")
_NAME = re.compile(r"\b\w+~\w+~\w+\b")


Words = list[re.Match[str]]


def _name_shapes(text: str) -> str:
    """The text with every shape that has a size, a colour and a form called by them, in this order, as one word."""
    pieces, position = [], 0
    for words in _shapes(text):
        pieces += [text[position : words[0].start()], _name(words)]
        position = words[-1].end()
    return "".join([*pieces, text[position:]])


def _shapes(text: str) -> Iterator[Words]:
    """The words of each shape. Where a run has others as well, only those that commas part from the others."""
    for run in _runs(text, list(_ATTRIBUTE.finditer(text)), _GLUE):
        threes = [run[i : i + 3] for i in range(0, len(run), 3)]
        parts = threes if all(map(_name, threes)) else _runs(text, run, _SPACE)
        yield from filter(_name, parts)


def _runs(text: str, words: Words, glue: re.Pattern[str]) -> Iterator[Words]:
    """The words in groups, where only glue is between those of a group."""
    run: Words = []
    for word in words:
        between = text[run[-1].end() : word.start()] if run else ""
        if len(between) > 40 or not glue.fullmatch(between) or ("\n" in between and not _LABEL.search(between)):
            yield run
            run = []
        run.append(word)
    if run:
        yield run


def _name(words: Words) -> str:
    """Size, colour and form; nothing where it is not one of each."""
    kinds = dict(_ATTRIBUTES[word[1].lower()] for word in words)
    return "~".join(kinds[sort] for sort in range(3)) if len(words) == len(kinds) == 3 else ""


@lru_cache(maxsize=CACHED)
def _find_shape(passage: str) -> Mentions:
    return definite(passage, (Mention(m.start(), m.end(), m[0].replace("~", " ")) for m in _NAME.finditer(passage)))


_BEFORE_PREDICATE = re.compile(
    r"(?:\b(?:is|be|are)|'s|:|=|->)\s*(?:(?:the|a|an|now|then|therefore|thus|indeed)\s+)*$", re.I
)
_SUBJECT = re.compile(
    r"\s*(?:,[^,]{1,60},)?\s*(?:is|was|comes|has|would be|must be|makes|becomes|ends)\b"
    r"(?!\s+(?:\w+ly\s+|just\s+)?(?:to the (?:left|right)|above|below|left of|right of|higher|lower|further|farther|closer|nearer|next to)\b)",
    re.I,
)


def _choose_shape(passage: str, mentions: Mentions) -> str | None:
    """What "the leftmost is …" ends with, or what "… is the leftmost" begins with."""
    listed = {
        a.value
        for a, b in zip(mentions, mentions[1:], strict=False)
        if re.fullmatch(r"\s*(?:,|/|,?\s*(?:and|or|nor))\s*(?:the |a )?", passage[a.end : b.start])
    }
    if " or " in passage:
        return None
    predicates = [m for m in mentions if _BEFORE_PREDICATE.search(passage[max(0, m.start - 40) : m.start])]
    if predicates:
        rest = passage[predicates[0].end : predicates[-1].start]
        named = {m.value for m in predicates[: 1 if re.search(r"\b(?:next|others?|remaining)\b", rest) else None]}
        return named.pop() if len(named) == 1 and not named & listed else None
    first = mentions[0]
    return first.value if _SUBJECT.match(passage[first.end :]) and first.value not in listed else None


_SHAPE = Kind(_find_shape, _choose_shape, prepare=_name_shapes)
