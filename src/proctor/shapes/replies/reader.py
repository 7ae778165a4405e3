"""Finds the answer in a model's reply, in the order in which a person looks for it.

1. Reasoning, mark-up, coordinates and questions are removed. What follows a correction ("Wait, …") comes first.
2. A boxed or tagged answer: `\\boxed{…}`, `<answer>…</answer>`, `{"answer": …}`.
3. The last announcement ("Answer: …", "the answer is …") and the first item in it.
4. The last conclusion ("Therefore, …", "So the shape is …").
5. The last sentence, and the first one where that names no answer.

Two answers where one is expected are no answer: a reader that guesses gives marks that nobody has earned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from proctor.shapes.replies import cues
from proctor.shapes.replies.markup import BOX, ITEM, UNBOX, plain_sentences

CACHED = 256  # passages whose mentions are remembered: one is looked at from several sides
SHORT = 64  # characters of a reply that is remembered as a whole
OPENING = 3  # sentences among which the first answer is looked for: others may lead up to it
AMBIGUOUS = "(ambiguous)"  # more than one answer, or one that is not of this kind


class Mention(NamedTuple):
    start: int
    end: int
    value: str


Mentions = tuple[Mention, ...]
Find = Callable[[str], Mentions]


def _nothing(sentences: Sequence[str]) -> str | None:
    return None


@dataclass(frozen=True)
class Kind:
    """What a kind of answers looks like: where a passage mentions one, and which of several in a sentence is meant."""

    find: Find  # the same passage is asked for many times: cache it
    choose: Callable[[str, Mentions], str | None] = lambda sentence, mentions: None
    prepare: Callable[[str], str] = lambda text: text
    state: Callable[[str], str | None] = lambda sentence: None  # an answer given by a statement: "There is none."
    tell: Callable[[str], str | None] = lambda sentence: None  # the same, where it is about just what was asked
    whole: Callable[[Sequence[str]], str | None] = _nothing  # what all sentences come to, where none gives an answer
    is_asked: Callable[[str], bool] = lambda sentence: True  # may a question in the reply be the one that was asked?
    steps: bool = False  # what a sentence tells may be a step on the way
    join: Callable[[list[str]], list[str]] = lambda sentences: sentences  # sentences that give one answer together
    polar: bool = False  # "no" is an answer, and not the beginning of a correction
    exclusive: bool = False  # an answer with another one later in its sentence is none


def read_reply(text: str, kind: Kind) -> str | None:
    """The answer that the reply gives; None where a person could not tell."""
    answer = _read_short(text, kind) if len(text) <= SHORT else _read_reply(text, kind)
    return None if answer == AMBIGUOUS else answer


@lru_cache(maxsize=4096)
def _read_short(text: str, kind: Kind) -> str | None:
    """Most replies of a run are the same few words."""
    return _read_reply(text, kind)


def _read_reply(text: str, kind: Kind) -> str | None:
    sentences = kind.join(plain_sentences(text, kind.prepare))
    own = _own_part(sentences, kind)
    if len(own) < len(sentences) and ((answer := _read(own, kind)) or any(map(kind.find, own))):
        return answer
    answer = _read([s for s in sentences if not cues.NEXT_QUESTION.match(s)], kind)
    return answer or _read_whole(text, kind)


def _read_whole(text: str, kind: Kind) -> str | None:
    """What the reply comes to, where no sentence gives the answer, as in a list of all shapes in order."""
    if kind.whole is _nothing:
        return None
    sentences = [
        s
        for s in _own_part(plain_sentences(text), kind)
        if not (s.endswith("?") or cues.INTRODUCTION.match(s) or cues.GUIDANCE.match(s))
    ]
    undecided = any(cues.UNDECIDED.search(sentence) for sentence in sentences)
    return None if undecided else kind.whole(sentences)


def _own_part(sentences: list[str], kind: Kind) -> list[str]:
    """The reply up to where a base model goes on with a question of its own."""
    answered = False
    for i, sentence in enumerate(sentences):
        asked = i and sentence.endswith("?") and cues.INSTRUCTION.match(" ".join(sentences[i + 1 : i + 2]))
        next_question = answered and cues.NEXT_QUESTION.match(sentence)
        if next_question or (asked and _is_bare(sentences[i - 1], kind)):
            return sentences[:i]
        if not (sentence.startswith(ITEM) or cues.NEXT_QUESTION.match(sentence)):
            answered = answered or bool(kind.find(sentence))
    return sentences


def _read(sentences: list[str], kind: Kind) -> str | None:
    sentences = _without_explanation(_without_questions(sentences, kind), kind)
    while len(sentences) > 1 and _is_remark(sentences[-1], kind):
        sentences = sentences[:-1]
    if sentences and not kind.exclusive and cues.UNDECIDED.search(sentences[-1]):
        return None
    if _wavers(sentences, kind):
        return None
    for part in (_after_correction(sentences, kind), sentences):
        for rule in (_marked, _announced, _concluded, _stated):
            answer = rule(part, kind)
            if answer == AMBIGUOUS:
                return None
            if answer:
                return answer
    return _state(sentences, kind)


def _is_remark(sentence: str, kind: Kind) -> bool:
    """Does a sentence at the end say nothing about shapes?"""
    if kind.find(sentence) or cues.UNFINISHED.search(sentence):
        return False
    return cues.IN_BRACKETS.match(sentence) is not None or not (kind.polar or cues.SUBJECT.search(sentence))


def _without_questions(sentences: list[str], kind: Kind) -> list[str]:
    """Without the questions that the reply asks itself, and its answers to others than the one that was asked."""
    kept = []
    for before, sentence in pairwise(["", *sentences]):
        if sentence.endswith("?") or cues.GUIDANCE.match(sentence):
            continue
        if cues.INTRODUCTION.match(sentence) and not cues.CORRECTION.search(sentence):
            continue
        if kind.polar and before.endswith("?") and _is_bare(sentence, kind):
            # "Is it yes? No.": what follows says more.
            is_first = sentence is not sentences[-1] and not cues.ANNOUNCEMENT.match(sentence)
            suggested = is_first and _is_one(before, kind) and before.count(" ") < 4
            if suggested or not kind.is_asked(before):
                continue
        kept.append(sentence)
    return kept


def _without_explanation(sentences: list[str], kind: Kind) -> list[str]:
    """The sentences up to "Explanation:", where the answer stands before it and none is announced after it."""
    heading = next((i for i, sentence in enumerate(sentences) if i and cues.EXPLANATION.match(sentence)), 0)
    answered = heading and _is_bare(sentences[heading - 1], kind) and not sentences[heading - 1].startswith(ITEM)
    if not answered or any(BOX in s for s in sentences) or _announced(sentences[heading:], kind):
        return sentences
    return sentences[:heading]


def _state(sentences: list[str], kind: Kind) -> str | None:
    """What the last sentence states, unless the one before states the opposite of something.

    Where the last one remarks on the one before, as in "There is one. It is at the top.", what that one states.
    """
    while len(sentences) > 1 and cues.REMARK.match(sentences[-1]) and kind.state(sentences[-1]) is None:
        sentences = sentences[:-1]
    states = [None if cues.UNFINISHED.search(sentence) else kind.state(sentence) for sentence in sentences[-2:]]
    if len(set(states) - {None}) == 2 and not re.search(
        r"\b(?:so|now|therefore|thus|hence|end)\b", sentences[-1], re.I
    ):
        return None
    if states and states[-1] is None and not kind.steps and not cues.UNFINISHED.search(sentences[-1]):
        told = {kind.tell(sentence) for sentence in sentences} - {None}
        return told.pop() if len(told) == 1 else None
    return states[-1] if states else None


def _after_correction(sentences: list[str], kind: Kind) -> list[str]:
    """What follows the last correction, nothing where there is none."""
    for i in range(len(sentences) - 1, -1, -1):
        found = list(cues.CORRECTION.finditer(sentences[i]))
        if not kind.polar:
            found += cues.RETRACTION.finditer(sentences[i])
        found = [cue for cue in found if not cues.CONDITION.search(sentences[i], 0, cue.start())]
        if found and (i or kind.find(sentences[i][: max(cue.start() for cue in found)])):
            return [sentences[i][max(cue.end() for cue in found) :], *sentences[i + 1 :]]
    return []


def _marked(sentences: list[str], kind: Kind) -> str | None:
    text = "\n".join(sentences)
    start = text.rfind(BOX)
    if start < 0:
        return None
    content, _, rest = text[start + 1 :].partition(UNBOX)
    inside = [line for line in content.split("\n") if line.strip()]
    if not inside:
        return None
    answer = _announced(inside, kind) or _concluded(inside, kind) or _stated(inside, kind) or AMBIGUOUS
    later = _announced(rest.split("\n"), kind)
    return answer if later in (None, answer) else AMBIGUOUS


def _wavers(sentences: list[str], kind: Kind) -> bool:
    """Does the reply announce one answer, another one and the first one again?"""
    said = [sentence for sentence in sentences if kind.find(sentence)]
    values = [_read_sentence(sentence, kind) for sentence in said]
    changes = sum(a != b for a, b in pairwise(values))
    return changes > 1 and all(cues.ANNOUNCEMENT.match(sentence) for sentence in said)


def _announced(sentences: list[str], kind: Kind) -> str | None:
    for i in range(len(sentences) - 1, -1, -1):
        sentence = sentences[i]
        for announcement in reversed(list(cues.ANNOUNCEMENT.finditer(sentence))):
            before = cues.CONTRAST.split(sentence[: announcement.start()])[-1]
            if cues.SEEMING.search(before) or cues.WHETHER.search(before):
                continue
            if cues.CONDITION.search(before):
                if re.search(r"\bwould\b", announcement[0], re.I):  # what it is not
                    continue
                return AMBIGUOUS if kind.find(sentence) else None
            tail = sentence[announcement.end() :]
            if not tail.strip(" .:-") and i + 1 < len(sentences):
                tail = sentences[i + 1]
            if re.match(r"\W*is\s+(?:the|my)\b", announcement[0], re.I):
                tail = sentence[: announcement.start()]
            if answer := _read_sentence(tail, kind):
                return answer
    return None


def _concluded(sentences: list[str], kind: Kind) -> str | None:
    for i in range(len(sentences) - 1, -1, -1):
        for cue, firm in ((cues.CONCLUSION, True), (cues.SO, False)):
            if (found := cue.match(sentences[i])) and (
                answer := _conclusion(sentences[i][found.end() :].lstrip(" ,:"), kind)
            ):
                last = answer if firm and answer != AMBIGUOUS else _say(sentences[-1], kind)
                if firm and answer == AMBIGUOUS:
                    return last or answer
                if last and set(answer.split()) < set(last.split()):  # "So it is below. Below Right."
                    return last
                return answer if last in (None, answer, AMBIGUOUS) else AMBIGUOUS
    return None


def _conclusion(sentence: str, kind: Kind) -> str | None:
    return _say(sentence, kind) or kind.state(sentence)


def _stated(sentences: list[str], kind: Kind) -> str | None:
    """The last sentence; the first where the last has no answer or is only an explanation of that one."""
    if not sentences:
        return None
    listed = max((i + 1 for i, sentence in enumerate(sentences) if sentence.startswith(ITEM)), default=0)
    if 0 < listed < len(sentences) and (answer := _stated(sentences[listed:], kind)):
        return answer
    firm = [
        s for s in sentences[:OPENING] if kind.find(s) and not (s is not sentences[-1] and cues.PRELIMINARY.search(s))
    ]
    opening = firm[0] if firm else sentences[0]
    closing = sentences[-1]
    cut_off = cues.UNFINISHED.search(closing)
    last = None if cut_off else _say(closing, kind)
    if last and opening is closing and not closing.startswith(ITEM):
        return last
    first = None if opening.startswith(ITEM) else _read_sentence(opening, kind)
    if last and opening.endswith("..."):  # it goes on
        return last
    told = {kind.tell(sentence) for sentence in sentences} - {None} if last and not kind.polar else set()
    if (
        told
        and last not in told
        and not (cues.SO.match(closing) or cues.CONCLUSION.match(closing) or closing.startswith(ITEM))
    ):
        return AMBIGUOUS  # another sentence gives just what was asked for
    if last and closing.startswith(ITEM):
        return first if first == last else AMBIGUOUS
    if first in (None, AMBIGUOUS, last) or (last and cues.BUT.match(closing)):
        return last or first
    if last is None and not cut_off and _named_later(sentences, kind) not in (None, first):
        return first if opening is sentences[0] and _is_bare(opening, kind) else AMBIGUOUS
    if not kind.polar and last and last == kind.tell(closing) and kind.tell(opening) is None:
        return last
    if _is_bare(opening, kind):
        step = kind.steps or cues.PLACE.search(opening)
        contradicted = last and last != AMBIGUOUS and (step or _is_bare(closing, kind) or last == kind.tell(closing))
        return AMBIGUOUS if contradicted else first
    return AMBIGUOUS if cut_off else last or first


def _named_later(sentences: list[str], kind: Kind) -> str | None:
    """The answer of the last sentence that names one."""
    return next(filter(None, (_read_sentence(sentence, kind) for sentence in reversed(sentences))), None)


def _is_bare(sentence: str, kind: Kind) -> bool:
    """Does the sentence give the answer and nothing else, or give it first, as in "Yes, there is one"?"""
    mentions = kind.find(sentence)
    if not mentions or cues.FILLER.fullmatch(sentence[: mentions[0].start]) is None:
        return False
    rest = sentence[mentions[0].end :]
    return cues.NOUN.fullmatch(rest) is not None or (kind.polar and rest.lstrip().startswith((",", ".", ":", ";", "-")))


def _say(sentence: str, kind: Kind) -> str | None:
    """The answer that a sentence gives by a word or by what it says of the thing asked about."""
    answer, told = _read_sentence(sentence, kind), kind.tell(sentence)
    if told is None or answer in (None, told, AMBIGUOUS):
        return answer if told is None else told
    if _is_bare(sentence, kind) and len(cues.CONTRAST.split(sentence)) < 2:  # "Yes, there is none."
        return AMBIGUOUS
    return told


def bare(kind: Kind) -> Kind:
    """The same kind, of which only a passage tells that gives the answer and nothing else."""

    @lru_cache(maxsize=CACHED)
    def find(passage: str) -> Mentions:
        mentions = kind.find(passage)
        alone = mentions and not re.search(r"\w", passage[mentions[-1].end :]) and _is_bare(passage, kind)
        return mentions if alone else ()

    return replace(kind, find=find)


def _read_sentence(sentence: str, kind: Kind) -> str | None:
    """The answer that a sentence gives, AMBIGUOUS where it gives several, None where it gives none."""
    short = cues.ASIDE.sub(" ", sentence)
    if not kind.find(short):
        short = sentence
    elif any(_is_other(sentence, aside, kind) for aside in cues.ASIDE.finditer(sentence)):
        return AMBIGUOUS
    if cues.SUPPOSITION.match(short):
        return None
    if (belief := cues.BELIEF.search(short)) and (but := cues.CONTRAST.search(short, belief.end())):
        short = short[but.end() :]
    if len(values := {mention.value for mention in kind.find(short)}) < 2:
        return values.pop() if values else None
    if cues.GROUND.match(short) and (answer := _decide(short.rpartition(",")[2], kind)) not in (None, AMBIGUOUS):
        return answer
    parts = cues.CONTRAST.split(short)
    if _knows_better(parts, kind):
        short = parts[-1]
    label, _, end = short.rpartition(":")
    own = _is_followed_by_reason(short, kind)
    if (
        label
        and not own
        and not (":" in label and kind.find(label))
        and _is_one(end, kind)
        and _decide(short, kind) == AMBIGUOUS
    ):
        return _decide(end, kind)
    *before, conclusion = cues.HENCE.split(short)
    if before and (not own or _is_one(conclusion, kind)) and (answer := _read_passage(conclusion, kind)):
        return answer
    return _read_passage(short, kind)


def _knows_better(parts: list[str], kind: Kind) -> bool:
    """Does the last part of a sentence give the answer that the first one only seemed to give?"""
    if not kind.find(parts[-1]):
        return False
    if cues.SEEMING.search(parts[0]) or cues.EVEN.search(parts[-1]):
        return True
    return kind.exclusive and len(parts) > 1 and not _is_bare(parts[0], kind)


def _is_other(sentence: str, aside: re.Match[str], kind: Kind) -> bool:
    """Does another answer follow an answer in brackets, as in "above (left)"?"""
    before = sentence[: aside.start()].rstrip()
    mentions = kind.find(before)
    return bool(
        mentions
        and mentions[-1].end == len(before)
        and _is_one(aside[0], kind)
        and cues.FILLER.fullmatch(aside[0], kind.find(aside[0])[0].end)
        and _decide(aside[0], kind) != mentions[-1].value
    )


def _is_one(passage: str, kind: Kind) -> bool:
    """Is the passage one answer and nothing else?"""
    values = {mention.value for mention in kind.find(passage)}
    return len(values) == 1 and _is_bare(passage, kind)


def _is_followed_by_reason(passage: str, kind: Kind) -> bool:
    """Does the passage begin with an answer that stands for itself, as in "Left, because …"?"""
    mentions = kind.find(passage)
    if not mentions or cues.FILLER.fullmatch(passage[: mentions[0].start]) is None:
        return False
    boundary = cues.BOUNDARY.match(passage[mentions[0].end :].lstrip() + ".")
    return boundary is not None and _lead(passage, kind) == mentions[0].value


def _read_passage(passage: str, kind: Kind) -> str | None:
    return _lead(passage, kind) or _decide(passage, kind)


def _decide(passage: str, kind: Kind) -> str | None:
    mentions = kind.find(passage)
    values = {mention.value for mention in mentions}
    if len(values) > 1:
        return kind.choose(passage, mentions) or AMBIGUOUS
    return values.pop() if values else None


_ENDS_AS = re.compile(r"\b(?:ends?|ended|finish\w*|remains?|stays?)(?: up)? as\b", re.I)  # gives no reason


def _lead(passage: str, kind: Kind) -> str | None:
    """The first item of a passage that begins with it: what follows explains it, unless it is an alternative."""
    mentions = kind.find(passage)
    if not mentions or cues.FILLER.fullmatch(passage[: mentions[0].start]) is None:
        return None
    first = mentions[0]
    others = [mention for mention in mentions if mention.value != first.value]
    if not others:
        return first.value
    rest, gap = passage[first.end :], _ENDS_AS.sub(" ", passage[first.end : others[0].start].replace("()", "  "))
    boundary = cues.BOUNDARY.search(gap)
    if _is_joint(gap) or (boundary and boundary[0] == "," and _is_joint(gap[boundary.start() :])):
        return kind.choose(passage, mentions) or AMBIGUOUS
    if re.match(r"\W*(?:if|unless|provided)\b", rest, re.I):
        return AMBIGUOUS
    if kind.exclusive or boundary is None or re.match(r"[,\s]*(?:and\s+)?then\b", rest, re.I):
        return None
    return first.value


def _is_joint(between: str) -> bool:
    joint = cues.JOINT.match(between)
    return joint is not None and cues.FILLER.fullmatch(between[joint.end() :]) is not None and len(between) < 80


def _is_denied(before: str, text: str) -> bool:
    if cues.CHANGED_FROM.search(before):
        return True
    found = cues.NEGATION.search(before)
    # "It could be red" is no answer; "it could be red, or it is blue" names two.
    return found is not None and not (found["modal"] and re.search(r"\bor\b", text))


def definite(text: str, mentions: Iterable[Mention]) -> Mentions:
    """The mentions that say what is, not what is not or what could be."""
    kept: list[Mention] = []
    denied_end = -1
    joint = cues.OR
    for mention in mentions:
        before = text[max(0, mention.start - 60) : mention.start]
        after = text[mention.end : mention.end + 30]
        if (
            _is_denied(before, text)
            or cues.DENIED_AFTER.match(after)
            or (denied_end >= 0 and joint.fullmatch(text[denied_end : mention.start]))
        ):
            joint = cues.AND if cues.UNLIKE.search(before) or (joint is cues.AND and denied_end >= 0) else cues.OR
            denied_end = mention.end
        else:
            kept.append(mention)
            denied_end = -1
    return tuple(kept)
