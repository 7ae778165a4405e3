"""Whether a shape is there, or is there now, as far as a reply says without Yes and No."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from proctor.shapes.replies import cues
from proctor.shapes.replies.markup import ITEM
from proctor.shapes.replies.polar import YES_NO, state_existence
from proctor.shapes.replies.reader import AMBIGUOUS, Kind
from proctor.shapes.replies.statements import PHRASE, Attributes, attributes, full_names, named, says_exists


def presence_about(question: str) -> Kind | None:
    if not (found := _IS_THERE.search(question)):
        return None
    asked = attributes(found[1])
    if not re.search(r"\bnow\?", question):
        return replace(YES_NO, state=partial(_state_about, asked), tell=partial(says_exists, asked), whole=_deny_each)
    # Each step of a history says that something is there: only a reply's conclusion counts.
    state, tell, whole = (partial(rule, asked) for rule in (_state_now, _tell_now, _end_of_history))
    return replace(YES_NO, state=state, tell=tell, whole=whole, steps=True)


_EACH_NO = re.compile(rf"^{ITEM}[^:]*\b(?:square|circle|triangle)\b[^:]*[:-]\W*(?:no\b|[❌✖✗✘])", re.I)


def _deny_each(sentences: Sequence[str]) -> str | None:
    """No, where the reply goes through a list of shapes and says no to each."""
    items = [sentence for sentence in sentences if sentence.startswith(ITEM)]
    denied = len(items) > 1 and sentences[-1] in items and all(map(_EACH_NO.match, items))
    return "No" if denied else None


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
    r"(?:(?P<on>(?:re-?)?added(?: back| again)?|restored|returns?|returned|(?:re)?appear(?:s|"
    r"ed)?(?! to\b| that\b)|(?:came|comes|"
    r"come|brought|brings?|put|puts) (?:it )?back|"
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
    r"not (?:been )?(?:removed|added)|no (?:\w+ )?event|nothing|"
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
    r"\b(?:final|now|end|remaining|current|after (?:all|the last|"
    r"every))\b[^.:;]*(?:\b(?:contains?|has|have|includes?|shows?|"
    r"shapes?|canvas|are|holds?)\b"
    r"[^.:;]*)(?::|\bcontains?|\bhas|\bhave|\bincludes?|\bshows?|\bholds?|"
    r"\bare)\s+(?P<list>.*,.*)$",
    re.I,
)


_PAST = re.compile(
    r"\b(?:was|were|initial|original|at (?:the )?(?:start|beginning|first|outset)|initially|originally|start(?:s|"
    r"ed|ing)?|begins?|before)\b",
    re.I,
)
_NOW = re.compile(
    r"\bthere (?P<is>is|'s|are)?(?P<no>n't| not| none| no longer)?(?: one| any)?(?: now|"
    r" any ?more)?\W*$|"
    r"\bthere (?P<isnt>isn't|is not|aren't)(?: one| any)?(?: now| any ?more)?\W*$",
    re.I,
)


_NO_MORE = re.compile(r"^\W*(?:not|no) (?:any ?more|any longer|longer|now)\b", re.I)
_STILL = re.compile(r"^\W*(?:it(?: is|'s) )?still (?:there|present|on)\b", re.I)
_EVENT = re.compile(r"\b(?:removed|removes?|added|adds?)\b", re.I)  # what happens is not yet what is there


def _tell_now(asked: Attributes, sentence: str) -> str | None:
    """What the sentence says of the present; what was at the start is only the beginning of the history."""
    *_, last = re.split(r"\bbut\b|\bhowever\b", sentence)
    if _NO_MORE.match(last):
        return "No"
    if _STILL.match(last):
        return "Yes"
    *_, last = re.split(r"\bbut\b|\bhowever\b|;", sentence)
    if last is not sentence and _PAST.search(sentence[: -len(last)]):
        if now := _NOW.search(last):
            return "No" if now["isnt"] or now["no"] else "Yes" if now["is"] else None
        return _tell_now(asked, last)
    if _PAST.search(sentence) or _EVENT.search(sentence):
        return None
    return says_exists(asked, sentence)


def _state_now(asked: Attributes, sentence: str, is_last: bool = False) -> str | None:
    """Whether the shape is there at the end of its history; any event counts where the reply calls it the last one."""
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
    changes = list(_GOES.finditer(sentence))
    if not changes or not (is_last or _FINAL.search(sentence)):
        return None
    last = changes[-1]
    things = [phrase.things for phrase in phrases if phrase.start < last.start() or len(phrases) == 1]
    is_it = re.search(r"\b(?:it|this|that)(?: \w+){0,2}\s*$", sentence[max(0, last.start() - 30) : last.start()], re.I)
    if not (is_it or (asked <= things[-1] if things else _IT.search(sentence))):
        return None
    nothing = _NO_EVENT.search(sentence, max(0, last.start() - 40), last.start()) is not None
    if nothing and last["on"] and len(changes) == 1 and not re.search(r"back|again|^re", last["on"], re.I):
        return None  # nothing adds it: it may have been there
    return "Yes" if bool(last["on"]) != (bool(last["out"]) or nothing) else "No"


_STATE = re.compile(r"^\W*(?:(?:after|step|event|state)\s*){0,2}#?\d+\)?\s*[:.]\s*(?P<list>.*)$", re.I)
_NOTHING_LATER = re.compile(r"^\W*(?:no (?:\w+ )?(?:event|step)|nothing|none of the (?:\w+ )?(?:events|steps))\b", re.I)
_AFTER_EACH = re.compile(r"^\W*(?:after )?(?:event|step) \d+\s*:\s*(?:yes|no)\W*$", re.I)
_STEP = re.compile(r"\b(?:event|step|if|whether|let)\b", re.I)


_IT = re.compile(rf"\b(?:it|that|this)\b|^\W*{_GOES.pattern}", re.I)


def _end_of_history(asked: Attributes, sentences: Sequence[str]) -> str | None:
    """The last that is said of the canvas, where nothing happens after it."""
    states = [_STATE.match(sentence) for sentence in sentences]
    if len(states) > 1 and states[-1] and states[-2] and (shapes := full_names(sentences[-1])):
        rest = PHRASE.sub("", states[-1]["list"])
        return None if re.search(r"\w{4}", rest) else "Yes" if any(asked <= attributes(n) for *_, n in shapes) else "No"
    if len(sentences) > 1 and all(map(_AFTER_EACH.match, sentences[-2:])):
        return "Yes" if re.search(r"\byes\W*$", sentences[-1], re.I) else "No"
    ended = False
    if sentences and cues.UNFINISHED.search(sentences[-1]):
        return None
    for sentence in reversed(sentences):
        if _NOTHING_LATER.match(sentence):
            ended = True
            continue
        if (answer := _state_now(asked, sentence, ended)) and answer != AMBIGUOUS:
            return answer
        if _EVENT.search(sentence) or _GOES.search(sentence) or _STEP.search(sentence):
            return None
    return None


def _in_list(asked: Attributes, listed: str) -> str | None:
    """Whether a list of whole shapes, all that there are in the end, has the one asked about."""
    shapes = [attributes(phrase[0]) for phrase in PHRASE.finditer(listed)]
    if len(shapes) < 2 or any(len(shape) < 3 for shape in shapes) or re.search(r"\b(?:no|not|or)\b", listed, re.I):
        return None
    return "Yes" if any(asked <= shape for shape in shapes) else "No"
