"""What a reply to a question for Yes or No says about what was asked, without the words Yes and No.

`tell` reads one sentence, and returns an answer only where the sentence is about the very thing; `state` is its looser
form, for the last sentence of a reply; `whole` looks at a reply in which no sentence answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from operator import and_, or_, xor

from proctor.shapes.replies.numbers import find_numbers, without_other_numbers
from proctor.shapes.replies.orders import orders
from proctor.shapes.replies.polar import YES_NO, state_existence
from proctor.shapes.replies.reader import Kind
from proctor.shapes.replies.statements import PHRASE, Attributes, attributes, full_name, full_names, named, says_exists

Whole = Callable[[Sequence[str]], str | None]


_HEDGE = re.compile(
    r"\b(?:if|whether|would|could|might|may|should|suppose|unless|let me|let's|need to|to check|"
    r"asks?|question)\b",
    re.I,
)


def yes_no_about(question: str) -> Kind:
    kind = _about(question)
    asked = attributes(question.partition("?")[0])
    kind = replace(kind, whole=partial(_whole, kind.whole))
    return replace(kind, is_asked=partial(_asks_for, asked)) if asked else kind


_CERTAINLY = re.compile(r"\W*(?:absolutely|definitely|exactly|precisely|undoubtedly)\W*", re.I)
_BEGINS = re.compile(
    r"\b(?:let me|let's|i will|i'll|here's|here (?:is|are)|happy|help|i'd|first|step|can you|"
    r"could you)\b",
    re.I,
)


def _whole(whole: Whole, sentences: Sequence[str]) -> str | None:
    answer = whole(sentences)
    certain = (
        sentences
        and any(map(_CERTAINLY.fullmatch, (sentences[0], sentences[-1])))
        and not _BEGINS.search(" ".join(sentences))
    )
    return answer or ("Yes" if certain else None)


def _asks_for(asked: Attributes, sentence: str) -> bool:
    """Whether a question within a reply may be the one that was asked."""
    return (attributes(sentence) or asked) == asked


def _about(question: str) -> Kind:
    if found := _IS_BETWEEN.search(question):
        subject, *ends = map(attributes, found.groups())
        axis = "above|below" if re.search(r"\babove and below\b", question) else "left|right"
        between = partial(_state_between, subject, tuple(ends))
        tell = partial(_tell_between, subject, tuple(ends), axis)
        return replace(YES_NO, state=between, tell=tell, whole=partial(_order_between, subject, tuple(ends), axis))
    if found := _IS_THERE.search(question):
        asked = attributes(found[1])
        state = partial(_state_about, asked)
        if re.search(r"\bnow\?", question):
            # Each step of a history says that something is there: only a reply's conclusion counts.
            return replace(YES_NO, state=partial(_state_now, asked), tell=partial(_tell_now, asked), steps=True)
        return replace(YES_NO, state=state, tell=partial(says_exists, asked))
    if found := _AS_MANY.search(question):
        one, other = (phrase.things for phrase in list(named(found[1]))[:2])
        tell = partial(_tell_counts, one, other)
        return replace(YES_NO, state=_state_equality, tell=tell, whole=partial(_compare_counts, one, other))
    if question.startswith("Is it true"):
        operator, parts = _operator(question), _parts(question)
        tell = partial(_tell_claim, operator, "there is no" in question)
        return replace(YES_NO, state=_state_claim, tell=tell, whole=partial(_claim_of_parts, operator, parts))
    return YES_NO


# -- is there one? ------------------------------------------------------------------------------------------------

_IS_THERE = re.compile(r"^is there an? ([^?]*)\?", re.I)
_NO = re.compile(r"(?:\bno|(?:\bnot|n't) (?:an?|any)|\bwithout (?:an?|any))\s+$", re.I)


def _state_about(asked: Attributes, sentence: str) -> str | None:
    """What the sentence says about shapes like this one; nothing where it is about others."""
    if answer := says_exists(asked, sentence):
        return answer
    answer = state_existence(sentence)
    found = [(attributes(m[0]), _NO.search(sentence, 0, m.start())) for m in PHRASE.finditer(sentence)]
    phrases = [(phrase, no) for phrase, no in found if phrase]
    if answer is None or not phrases:
        return answer
    if any(phrase <= asked and (no or answer == "No") for phrase, no in phrases):
        return "No"
    return "Yes" if answer == "Yes" and any(asked <= phrase and not no for phrase, no in phrases) else None


_GOES = re.compile(
    r"\b(?P<out>never|no longer|not|(?:is|was|were|are|has|does|did)n't)?\s*(?:been\s+|be\s+|"
    r"get\s+|gets\s+)?"
    r"(?:(?P<on>added|re-?added|restored|returns?|returned|reappears?|reappeared|(?:came|comes|"
    r"come|brought|put) back|"
    r"adds?|remains?|remained|stays?|stayed|survives?|survived|kept|still (?:there|present|on)|"
    r"present|there|back|on the canvas|in the (?:\w+ )?(?:set|list|state|result))|"
    r"(?P<off>remov(?:ed?|es|ing)|gone|deleted?s?|disappears?|disappeared|vanished|taken away|"
    r"absent|missing))\b",
    re.I,
)
_FINAL = re.compile(
    r"\b(?:after (?:step \d+|all|the last|every|that|this|these|event \d+)|in the end|at the end|"
    r"by the end|"
    r"finally|now|still|no longer|"
    r"any ?more|never|has (?:since )?been|had been|again|remain\w*|stay\w*|surviv\w*|gone|last|"
    r"not (?:been )?(?:removed|added)|"
    r"(?:was|is) (?:not|never)|final|none of|(?:event|step) \d+ (?:adds|removes))\b|n't\b",
    re.I,
)
_REMOVES = re.compile(r"(?<!not )(?<!n't )\bremov(?:es?|ed|ing)(?: all| every| any| the| of)*\s*$", re.I)
_CONDITION = re.compile(
    r"\b(?:the )?(?:\w+ )?condition(?: \w+){0,3}? (?:met|true|false|satisfied|fulfilled|holds?|"
    r"fails?|not met)\b",
    re.I,
)
_NO_EVENT = re.compile(r"\b(?:none of|nothing|no)\b[^.;,]*$", re.I)
_AFTER_EVENT = re.compile(
    r"^\W*(?:after|event|step)\b[^:]{0,40}:\W*(?:(?:still )?(?:(?P<on>present|there|"
    r"on(?: the canvas)?)|absent|gone|not there|removed|off))\W*$",
    re.I,
)
_LISTED = re.compile(
    r"\b(?:final|now|end|remaining|current)\b[^.:;]*(?:\b(?:contains?|has|have|includes?|shows?|"
    r"shapes?|canvas|are|holds?)\b"
    r"[^.:;]*)(?::|\bcontains?|\bhas|\bhave|\bincludes?|\bshows?|\bholds?|"
    r"\bare)\s+(?P<list>.*,.*)$",
    re.I,
)


_PAST = re.compile(
    r"\b(?:was|were|at (?:the )?(?:start|beginning|first|outset)|initially|originally|start(?:s|"
    r"ed|ing)?|begins?|before)\b",
    re.I,
)
_NOW = re.compile(
    r"\bthere (?P<is>is|'s|are)?(?P<no>n't| not| none| no longer)?(?: one| any)?(?: now|"
    r" any ?more)?\W*$|"
    r"\bthere (?P<isnt>isn't|is not|aren't)(?: one| any)?(?: now| any ?more)?\W*$",
    re.I,
)


_EVENT = re.compile(r"\b(?:removed|removes?|added|adds?)\b", re.I)  # what happens is not yet what is there


def _tell_now(asked: Attributes, sentence: str) -> str | None:
    """What the sentence says of the present; what was at the start is only the beginning of the history."""
    *_, last = re.split(r"\bbut\b|\bhowever\b|;", sentence)
    if last is not sentence and _PAST.search(sentence[: -len(last)]):
        if now := _NOW.search(last):
            return "No" if now["isnt"] or now["no"] else "Yes" if now["is"] else None
        return _tell_now(asked, last)
    if _PAST.search(sentence) or _EVENT.search(sentence):
        return None
    return says_exists(asked, sentence)


def _state_now(asked: Attributes, sentence: str) -> str | None:
    """Whether the shape is there at the end of its history."""
    if re.search(r"\b(?:if|whether|would|could|might|may|need to|let me)\b", sentence, re.I):
        return None
    sentence = _CONDITION.sub(" ", sentence)
    if answer := _tell_now(asked, sentence):
        return answer
    if not (_PAST.search(sentence) or _EVENT.search(sentence)) and (answer := _state_about(asked, sentence)):
        return answer
    if listed := _LISTED.search(sentence):
        return _in_list(asked, listed["list"])
    if bare := _AFTER_EVENT.match(sentence):
        return "Yes" if bare["on"] else "No"
    phrases = [phrase for phrase in named(sentence) if phrase.things]
    if phrases and phrases[-1].things <= asked and _REMOVES.search(phrases[-1].before) and _FINAL.search(sentence):
        return "No"
    things = [phrase.things for phrase in phrases]
    if not (asked <= things[-1] if things else re.search(r"\b(?:it|that|this)\b", sentence, re.I)):
        return None
    changes = list(_GOES.finditer(sentence))
    if not changes or not _FINAL.search(sentence):
        return None
    last = changes[-1]
    nothing = _NO_EVENT.search(sentence, max(0, last.start() - 40), last.start()) is not None
    if nothing and last["on"] and len(changes) == 1:
        return None  # nothing adds it: it may have been there
    return "Yes" if bool(last["on"]) != (bool(last["out"]) or nothing) else "No"


def _in_list(asked: Attributes, listed: str) -> str | None:
    """Whether a list of whole shapes, all that there are in the end, has the one asked about."""
    shapes = [attributes(phrase[0]) for phrase in PHRASE.finditer(listed)]
    if len(shapes) < 2 or any(len(shape) < 3 for shape in shapes) or re.search(r"\b(?:no|not|or)\b", listed, re.I):
        return None
    return "Yes" if any(asked <= shape for shape in shapes) else "No"


# -- are there as many? -------------------------------------------------------------------------------------------

_AS_MANY = re.compile(r"^are there as many ([^?]*)\?", re.I)
_EQUAL = re.compile(
    r"\bthe same\b(?! (?:shape|one|place|colour|size|form))|"
    r"\bas many\b|\bequal(?:ly)?\b|\bsame (?:number|amount|count|quantity)\b|"
    r"\b(?:counts?|"
    r"numbers?) (?:do |does )?"
    r"(?:match|agree)|\bof each\b(?! other)|\b(?:two|three|four|five|"
    r"one|\d+) each\b|\bequals\b|"
    r"\bboth (?:counts|numbers|totals|groups|amounts|sets|"
    r"are|come to|have)\b(?=[^.]*\d)|\b(?:tie|tied|a tie)\b|\bneither more nor (?:fewer|less)\b|"
    r"\bno (?:more|fewer) (?:and|or|nor) no "
    r"(?:more|fewer)\b",
    re.I,
)
_UNEQUAL = re.compile(
    r"(?:\bnot|n't)\b[^,;]*\b(?:as many|equal(?:ly)?|the same|match|agree)\b|\bunequal\b|"
    r"\bdiffer(?:ent|s)?\b|"
    r"\b(?:one|two|three|\d+) (?:more|fewer|less)\b|(?<!no )(?<!neither )(?<!not )\b(?:more|"
    r"fewer|less)\b[^,;]*\b(?:squares?|"
    r"circles?|triangles?|shapes?|ones?|than)\b|\boutnumber|\bexceeds?\b|\b(?:greater|higher|"
    r"larger|smaller|lower) than\b|≠|!=",
    re.I,
)


def _state_equality(sentence: str) -> str | None:
    if _HEDGE.search(sentence):
        return None
    if _UNEQUAL.search(sentence) and not re.search(r"\bneither more nor\b", sentence, re.I):
        return "No"
    return "Yes" if _EQUAL.search(sentence) else None


def _counts(one: Attributes, other: Attributes, sentence: str) -> dict[Attributes, set[str]]:
    """The numbers that the sentence gives for each of the two groups."""
    counts: dict[Attributes, set[str]] = {one: set(), other: set()}
    text = without_other_numbers(sentence)
    mentions = find_numbers(text)
    phrases = list(named(text))
    for i, mention in enumerate(mentions):
        start = mentions[i - 1].end if i else 0
        end = mentions[i + 1].start if i + 1 < len(mentions) else len(text)
        before = [phrase for phrase in phrases if start <= phrase.start and phrase.end <= mention.start]
        if not before or not _LABEL.search(text, start, mention.start):
            before = [phrase for phrase in phrases if mention.end <= phrase.start < end][:1]
        things = before[-1].things if before else attributes(_after(text, mention.end))
        if not before and not things and _LABEL.search(text, start, mention.start):
            things = attributes(text[start : mention.start])
        fitting = [
            group
            for group in (one, other)
            if things == group
            or (not before and things and things <= group)
            or (before and all(phrase.things >= group for phrase in before))
        ]
        if len(fitting) == 1:
            counts[fitting[0]].add(mention.value.removesuffix(" more"))
    return counts


_LABEL = re.compile(r"(?:[:=;(>]|\b(?<!there )(?:is|are|count|number))\W*$", re.I)
_ADJECTIVES = re.compile(r"(?:\s+\w+){0,2}")


def _after(text: str, start: int) -> str:
    found = _ADJECTIVES.match(text, start)
    return found[0] if found else ""


def _tell_counts(one: Attributes, other: Attributes, sentence: str) -> str | None:
    if _HEDGE.search(sentence):
        return None
    *_, last = re.split(r"\bbut\b", sentence)
    if answer := _state_equality(last):
        return answer
    if {says_exists(one, sentence), says_exists(other, sentence)} == {"Yes", "No"}:
        return "No"
    return _compare(_counts(one, other, sentence))


def _compare_counts(one: Attributes, other: Attributes, sentences: Sequence[str]) -> str | None:
    """Where each group has been counted in a sentence of its own."""
    counts: dict[Attributes, set[str]] = {one: set(), other: set()}
    for sentence in sentences:
        for group, values in _counts(one, other, sentence).items():
            counts[group] |= values
    return _compare(counts)


def _compare(counts: dict[Attributes, set[str]]) -> str | None:
    if any(len(values) != 1 for values in counts.values()):
        return None
    return "Yes" if len(set.union(*counts.values())) == 1 else "No"


# -- is it between? -----------------------------------------------------------------------------------------------

_IS_BETWEEN = re.compile(r"\bis the (\w+ \w+ \w+) between the (\w+ \w+ \w+) and the (\w+ \w+ \w+)\?", re.I)
_OPPOSITE = {"above": "below", "below": "above", "left": "right", "right": "left"}
_SIDE = re.compile(r"\b(above|below|left|right|higher|lower)\b", re.I)
_SPELLED_SIDE = {"higher": "above", "lower": "below"}


def _state_between(subject: Attributes, ends: tuple[Attributes, ...], sentence: str) -> str | None:
    if re.search(r"\b(?:is|lies|falls|sits) outside\b", sentence, re.I):
        return "No"
    if re.search(r"\b(?:the one in between|in the middle|the middle one)\b", sentence, re.I):
        before = [attributes(phrase[0]) for phrase in PHRASE.finditer(sentence)]
        return None if not before else "Yes" if before[0] and before[0] <= subject else "No"
    answer = state_existence(sentence)
    before = [attributes(phrase[0]) for phrase in PHRASE.finditer(sentence.partition("between")[0])]
    if not answer or not before or before[-1] <= subject:
        return answer
    return "No" if answer == "Yes" and before[-1] in ends else None


def _tell_between(subject: Attributes, ends: tuple[Attributes, ...], axis: str, sentence: str) -> str | None:
    """On which side of either end the shape is, where the sentence says so of both, along the axis asked about."""
    if _HEDGE.search(sentence):
        return None
    own = rf"(?:the )?(?:{axis}|{'higher|lower' if 'above' in axis else '(?!)'})"
    if not re.search(rf"\b(?:{own})\b", sentence, re.I):
        return None
    phrases = [phrase.things for phrase in named(sentence)]
    first = phrases[0] if phrases else frozenset()
    pronoun = re.match(r"\W*(?:no\b\W*|yes\b\W*)?(?:it|it's|this one)\b", sentence, re.I)
    if not pronoun and not (first and first <= subject and not any(first <= end for end in ends)):
        return None
    if re.search(
        rf"(?<!not )(?<!n't )\b{own}\b(?: than| of| to)*(?:\s+the)?\s+(?:both|the other two|"
        rf"the two others)\b",
        sentence,
        re.I,
    ):
        return "No"
    sides = _sides(sentence, ends, axis)
    if len(sides) < 2 or re.search(r"\b(?:not|or|neither)\b|n't\b", sentence, re.I):
        return None
    return "No" if sides[0] == sides[1] else "Yes"


def _order_between(
    subject: Attributes, ends: tuple[Attributes, ...], axis: str, sentences: Sequence[str]
) -> str | None:
    """Whether the shape stands between the ends in an order that the reply lists."""
    for order in orders(sentences, full_names):
        names = [full_name(shape) for shape in (subject, *ends)]
        if order.axis == ("y" if "above" in axis else "x") and all(name in order.names for name in names):
            place, *places = map(order.names.index, names)
            return "Yes" if min(places) < place < max(places) else "No"
    return None


def _sides(sentence: str, ends: tuple[Attributes, ...], axis: str) -> list[str]:
    """The side of the first end and that of the second one; fewer where the sentence does not say both."""
    sides = []
    for end in ends:
        for phrase in named(sentence):
            side = [m[1].lower() for m in _SIDE.finditer(phrase.before)]
            if phrase.things == end and side:
                sides.append(_SPELLED_SIDE.get(side[-1], side[-1]))
                break
    return sides if all(side in axis.split("|") for side in sides) else []


# -- is it true? --------------------------------------------------------------------------------------------------

_CLAIM = r"\b(?:claim|statement|sentence|whole|it|condition|conjunction|disjunction|expression|proposition)"
_CLAIM_HOLDS = re.compile(rf"{_CLAIM} (?:holds?|(?:is|are)(?: both)? (?:met|satisfied|fulfilled))\b", re.I)
_CLAIM_FAILS = re.compile(
    rf"{_CLAIM} (?:fails?|(?:does|do)(?:n't| not) hold|(?:is|are)(?:n't| not)(?: both)? (?:met|"
    rf"satisfied|fulfilled))\b",
    re.I,
)
_TRUE = r"(?:true|hold|holds|met|satisfied|fulfilled|exists?|correct|the case|present|there)"
_BOTH = re.compile(rf"\bboth(?! are (?:not|false))(?: of them)?(?: \w+){{0,6}}? {_TRUE}\b|^\W*both\W*$", re.I)
_NEITHER = re.compile(
    rf"\b(?:neither|none)(?: of (?:them|the \w+))?(?: \w+){{0,2}} {_TRUE}\b|^\W*neither\W*$|"
    rf"\bboth(?: \w+){{0,2}} (?:are )?(?:false|fail)\b",
    re.I,
)
_ONE = re.compile(
    rf"\b(?:only|exactly|just)(?: the)? (?:one|first|second)(?: of (?:them|"
    rf"the two))?(?: \w+){{0,2}} {_TRUE}\b|"
    rf"\bone(?: \w+)? is {_TRUE}\b.*\bthe other\b.*\b(?:not|isn't|false)\b|"
    rf"\bnot both\b(?= (?:\w+ ){{0,3}}{_TRUE})",
    re.I,
)
_EXISTS = re.compile(r"\b(?:exists?|present|there)\b", re.I)  # says nothing of a part that denies that there is one
_ONE_PART = (
    r"\b(?:at least one|(?:the )?(?:first|second|one|other))(?: of the)?(?: \w+)?"
    r"(?: part| condition| half| clause)?(?: is| =|:| ->)"
)
_PART_HOLDS = re.compile(rf"{_ONE_PART} (?:true|met|satisfied|fulfilled|the case)\b", re.I)
_PART_FAILS = re.compile(rf"{_ONE_PART} (?:false|untrue|(?:not|n't) (?:true|met|satisfied|fulfilled|the case))\b", re.I)
_VERDICTS = {  # of both parts, one of them and neither
    "and": ("Yes", "No", "No"),
    "or": ("Yes", "Yes", "No"),
    "xor": ("No", "Yes", "No"),
}


def _operator(question: str) -> str:
    claim = question.partition("?")[0]
    if "not both" in claim:
        return "xor"
    return "or" if " or " in claim else "and"


Part = tuple[Attributes, bool]  # what there is, and whether the part of the claim says that there is none


def _parts(question: str) -> list[Part]:
    found = re.findall(r"there is (no|an?) ([\w ]+?)(?= and there| or there|[,?]|$)", question.partition("?")[0])
    return [(attributes(what), said == "no") for said, what in found]


_CONNECTIVES: dict[str, Callable[[bool, bool], bool]] = {"and": and_, "or": or_, "xor": xor}


_ONLY = re.compile(r"^\W*(?:there is )?only (?:the|an?) ([\w ]{3,30}?)(?: (?:is|exists)\b|\W*$)", re.I)


def _claim_of_parts(operator: str, parts: Sequence[Part], sentences: Sequence[str]) -> str | None:
    """Whether the claim holds, from what the reply says of its two parts."""
    if len(parts) != 2:
        return None
    said = [_said_of_part(things, sentences) for things, _ in parts]
    for sentence in sentences:
        only = _ONLY.search(sentence)
        for i, (things, _) in enumerate(parts):
            if only and attributes(only[1]) == things:
                said = [j == i for j in range(2)]
    if None in said:
        return None  # half a statement
    truths = [exists != denied for exists, (_, denied) in zip(said, parts, strict=True)]
    return "Yes" if _CONNECTIVES[operator](*truths) else "No"


def _said_of_part(things: Attributes, sentences: Sequence[str]) -> bool | None:
    said = {says_exists(things, sentence) for sentence in sentences} - {None}
    return said == {"Yes"} if len(said) == 1 else None


def _state_claim(sentence: str) -> str | None:
    return "No" if _CLAIM_FAILS.search(sentence) else "Yes" if _CLAIM_HOLDS.search(sentence) else None


def _tell_claim(operator: str, denies: bool, sentence: str) -> str | None:
    """Of how many parts the sentence says that they are true."""
    if _HEDGE.search(sentence) or (denies and _EXISTS.search(sentence)):
        return None
    both, one, neither = _VERDICTS[operator]
    if operator == "or" and _PART_HOLDS.search(sentence):
        return "Yes"
    if operator == "and" and _PART_FAILS.search(sentence):
        return "No"
    if _NEITHER.search(sentence):
        return neither
    if _ONE.search(sentence):
        return one
    return both if _BOTH.search(sentence) else None
