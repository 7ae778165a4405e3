"""What a sentence says about the thing asked about, where it says neither Yes nor No.

"There is a large circle" denies nothing about a small one; "only the large one is a circle" does. Each function takes
the asked attributes and a sentence, and returns Yes, No, or None where the sentence does not say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from itertools import pairwise
from typing import NamedTuple

from proctor.shapes.canvas import FORMS, LARGE, SIZES
from proctor.shapes.replies.reader import AMBIGUOUS

Attributes = frozenset[str]

_SPELLED = {"big": "large", "little": "small", "tiny": "small"}
SORTS = (frozenset(SIZES), frozenset(LARGE.colours), frozenset(FORMS))
_ATTRIBUTE = re.compile(rf"\b({'|'.join((*SIZES, *_SPELLED, *LARGE.colours, *FORMS))})s?\b", re.I)
_VALUE = rf"(?:{'|'.join((*SIZES, *_SPELLED, *LARGE.colours))})\b"
PHRASE = re.compile(
    rf"\b(?:(?:{'|'.join((*SIZES, *_SPELLED))})[ ,~]+)?(?:(?:{'|'.join(LARGE.colours)})[ ,~]+)?"
    rf"(?:{'|'.join(FORMS)}|shape|one)s?\b"
    rf"(?:,? (?:that|which) (?:is|"
    rf"are)(?: both)? {_VALUE}(?: and {_VALUE})*(?! (?:{'|'.join(FORMS)}|shape|one)))?",
    re.I,
)


def attributes(text: str) -> Attributes:
    return frozenset(_SPELLED.get(word.lower(), word.lower()) for word in _ATTRIBUTE.findall(text.replace("~", " ")))


def contradict(a: Set[str], b: Set[str]) -> bool:
    """Can nothing be both, as nothing is small and large?"""
    return any(sort & a and sort & b and not sort & a & b for sort in SORTS)


def full_name(shape: Attributes) -> str:
    return " ".join(word for sort in SORTS for word in shape & sort)


def full_names(sentence: str) -> list[tuple[int, int, str]]:
    """The shapes that a sentence names by all three attributes, with where each begins and ends."""
    phrases = ((m.start(), m.end(), attributes(m[0])) for m in PHRASE.finditer(sentence))
    return [(start, end, full_name(things)) for start, end, things in phrases if len(things) == len(SORTS)]


class Named(NamedTuple):
    """A phrase that names shapes, with what is said before it in its clause and after it."""

    things: Attributes
    before: str
    after: str
    start: int
    end: int


_CLAUSE = re.compile(r"[,;:]|\b(?:but|and|or|although|though|while|whereas|however|yet|so|as|because|since)\b", re.I)


# A number: "one of them", "one red circle", "one step".
_MEASURES = "step|unit|cell|place|position|row|column|hop|move|space|tile|field|pixel|level"
_ONE_OF_THEM = re.compile(rf"one (?=of\b|{_VALUE}|(?:{'|'.join(FORMS)}|shape|{_MEASURES})\b)", re.I)


LONGEST_CLAUSE = 300  # characters: else a long row of phrases would be read again for each of them


def is_number(sentence: str, phrase: re.Match[str]) -> bool:
    """Is its "one" a number, as in "one of them" and "one red circle"?"""
    if _ONE_OF_THEM.match(sentence, phrase.start()):
        return True
    return phrase[0].lower().endswith(" one") and sentence.startswith(" of ", phrase.end())


def named(sentence: str) -> Iterator[Named]:
    """The phrases of a sentence; "a small one" has the colour and the form of the phrase before it."""
    things: Attributes = frozenset()
    found = [match for match in PHRASE.finditer(sentence) if not is_number(sentence, match)]
    start = 0
    for i, phrase in enumerate(found):
        said = attributes(phrase[0])
        if re.search(r"\bones?\b", phrase[0], re.I):
            said |= {word for word in things if not any(word in sort and said & sort for sort in SORTS)}
        things = said
        end = found[i + 1].start() if i + 1 < len(found) else len(sentence)
        before = _CLAUSE.split(sentence[max(start, phrase.start() - LONGEST_CLAUSE) : phrase.start()])[-1]
        yield Named(said, before, sentence[phrase.end() : end], phrase.start(), phrase.end())
        if attributes(phrase[0]):
            start = phrase.end()


_OPEN = re.compile(
    r"\b(?:if|whether|would(?! be (?:wrong|incorrect|false)\b)|could(?!(?:n't| not) (?:find|see|"
    r"spot|locate|identify)\b)|"
    r"might|may|should|suppose|assuming|unless|question|statement|claim|sentence|asks?|asked|"
    r"asking|need to|let me|let's|looking for|search(?:ing)? for|"
    r"to check|checking)\b",
    re.I,
)
_NONE = re.compile(
    r"(?:\b(?:no|zero|0|without|lacks?|not|never|neither|nor|none of(?: which| whom)?|none that|"
    r"(?:free|devoid) of)|n't|"
    r"\bno \w+ is)"
    r"(?:\s+(?:an?|any|the|such|single|of|see|find|contain|have|include|show|list|mention|both|"
    r"them|these|those|shapes?|"
    r"is|are))*\s*$",
    re.I,
)
_ONLY = re.compile(r"\b(?:only|just|solely|nothing but)\s+(?:(?:an?|the|one|two|three|four|\d+)\s+)*$", re.I)
_SOME = re.compile(
    r"(?:(?:\bthere(?:'s| is| are| exists?| remains?| (?:appears?|seems?) to be)|\b(?:contains?|"
    r"has|have|includes?|shows?|"
    r"lists?|features?|see|sees|saw|"
    r"find|found|spotted|notice[ds]?|got)|(?<!no )\b(?:shape|item|object|entry|figure|one|"
    r"square|circle|triangle)(?: \w+){0,2}?[\s()]+(?:is|are)|\bone of (?:the|these|those|them|"
    r"which)(?: \w+)? is)(?:\s*[-:])?(?:\s+(?:indeed|also|"
    r"still|now|exactly|precisely|just|at least|"
    r"in fact|actually|one|two|three|four|five|six|\d+|an?|some|such|at|the))*\s*)$",
    re.I,
)
_ABOUT_ONLY = re.compile(r"\b(?:concern|affect|remov|appl|add|touch|refer|mention|about)\w*(?: to)? only\b", re.I)
_QUANTITY = re.compile(
    r"\W*(?:(?:yes|indeed|exactly|at least|precisely|just)\W+)*(?:an?|some|one|two|three|four|"
    r"five|six|[1-9]\d*)\s+",
    re.I,
)
_PLACED = re.compile(
    r"\W*$|\s*(?:[(),]|(?:(?:is |are )?(?:at|there|found|present|listed|visible)|exists?|"
    r"appears?|in the|on the)\b)",
    re.I,
)
_ABSENT_AFTER = re.compile(
    r"^[\s()]*(?:(?:is|are|was|were|does|do|has|have|can)(?:n't| not| no longer| never)\b"
    r"(?! (?:been |be |get )?(?:removed|deleted|gone|missing|absent|affected|changed|touched))|"
    r"[:-]?\s*(?:[❌✖✗✘]|\(no\))|(?:is|are|has|have|was|were)(?: \w+)? "
    r"(?:absent|missing|gone|removed|lost)\b|exists? nowhere)",
    re.I,
)
_PRESENT_AFTER = re.compile(
    r"^[\s()]*(?:[:-]?\s*(?:[✅✔✓☑]|yes\))|(?:,? (?:is|are|was|remains?|exists?|"
    r"appears?)\b[\s\w()]{0,30}\b)?(?:present|there|"
    r"listed|found|visible|included|"
    r"exists?|appears?|fits|matches|qualifies|on the (?:canvas|list)|in the (?:list|picture|description|canvas))\b)",
    re.I,
)


_TWICE_DENIED = re.compile(
    r"\b(?:not true|untrue|false|incorrect|wrong)(?: to say)? that there (?:is|are) (?:no\b|"
    r"not (?:an?|any)\b)",
    re.I,
)
_DENIED = re.compile(
    r"\b(?:not true|not the case|untrue|false|incorrect|wrong)(?: to say)? that there (?:is|are) (?:an?|any)\b", re.I
)
_NOTHING = re.compile(
    r"\b(?:none of (?:them|these|those|the (?:\w+ )?(?:shapes|figures|objects|items|entries))|"
    r"no (?:shape|figure|object|item|entry)|"
    r"nothing)(?: \w+){0,3}? (?:is|are|matches|fits|has|combines)\b(?P<what>[^.;]{0,80})",
    re.I,
)
_IT_IS = re.compile(
    r"\b(?:it|that one|this one|they|these|those|which|that|but|and)(?:'s| is| are|"
    r"'re)\s*(?P<no>not |n't )?(?:all |also |actually |"
    r"only |both )?(?:an? )?(?P<what>[\w ,]{3,40})",
    re.I,
)


# A thing with its finding: "Red triangles: 0", "red_triangle_present = False".
_LABELLED = re.compile(
    r"^\W*(?:(?:number|count|total) of )?(?P<things>(?:\w+ ){0,3}(?:shape|square|circle|"
    r"triangle)s?)(?: \w+){0,3}\s*(?:[:=?]|->)+\s*"
    r"(?:is |are )?(?:(?P<no>false|no\b|not\b|0\b|zero|none|absent|missing|[❌✖✗✘])|true|yes|"
    r"present|found|exists|[1-9]\d*\b|[✅✔✓☑])",
    re.I,
)


def says_exists(asked: Attributes, sentence: str) -> str | None:
    """Whether there is a shape like the one asked about, as far as the sentence says."""
    if _OPEN.search(sentence) or not asked:
        return None
    if labelled := _LABELLED.match(sentence):
        things = attributes(labelled["things"])
        if labelled["no"]:
            return "No" if things and things <= asked else None
        return "Yes" if asked <= things else None
    if found := _SOME_IS.search(sentence):
        things, what = attributes(found["things"]), attributes(found["what"])
        if asked <= things | what:
            return "Yes"
        return "No" if found["only"] and things <= asked and contradict(what, asked) else None
    if listed := _HEADED.match(sentence):
        return _says_of_list(asked, attributes(listed["things"]), listed["list"])
    if (nothing := re.match(r"\W*nothing ([\w ]{3,40})\W*$", sentence, re.I)) and attributes(nothing[1]) == asked:
        return "No"
    if found := _IN_COLOURS.search(sentence):
        things, other = attributes(found["things"]), attributes(found["not"] or "")
        if any(asked <= things | {colour} for colour in attributes(found["list"])):
            return "Yes"
        return "No" if things <= asked and other and other <= asked else None
    if (found := _THEY_ALL.search(sentence)) and (first := next(named(sentence), None)) and first.things <= asked:
        what = attributes(found["what"])
        return "No" if contradict(what, asked) else "Yes" if asked <= first.things | what else None
    if found := _COLOURED.search(sentence):
        things, colours = attributes(found["things"]), attributes(found["list"])
        if any(asked <= things | {colour} for colour in colours):
            return "Yes"
        if re.search(r"\bonly\b", found[0], re.I) and things <= asked and all(contradict(asked, {c}) for c in colours):
            return "No"
    if found := _ONLY_THESE.search(sentence):
        shown = [attributes(phrase[0]) for phrase in PHRASE.finditer(sentence, found.end())]
        if any(asked <= things for things in shown):
            return "Yes"
        return "No" if shown and all(contradict(things, asked) for things in shown) else None
    if universal := _EVERY.search(sentence):
        return _says_of_all(asked, universal, sentence)
    if nothing := _NOTHING.search(sentence):
        what = attributes(nothing["what"])
        return "No" if what and what <= asked else None
    sentence = _DENIED.sub("there is no", _TWICE_DENIED.sub("there is a", sentence))
    phrases = list(named(sentence))
    said = {answer for phrase in phrases if (answer := _says_of(asked, phrase))}
    if any(
        _IS_A.fullmatch(b.before) and _THE.search(a.before) and asked <= a.things | b.things
        for a, b in pairwise(phrases)
    ):
        said.add("Yes")
    if answer := _says_of_it(asked, phrases, sentence):
        said.add(answer)
    return said.pop() if len(said) == 1 else None


_IN_COLOURS = re.compile(
    rf"(?P<things>(?:\w+ )?(?:shape|square|circle|triangle)s) in (?P<list>(?:{'|'.join(LARGE.colours)})"
    rf"(?:(?:, and|,| and) (?:{'|'.join(LARGE.colours)}))*)(?P<not>,? but (?:not|none) in [\w ,]+)?",
    re.I,
)
_THEY_ALL = re.compile(r"\bthey(?:'re| are) (?:both|all) (?P<what>[\w ]{3,40})", re.I)
_COLOURED = re.compile(
    rf"\bthere are (?:only |just )?(?P<list>(?:{'|'.join(LARGE.colours)})(?:(?:, and|,|"
    rf" and) (?:{'|'.join(LARGE.colours)}))+) "
    r"(?P<things>(?:shape|square|circle|triangle)s)(?: only)?",
    re.I,
)
# All that there is.
_ONLY_THESE = re.compile(
    r"\b(?:has|have|contains?|includes?|shows?|holds?|there(?:'s| is| are)|leaves|"
    r"left with)(?: now| currently)? (?:only|just) "
    r"(?!(?:one|two|three|four|five|\d+)\b)",
    re.I,
)
_SOME_OF_THEM = re.compile(
    r"\b(?:one|two|three|four|some|both|all|each|[1-9])(?: of (?:them|these|those|which))? (?:is|"
    r"are) (?:an? )?(?P<what>[\w ]{3,40})",
    re.I,
)
_NONE_OF_THEM = re.compile(
    r"\b(?:neither|none|no one|not one|0|zero)(?: one)?(?: of (?:them|these|those|which|"
    r"the (?:two|three|four)))? (?:is|are) (?:an? )?"
    r"(?P<what>[\w ]{3,40})",
    re.I,
)
_EVERY = re.compile(
    r"(?P<not>\bnot )?\b(?:(?:every|each|all|both)\b(?: of)?(?: the| these| those)?(?: \w+)??|"
    r"the(?= (?:\w+ ){0,2}(?:shapes|squares|circles|triangles|ones)\b[^.;]*\bare\b)) "
    r"(?P<things>(?:\w+ ){0,2}(?:shape|square|circle|triangle|one)s?)(?: on (?:the|this) \w+|"
    r" here| listed| ?\([^()]*\))? (?:is|are)"
    r"(?: either| both| all)? (?P<what>(?:(?! so |\.)[^;:,]){3,60})",
    re.I,
)


def _says_of_all(asked: Attributes, found: re.Match[str], sentence: str) -> str | None:
    """What "all squares are red" says of a blue one."""
    things, what = attributes(found["things"]), attributes(found["what"])
    if found[0].lower().startswith("the") and _ONE_FORM.search(found["what"]):
        return None  # "The shapes are small red square, …" lists them
    if found["not"] or re.search(r"\bnot\b|n't\b|\bbut\b|\bexcept\b", found["what"]):
        definite = _THE_IS.search(sentence, found.end())
        return "Yes" if definite and asked <= attributes(definite[0]) else None
    if things <= asked and contradict(what, asked):
        return "No"
    return "Yes" if asked <= things | what else None


_ONE_FORM = re.compile(rf"^(?!.*\ban? ).*\b(?:{'|'.join(FORMS)})\b", re.I)
_THE_IS = re.compile(rf"\bthe (?:\w+ ){{0,2}}(?:{'|'.join(FORMS)}) is (?:an? )?{_VALUE}", re.I)


# "The only yellow shape is a circle", "one of the circles is yellow".
_SOME_IS = re.compile(
    r"\b(?:(?P<only>the only)|(?:one|two|three|some|several|[1-9]) of the) "
    r"(?P<things>(?:\w+ ){0,2}(?:shape|square|circle|triangle)s?)(?: \w+ (?:the|this) \w+)? (?:is|are) "
    r"(?P<what>(?!not\b)(?:(?! so |\.)[^;:,]){3,40})",
    re.I,
)
_HAS = re.compile(
    rf"[\s()]*(?:at\s*)?[\s()]*(?:is|are)\s+(?P<no>not )?(?P<what>{_VALUE}(?: and {_VALUE})*)(?! \w)", re.I
)
_ONLY_ONE = re.compile(rf"\bthe only (?:one|{'|'.join(FORMS)})\b(?! (?:that|which|in|at|with|to)\b)", re.I)
_THE = re.compile(r"\bthe $", re.I)
_IS_A = re.compile(r"[\s()]*(?:at\s*)?[\s()]*is (?:indeed )?an? ", re.I)
_NOT_ONE = re.compile(
    r"(?:\bnot|n't) the same (?:one|shape)\b|"
    r"\bnone (?:that|of (?:them|which|these))? ?(?:is|are) both\W*$",
    re.I,
)
_WORD = rf"(?:{'|'.join((*SIZES, *LARGE.colours, *FORMS))})"
# Shapes of one sort with what tells them apart: "Large squares: red, blue".
_HEADED = re.compile(
    rf"^\W*(?:the )?(?P<things>(?:\w+ ){{0,2}}(?:shapes|squares|circles|triangles))(?: are)?\s*:\s*"
    rf"(?P<list>{_WORD}(?: {_WORD})?(?:(?:, and|,| and|;| &) {_WORD}(?: {_WORD})?){{0,9}})\W*$",
    re.I,
)


def _says_of_list(asked: Attributes, things: Attributes, listed: str) -> str | None:
    if not things <= asked:
        return None
    shapes = [things | attributes(item) for item in re.split(r",|;|&|\band\b", listed)]
    if any(asked <= shape for shape in shapes):
        return "Yes"
    return "No" if all(contradict(shape, asked) for shape in shapes if shape != things) else None


def _says_of_it(asked: Attributes, phrases: Sequence[Named], sentence: str) -> str | None:
    """What is said of a shape that has some of the attributes: "There is a circle, but it is large"."""
    if _NOT_ONE.search(sentence):
        return "No"
    if not phrases or not phrases[0].things <= asked or _NONE.search(phrases[0].before):
        return None
    has = _HAS.match(phrases[0].after) if _THE.search(phrases[0].before) and _ONLY_ONE.search(sentence) else None
    if has and contradict(attributes(has["what"]), asked):
        return "No"
    found = _SOME_OF_THEM.search(sentence)
    if any(not found or not found.start("what") <= phrase.start < found.end() for phrase in phrases[1:]):
        return None
    if found:
        what = attributes(found["what"])
        if re.match(r"\W*(?:all|both|each)\b", found[0], re.I) and contradict(what, asked):
            return "No"
        return "Yes" if asked <= what | phrases[0].things else None
    if found := _NONE_OF_THEM.search(sentence):
        return "No" if attributes(found["what"]) and attributes(found["what"]) <= asked else None
    found = _IT_IS.search(sentence) or (_THE.search(phrases[0].before) and _HAS.match(phrases[0].after))
    what = attributes(found["what"]) if found else frozenset()
    if not found or not what or re.search(r"\bor\b", found["what"]):
        return None
    if contradict(what, asked) or (found["no"] and what <= asked):
        return AMBIGUOUS  # another one may be like that
    return "Yes" if asked <= what | phrases[0].things else None


def _says_of(asked: Attributes, phrase: Named) -> str | None:
    if re.search(r"\bother\s*$", phrase.before, re.I):
        return None
    if _NONE.search(phrase.before) or _ABSENT_AFTER.match(phrase.after):
        return "No" if phrase.things and phrase.things <= asked else None
    if _ABOUT_ONLY.search(phrase.before):
        return None
    if _ONLY.search(phrase.before):
        rest = (
            attributes(phrase.after.partition(",")[0])
            if re.match(r"[\s()]*(?:is|are)\b", phrase.after)
            else frozenset()
        )
        things = phrase.things | rest
        if contradict(things, asked) and (things & SORTS[2] <= asked or (rest and rest <= asked)):
            return "No"
        return "Yes" if asked <= things else None
    counted = _QUANTITY.fullmatch(phrase.before) and _PLACED.match(phrase.after)
    exists = _SOME.search(phrase.before) or counted or _PRESENT_AFTER.match(phrase.after)
    return "Yes" if exists and asked <= phrase.things else None
