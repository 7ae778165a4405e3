"""Finds the answer in a model's reply, in the order in which a person looks for it.

1. Reasoning is removed, and so are mark-up, coordinates and questions; what follows a correction ("Wait, …") comes first.
2. A boxed or tagged answer: `\\boxed{…}`, `<answer>…</answer>`, `{"answer": …}`.
3. The last announcement ("Answer: …", "the answer is …") and the first item in it.
4. The last conclusion ("Therefore, …", "So the shape is …").
5. The last sentence, and the first one where that names no answer.

Two answers where one is expected are no answer: a reader that guesses gives marks that nobody has earned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from proctor.shapes.markup import BOX, ITEM, UNBOX, plain_sentences

CACHED = 256  # passages whose mentions are remembered: one is looked at from several sides
SHORT = 64  # characters of a reply that is remembered as a whole
AMBIGUOUS = "(ambiguous)"  # more than one answer, or one that is not of this kind


class Mention(NamedTuple):
    start: int
    end: int
    value: str


Mentions = tuple[Mention, ...]
Find = Callable[[str], Mentions]


@dataclass(frozen=True)
class Kind:
    """What a kind of answers looks like: where a passage mentions one, and which of several in a sentence is meant."""

    find: Find  # the same passage is asked for many times: cache it
    choose: Callable[[str, Mentions], str | None] = lambda sentence, mentions: None
    prepare: Callable[[str], str] = lambda text: text
    state: Callable[[str], str | None] = lambda sentence: None  # an answer given by a statement: "There is none."
    join: Callable[[list[str]], list[str]] = lambda sentences: sentences  # sentences that give one answer together
    polar: bool = False  # "no" is an answer, and not the beginning of a correction
    exclusive: bool = False  # an answer with another one later in its sentence is none


_FILLER_WORDS = (
    "the|a|an|it|is|it's|its|that|that's|this|there|there's|are|to|on|in|at|of|be|just|only|exactly|simply|indeed|clearly|"
    "definitely|certainly|most|then|now|so|therefore|thus|hence|we|have|has|get|i|i'd|i'll|i'm|say|go|with|count|see|found|find|"
    "think|believe|they|shape|located|positioned|situated|lies|sits|would|must|should|still|directly|probably|likely|ok|okay|well|"
    "sure|both|towards?|final|one|my|answer|in\\s+fact|diagonally|slightly|further|farther|somewhere|side|total|small|large"
)
_FILLER = re.compile(rf"(?:\W|\b(?:{_FILLER_WORDS})\b)*", re.I)
_NOUN = re.compile(rf"(?:\W|\b(?:{_FILLER_WORDS}|squares?|circles?|triangles?|shapes)\b)*", re.I)
_JOINT = re.compile(
    r"(?:\W*\b(?:and/or|and|or|nor|vs|maybe|possibly|perhaps|alternatively)\b|\s*[,/&+(](?:\s*(?:and|or)\b)?|-|\s*$)"
    r"(?:\s*(?:maybe|possibly|perhaps|even|else)\b)?",
    re.I,
)
_BOUNDARY = re.compile(
    r"[(;:,.!?]|\s-+>?\s|\b(?:because|since|as|given|while|whereas|which|where|who|followed|due|but|not|rather|"
    r"based|meaning|when|after|even|although|though|so|unless)\b",
    re.I,
)
_NEGATION = re.compile(
    r"(?:\bnot|n't|\bcannot|\bnever|\bno longer|\bneither|\bnor|\brather than|\binstead of|\bother than|\bunlike|\bbut(?<=anything but)|\bexcept|"
    r"\b(?P<modal>could|might|may)(?: also| well| just as well)*)\s+"
    r"(?:(?:to|the|a|an|on|in|at|be|it|is|its|it's|of|really|just|directly|either|simply|exactly|been|still|also|any|answer|say|tell|conclude)\s+)*\W*$",
    re.I,
)
_DENIED_AFTER = re.compile(
    r"\s+(?:is|was)(?: not|n't) (?:the|it|\w+most|nearest|farthest|closest|correct|right)\b", re.I
)
_OR = re.compile(r"\W*\b(?:or|nor)\s+(?:(?:to|the|a|an|on|in|at|of)\s+)*", re.I)
_ANNOUNCEMENT = re.compile(
    r"(?:\b(?:answer|ans|verdict|conclusion|result|solution|outcome)\b(?:\s+(?:to|of|for|here|in)\b[^:.=]{0,200}?)?"
    r"\s*(?:(?:is|was|remains|becomes|(?:would|will|should|must)\s+be)\b[\s:]*(?:therefore|thus|then|now|clearly|simply)?|=|:|->|\s-\s)"
    r"|^\s*(?:(?:the|my|final|correct|short|direct)\s+)*(?:answer|ans|verdict|conclusion|result|solution)\s*\.?$"
    r"|^\s*a\s*:|\b(?:i'd|i would|i|i'll|i will)\s+(?:go with|choose|pick|say|settle on|answer|conclude)\b"
    r"|(?<!\bin )\b(?:grand |final |overall )?(?:total|count|tally)\s*(?:is|=|:|comes to)"
    r"|\bis\s+(?:the|my)\s+(?:final\s+|correct\s+|right\s+)?answer\b(?=\W*$))[\s:,]*",
    re.I,
)
_CONDITION = re.compile(r"\b(?:if|unless|suppose|assuming|otherwise|whether)\b", re.I)
_CONCLUSION = re.compile(
    r"\W*(?:therefore|thus|hence|consequently|accordingly|overall|in conclusion|in summary|in short|to sum up|to conclude|"
    r"to summari[sz]e|summary|in the end|finally|as a result|this means|that means|it follows)\b",
    re.I,
)
_SO = re.compile(r"\W*(?:so|that makes|that gives|this gives|this makes|that is|that leaves|this leaves)\b", re.I)
_HENCE = re.compile(
    r"\b(?:therefore|thus|hence|consequently|so|meaning|which means|which makes|which gives|making|giving|ie|in other words|"
    r"gives|yields|evaluates to)\b(?! far| that)|[-=]+>|(?<![<>=])=(?![<>=])",
    re.I,
)
_CORRECTION = re.compile(
    r"\b(?:wait|actually|correction|corrected|on second thoughts?|on reflection|scratch that|hold on|hang on|oops|sorry|or rather|"
    r"i (?:meant|made|was|mis\w+|overlooked|missed|forgot|mixed)|my mistake|apologies|i mean|let me (?:re|double|look again|check again)[\w-]*|"
    r"h+m+|upon re\w+|looking again|checking again|rechecking|recounting)\b",
    re.I,
)
_RETRACTION = re.compile(r"^\W*no\b\s*[,:.;-]|\bno\s*[,:]\s", re.I)
_SEEMING = re.compile(
    r"\b(?:seems?|appears?|at first|first|initial|initially|originally|earlier|before|almost|one might|might think|thought|would think|"
    r"said|counted|guessed|expected|tempted|going to say|looks? like)\b",
    re.I,
)
_CONTRAST = re.compile(r"\b(?:but|however|yet|though)\b|;", re.I)
_CHANGED_FROM = re.compile(r"\b(?:chang|switch|correct|revis|went|goes)\w*\s+(?:\w+\s+){0,3}from\s+$", re.I)
_SUPPOSITION = re.compile(r"^\W*(?:if(?! (?:we|you|i|one)\b)|unless|suppose|supposing|assuming|provided)\b", re.I)
_NEXT_QUESTION = re.compile(r"^\W*(?:question|q)\s*\d*\s*:", re.I)
_UNDECIDED = re.compile(
    r"(?:\bnot|n't)\s+(?:be\s+)?(?:sure|certain|know|tell|decide)\s+(?:which|whether)|\bunsure which|\bcan(?:not|'t) decide",
    re.I,
)
_UNFINISHED = re.compile(
    r"\b(?:is|are|the|a|an|at|of|and|or|so|to|with|because|since|than|its|then|that|which|be|by|in|the small|the large)$"
    r"|\b(?:let me|let's|here)\b[^:]*:\s*1\.$",
    re.I,
)
_ASIDE = re.compile(r"\((?!\s*(?:or|and|maybe|possibly|perhaps)\b)[^()]*\)")


def read_reply(text: str, kind: Kind) -> str | None:
    """The answer that the reply gives; None where a person could not tell."""
    return _read_short(text, kind) if len(text) <= SHORT else _read_reply(text, kind)


@lru_cache(maxsize=4096)
def _read_short(text: str, kind: Kind) -> str | None:
    """Most replies of a run are the same few words."""
    return _read_reply(text, kind)


def _read_reply(text: str, kind: Kind) -> str | None:
    sentences = kind.join(plain_sentences(text, kind.prepare))
    own = _own_part(sentences)
    if len(own) < len(sentences) and (answer := _read(own, kind)):
        return answer
    return _read([s for s in sentences if not _NEXT_QUESTION.match(s)], kind)


def _own_part(sentences: list[str]) -> list[str]:
    """The reply up to where a base model goes on with a question of its own."""
    for i, sentence in enumerate(sentences):
        if i and _NEXT_QUESTION.match(sentence):
            return sentences[:i]
    return sentences


def _read(sentences: list[str], kind: Kind) -> str | None:
    sentences = [sentence for sentence in sentences if not sentence.endswith("?")]
    if sentences and not kind.exclusive and _UNDECIDED.search(sentences[-1]):
        return None
    for part in (_after_correction(sentences, kind), sentences):
        for rule in (_marked, _announced, _concluded, _stated):
            answer = rule(part, kind)
            if answer == AMBIGUOUS:
                return None
            if answer:
                return answer
    return _state(sentences, kind)


def _state(sentences: list[str], kind: Kind) -> str | None:
    """What the last sentence states, unless the one before states the opposite of something."""
    states = [None if _UNFINISHED.search(sentence) else kind.state(sentence) for sentence in sentences[-2:]]
    if len(set(states) - {None}) == 2 and not re.search(
        r"\b(?:so|now|therefore|thus|hence|end)\b", sentences[-1], re.I
    ):
        return None
    return states[-1] if states else None


def _after_correction(sentences: list[str], kind: Kind) -> list[str]:
    """What follows the last correction, nothing where there is none."""
    for i in range(len(sentences) - 1, -1, -1):
        cues = list(_CORRECTION.finditer(sentences[i]))
        if not kind.polar:
            cues += _RETRACTION.finditer(sentences[i])
        cues = [cue for cue in cues if not _CONDITION.search(sentences[i], 0, cue.start())]
        if cues and (i or kind.find(sentences[i][: max(cue.start() for cue in cues)])):
            return [sentences[i][max(cue.end() for cue in cues) :], *sentences[i + 1 :]]
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


def _announced(sentences: list[str], kind: Kind) -> str | None:
    for i in range(len(sentences) - 1, -1, -1):
        sentence = sentences[i]
        for announcement in reversed(list(_ANNOUNCEMENT.finditer(sentence))):
            before = _CONTRAST.split(sentence[: announcement.start()])[-1]
            if _SEEMING.search(before):
                continue
            if _CONDITION.search(before):
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
        for cue, firm in ((_CONCLUSION, True), (_SO, False)):
            if (found := cue.match(sentences[i])) and (
                answer := _read_sentence(sentences[i][found.end() :].lstrip(" ,:"), kind)
            ):
                last = answer if firm else _read_sentence(sentences[-1], kind)
                return answer if last in (None, answer, AMBIGUOUS) else AMBIGUOUS
    return None


def _stated(sentences: list[str], kind: Kind) -> str | None:
    """The last sentence; the first where the last has no answer or is only an explanation of that one."""
    if not sentences:
        return None
    first = None if sentences[0].startswith(ITEM) else _read_sentence(sentences[0], kind)
    last = None if _UNFINISHED.search(sentences[-1]) else _read_sentence(sentences[-1], kind)
    if last and sentences[-1].startswith(ITEM) and _is_bare(sentences[-1], kind):
        return first if first == last else AMBIGUOUS
    if _UNFINISHED.search(sentences[-1]) and first and not _is_bare(sentences[0], kind):
        return AMBIGUOUS
    if first in (None, AMBIGUOUS, last):
        return last or first
    if last in (None, AMBIGUOUS):
        return first if last is None or _is_bare(sentences[0], kind) else AMBIGUOUS
    if _is_bare(sentences[0], kind):
        return AMBIGUOUS if _is_bare(sentences[-1], kind) else first
    return last


def _is_bare(sentence: str, kind: Kind) -> bool:
    """Does the sentence give the answer and nothing else, or give it first, as in "Yes, there is one"?"""
    mention = kind.find(sentence)[0]
    rest = sentence[mention.end :]
    if _FILLER.fullmatch(sentence[: mention.start]) is None:
        return False
    return _NOUN.fullmatch(rest) is not None or (kind.polar and rest.lstrip().startswith((",", ".", ":", ";", "-")))


def _read_sentence(sentence: str, kind: Kind) -> str | None:
    """The answer that a sentence gives, AMBIGUOUS where it gives several, None where it gives none."""
    short = _ASIDE.sub(" ", sentence)
    if not kind.find(short):
        short = sentence
    if _SUPPOSITION.match(short):
        return None
    if len(values := {mention.value for mention in kind.find(short)}) < 2:
        return values.pop() if values else None
    parts = _CONTRAST.split(short)
    if _SEEMING.search(parts[0]) and kind.find(parts[-1]):
        short = parts[-1]
    label, _, end = short.rpartition(":")
    if label and not (":" in label and kind.find(label)) and _is_one(end, kind) and _decide(short, kind) == AMBIGUOUS:
        return _decide(end, kind)
    *before, conclusion = _HENCE.split(short)
    if before and not _is_followed_by_reason(short, kind) and (answer := _read_passage(conclusion, kind)):
        return answer
    return _read_passage(short, kind)


def _is_one(passage: str, kind: Kind) -> bool:
    """Is the passage one answer and nothing else?"""
    values = {mention.value for mention in kind.find(passage)}
    return len(values) == 1 and _is_bare(passage, kind)


def _is_followed_by_reason(passage: str, kind: Kind) -> bool:
    """Does the passage begin with an answer that stands for itself, as in "Left, because …"?"""
    mentions = kind.find(passage)
    if not mentions or _FILLER.fullmatch(passage[: mentions[0].start]) is None:
        return False
    boundary = _BOUNDARY.match(passage[mentions[0].end :].lstrip() + ".")
    return boundary is not None and _lead(passage, kind) == mentions[0].value


def _read_passage(passage: str, kind: Kind) -> str | None:
    return _lead(passage, kind) or _decide(passage, kind)


def _decide(passage: str, kind: Kind) -> str | None:
    mentions = kind.find(passage)
    values = {mention.value for mention in mentions}
    if len(values) > 1:
        return kind.choose(passage, mentions) or AMBIGUOUS
    return values.pop() if values else None


def _lead(passage: str, kind: Kind) -> str | None:
    """The first item of a passage that begins with it: what follows explains it, unless it is an alternative."""
    mentions = kind.find(passage)
    if not mentions or _FILLER.fullmatch(passage[: mentions[0].start]) is None:
        return None
    first = mentions[0]
    others = [mention for mention in mentions if mention.value != first.value]
    if not others:
        return first.value
    rest, gap = passage[first.end :], passage[first.end : others[0].start]
    boundary = _BOUNDARY.search(gap)
    if _is_joint(gap) or (boundary and boundary[0] == "," and _is_joint(gap[boundary.start() :])):
        return kind.choose(passage, mentions) or AMBIGUOUS
    if re.match(r"\W*(?:if|unless|provided)\b", rest, re.I):
        return AMBIGUOUS
    if kind.exclusive or boundary is None or re.match(r"[,\s]*(?:and\s+)?then\b", rest, re.I):
        return None
    return first.value


def _is_joint(between: str) -> bool:
    joint = _JOINT.match(between)
    return joint is not None and _FILLER.fullmatch(between[joint.end() :]) is not None and len(between) < 80


def _is_denied(before: str, text: str) -> bool:
    if _CHANGED_FROM.search(before):
        return True
    found = _NEGATION.search(before)
    # "It could be red" is no answer; "it could be red, or it is blue" names two.
    return found is not None and not (found["modal"] and re.search(r"\bor\b", text))


def definite(text: str, mentions: Iterable[Mention]) -> Mentions:
    """The mentions that say what is, not what is not or what could be."""
    kept: list[Mention] = []
    denied_end = -1
    for mention in mentions:
        before = text[max(0, mention.start - 60) : mention.start]
        after = text[mention.end : mention.end + 30]
        if (
            _is_denied(before, text)
            or _DENIED_AFTER.match(after)
            or (denied_end >= 0 and _OR.fullmatch(text[denied_end : mention.start]))
        ):
            denied_end = mention.end
        else:
            kept.append(mention)
            denied_end = -1
    return tuple(kept)
