"""Yes and No in a reply, and Cannot be determined."""

from __future__ import annotations

import re
from functools import lru_cache

from proctor.shapes.replies import UNDETERMINED
from proctor.shapes.replies.cues import WHETHER
from proctor.shapes.replies.reader import CACHED, Kind, Mention, Mentions, definite

_YES = re.compile(
    r"\b(?:yes|yep|yeah|yup|affirmative)\b|\b(?:not|n't|isn't)\s+(?:false|incorrect|untrue)\b|"
    r"\b(?<!not )(?<!n't )(?<!opposite is )(?<!reverse is )true\b|"
    r"(?:^\W*|\b(?:that|this|it|statement|claim|sentence|assertion|which)(?: is|"
    r"'s) )correct\b(?! answer)|\bi (?:think|believe) so\b|^\W*(?:it )?(?:looks|seems) like it\b",
    re.I,
)
_NO = re.compile(
    r"\b(?:nope|nah|negative|untrue)\b|\bno way(?=\s*[,.!]|\s*$)|"
    r"\b(?:don't|do not) (?:think|"
    r"believe) so\b|"
    r"\b(?<!not )(?<!n't )(?:false|incorrect)\b|"
    r"(?:\bnot|n't) (?:look|seem|appear) (?:like it|that way|so)\b|(?:\bnot|n't)\s+(?:true|"
    r"correct|the case)\b|\b(?:definitely|certainly|absolutely|of course|"
    r"clearly) not\b|"
    r"\bnot at all\b|\b(?:neither|none)(?: \w+){0,5} (?:is|are) true\b|\bit (?:cannot|can't|"
    r"can not) be (?:between|to the|above|below|left|right|on the|true|so|the case)\b|"
    r"(?<=\byes or )no\b|(?<=\byes/)no\b|"
    r"\bno(?=\s*(?:$|[^\w\s'-])|\s+-|\s+(?:and|or|because|since|as|it|there|this|that|they|i|we|"
    r"but|is|if|from|"
    r"yes|would|are|seem)\b)(?!\.\s*\d)",
    re.I,
)
_EITHER = re.compile(
    r"\byes and no (?:are|were|remain|would be)\b|\b(?:both|neither) yes (?:and|nor) no\b|"
    r"\b(?:either|says?|"
    r"saying|tells?|simple|with|answer|be)\s+yes\s*(?:,|/|"
    r"or)\s*no\b(?:,? or cannot be determined\b)?",
    re.I,
)
_SYMBOL = re.compile(r"^\W*?(?:(?P<yes>[✅✔☑👍])|[❌✖❎👎🚫✗✘])\ufe0f?\W*$")
_LETTER = re.compile(r"^\W*([yn])\W*$", re.I)


@lru_cache(maxsize=CACHED)
def _find_polar(passage: str) -> Mentions:
    if letter := _LETTER.match(passage):
        return (Mention(letter.start(1), letter.end(1), "Yes" if letter[1] in "yY" else "No"),)
    if symbol := _SYMBOL.match(passage):
        return (Mention(symbol.start(), symbol.end(), "Yes" if symbol["yes"] else "No"),)
    found = [Mention(m.start(), m.end(), "No") for m in _NO.finditer(passage) if not _is_of_part(passage, m)]
    yes = (Mention(m.start(), m.end(), "Yes") for m in _YES.finditer(passage) if not _is_of_part(passage, m))
    found += [m for m in yes if not any(no.start < m.start < no.end for no in found)]
    return definite(passage, (m for m in sorted(found) if not _is_open(passage, m)))


_TRUTH = re.compile(r"true|false|correct|incorrect", re.I)
_PART = re.compile(
    r"\b(?:(?:first|second|one|other|former|latter|left|right|this|that|each|"
    r"either)(?: \w+){0,2} |\d\)? ?)?(?:part|half|"
    r"condition|conjunct|disjunct|clause|branch|premise|operand|component|"
    r"side)s?(?: (?:\w+ ){0,3}|\W{1,3})"
    r"(?:(?:is|was|are|being|evaluates to|->|=|:)\s+)?(?:also |therefore |thus |both )?$|"
    r"(?<!\band )(?<!\bor )(?<!\bxor )(?<![∧∨⊕] )(?-i:\b[ABPQ])\s*(?:is|=|:|->)\s*$",
    re.I,
)


def _is_of_part(passage: str, word: re.Match[str]) -> bool:
    """Is it said of a part of a claim, or of a condition, as in "The first part is true"?"""
    if not _TRUTH.search(word[0]):
        return False
    return _PART.search(passage, max(0, word.start() - 60), word.start()) is not None


def _is_open(passage: str, mention: Mention) -> bool:
    """Is it left open, as in "whether it is yes" and "nothing says yes or no"?"""
    before = passage[max(0, mention.start - 80) : mention.start]
    return _is_offered(passage, mention) or WHETHER.search(before) is not None


def _is_offered(passage: str, mention: Mention) -> bool:
    """Is it one of the answers that may be given, as in "The answer should be yes or no"?"""
    return any(offer.start() <= mention.start < offer.end() for offer in _EITHER.finditer(passage))


_THERE = r"\bthere(?:'s| is| are| was| were| exists?| still is| still are)\b"
_DENIAL = re.compile(
    rf"{_THERE}(?: now| currently| still)*(?: no| not| none)\b(?! doubt| need| other| way|"
    rf" one else| more need)|"
    r"\bthere (?:is|are|was|were|does)n't\b|\b(?:is|are|does|do)(?: not|n't)\W*$|"
    r"\bnot between\b|(?:\b(?:is|are|does|do)(?: not|n't)|'s not) (?:lie |sit |fall |stand |"
    r"occur |appear )?(?:among|listed|in the list|(?:in )?between|present|exist|there|"
    r"contain|hold|"
    r"satisfied|met|on the canvas|"
    r"in the canvas)\b|\b(?:does|do)(?:n't| not) (?:have|contain|show|include) (?:one|any|it)\W*$|"
    r"\b(?:don't|do not) (?:think|believe) (?:that )?(?:there|it) (?:is|are)\b|"
    r"\bcanvas is (?:now )?empty\b|\b(?:condition|statement|claim) (?:fails|(?:does not|"
    r"doesn't) hold|(?:is not|isn't) (?:met|satisfied))\b|\b(?:none|nothing)(?: of (?:them|"
    r"these|those))? (?:qualif\w+|fits?|match\w*|meets?|exists?|satisf\w+|appl\w+)\b|"
    r"\bno longer (?:present|there|exists?|on|in)\b|"
    r"\b(?:do not|don't|cannot|can't) (?:see|find) (?:an?|any|one|such)\b(?! image| picture|"
    r" canvas)|"
    r"\b(?:shape|square|circle|triangle|it) is (?:absent|missing|gone)\W*$|"
    r"\b(?:see|sees|find|found|contains?|has|have|includes?|shows?) no (?:\w+ ){0,3}(?:shape|"
    r"square|circle|"
    r"triangle)s?\b|^\W*(?:no|none of)\b(?! other)[^.]*\b(?:shape|square|circle|triangle|match)(?:e?s)?\b|"
    r"^\W*(?:(?:sadly|unfortunately|regrettably|alas|apparently|evidently|i'm afraid),? not)\W*$|"
    r"^\W*(?:not a single(?: one)?|none(?: of (?:them|those|these))?(?: listed)?|"
    r"not on (?:this|the) canvas|absent|missing|gone|nothing matches|found (?:0|zero|none|"
    r"nothing)|i (?:found|"
    r"see|saw) none|"
    r"(?:it(?: is|'s) )?not (?:present|there|found|on the canvas|on it|that i can see))\W*$",
    re.I,
)
_ASSERTION = re.compile(
    rf"{_THERE}(?: now| currently| still| indeed)*(?:\W*$|\s*:| (?:an?|one|two|three|four|five|\d+|"
    rf"exactly|at least|"
    rf"such)\b)|"
    r"^\W*(?:there (?:most |very )?(?:\w+ly|indeed) is|it (?:is|does)|(?:it )?exists|"
    r"(?:it's )?there|present|"
    r"found)\W*$|"
    r"^\W*(?:(?:at least|exactly|just|only) )?(?:one|two|three|four|five|several|plenty|many|"
    r"a few)(?: of them)?\W*$|"
    r"^\W*(?:(?:i|we|you) )?(?:found|see|can see|spotted) (?:it|one|two|three|[1-9])\b|"
    r"^\W*such an? [\w ]{1,40} exists\b|"
    r"(?:\b(?:is|lies|sits)|'s)(?: still| indeed| now)? (?:among|listed|in the list|(?:in )?between|present|there|"
    r"on the canvas|in the canvas)\b|"
    r"\b(?:statement|claim|condition) holds\b|"
    r"\b(?:canvas|list|description|picture|image) (?:contains|includes|has|shows) (?:an?|one|two|"
    r"\d+)\b[^,;]*$|"
    r"\b(?:conditions?|statement|claim|parts?) (?:is|are)(?: both)? (?:met|satisfied|fulfilled)\b",
    re.I,
)
_NOUN = re.compile(r"\b(?:shape|square|circle|triangle|one|match)s?\b", re.I)
_COMPARISON = re.compile(r"\b(?:more|fewer|less|as many|same|equal)\b", re.I)


def state_existence(sentence: str) -> str | None:
    """A bare statement, taken for the answer to "Is there …?" or "Is it …?"; half a statement is none."""
    if re.search(
        r"\b(?:whether|if|let me|let's|need to|what|which)\b|\b(?:told|given|shown|"
        r"provided)\b",
        sentence,
        re.I,
    ):
        return None
    denied, asserted = _DENIAL.search(sentence), _ASSERTION.search(sentence)
    if denied and re.match(r"\W*(?:no|none)\b", sentence, re.I):
        return "No"
    if bool(denied) == bool(asserted) or (asserted and _COMPARISON.search(sentence)):
        return None
    if asserted and asserted[0].endswith((" a", " an")) and not _NOUN.search(sentence, asserted.end()):  # cut off
        return None
    return "No" if denied else "Yes"


YES_NO = Kind(_find_polar, state=state_existence, polar=True)

_KNOW = (
    r"(?:be\s+)?(?:\w+ly\s+)?(?:determined?|known?|inferred|infer|deduced?|established?|"
    r"concluded?|decided|tell|"
    r"told|say|said|derived?|answered|settled|ascertain(?:ed)?|compared?)"
)
_OPEN = re.compile(
    r"\b(?:cannot|can't|can not|could not|couldn't|not possible to|isn't possible to|"
    r"impossible to|unable to|"
    r"no way to|no way of|"
    rf"not enough (?:\w+ )?to|insufficient (?:\w+ )?to|not able to|not allow us to|"
    rf"not be possible to)\s+{_KNOW}(?!ing you)\b"
    r"|\b(?:cannot|can't|can not) (?:definitively |conclusively )?(?:be )?(?:determined?|told|"
    r"known)\b|"
    r"\bno way (?:to|of) (?:knowing|telling)\b|(?:\bnot|n't) (?:determin(?:able|ed?)|"
    r"decid(?:able|ed))\b|"
    r"\b(?:un|in)determin(?:ed|ate|able)\b|"
    r"(?:\binsufficient|\btoo little|(?:\bnot|n't)(?: \w+){0,2} enough|\binadequate) (?:info|"
    r"information|data|"
    r"evidence|details)\b|\binconclusive\b|\bundecidable\b"
    rf"|\b(?:no|neither|nothing) (?:\w+ ){{0,6}}can (?:be drawn|be made|{_KNOW})\b"
    r"|\bmay or may not\b|\b(?:could be|it's|it is) either\b"
    r"|\b(?:not|non|un)[- ]?(?:inferable|inferrable|deducible|derivable|knowable|provable)\b"
    r"|\b(?:does not|doesn't|do not|don't) follow\b[^.]*\b(?:opposite|converse|reverse|contrary|either|"
    r"neither)\b",
    re.I,
)
_PERHAPS_OPEN = re.compile(
    r"\b(?:unknown|unclear|ambiguous|insufficient|undefined|unspecified|uncertain|incomparable)\b"
    r"|(?:\bnot|n't) (?:specified|stated|given|mentioned|fixed|comparable|known|sufficient|"
    r"be (?:sure|certain))\b"
    r"|\b(?:is|are|remains?|stays?|left) open\b|\bleaves? [^.;,]{1,60}\bopen\b|"
    r"\bno (?:definite|definitive|clear|certain|"
    r"unique) (?:answer|"
    r"conclusion)\b"
    r"|\bnothing is (?:said|known|stated|told)\b|\bno line(?: \w+)? (?:tells|says|states)\b|"
    r"\b(?:do not|"
    r"don't) know (?:whether|if|how|which|where|their|the)\b"
    r"|\b(?:doesn't|does not) (?:tell|say|show|reveal) (?:us )?(?:how|which|whether|if|where)\b"
    r"|\b(?:could|may|might|can) be\b[^.;]*\bor\b[^.;]*\b(?:left|right|above|below)\b"
    r"|\b(?:nothing|no line|neither|none)\b[^.;,]*\b(?:lets?|allows?|helps?|enables?) (?:us|me|you|one) (?:to )?"
    r"(?:compare|know|tell|decide|determine|conclude|say|see|infer|order|rank|establish)\b"
    r"|\bwe (?:do not|don't|simply don't) know\b"
    r"|\b(?:nobody|no one|no-one) (?:can|could) (?:tell|say|know)\b|\bno conclusion\b|"
    r"\bneither (?:yes nor no|"
    r"one) (?:follows|can)\b"
    r"|\b(?:does not|doesn't|do not|don't) (?:fix|settle|decide|establish|give|reveal|"
    r"tell us) (?:their|the) (?:order|relation|position)"
    r"|\bno (?:order|relation|relationship|comparison) (?:between|of) (?:the two|them|these)\b"
    r"|\b(?:on )?either side\b|\bboth could be\b|(?:\bnot|n't) (?:let|allow|enable|permit|"
    r"help) (?:us |me |one |"
    r"you )?(?:to )?"
    r"(?:compare|know|tell|decide|determine|conclude|say|see|infer|order|rank|establish)\b"
    r"|\beither way\b|\b(?:either|both)(?: \w+)? (?:is|are|remain|would be) (?:possible|"
    r"consistent)\b"
    r"|\b(?:text|description|lines?|information|statements?|facts?|clues?|"
    r"premises?) (?:do(?:es)?(?: not|n't)) "
    r"(?:say|tell|specify|state|mention|reveal|settle|relate|connect|link|compare|give|"
    r"provide)\b(?! that\b)"
    r"|\b(?:no|not any|n't any) (?:\w+ ){0,2}(?:information|info|data|clue)\b"
    r"|\b(?:nothing|none)(?: \w+){0,4} (?:relates?|links?|connects?|compares?|says?|tells?)\b"
    r"|\bno (?:\w+ ){0,2}(?:line|chain|path|link|relation|connection|statement|"
    r"fact)s?(?:,? \w+){0,6},? (?:between|"
    r"to compare|"
    r"relat\w+|link\w*|connect\w*|compar\w+)\b",
    re.I,
)


# "No, it cannot be determined" denies that there is an answer.
_NO_TO_THE_QUESTION = re.compile(
    r"^\W*no,? (?:that |it |this |we |one |you |i )?(?:cannot|can't|can not|is not|isn't|"
    r"does not|doesn't|don't|do not|"
    r"there is|there's|there isn't|not)\b",
    re.I,
)


@lru_cache(maxsize=CACHED)
def _find_entailment(passage: str) -> Mentions:
    found = (Mention(match.start(), match.end(), UNDETERMINED) for match in _OPEN.finditer(passage))
    opened = definite(passage, (mention for mention in found if not _is_offered(passage, mention)))
    polar = [m for m in _find_polar(passage) if not any(o.start <= m.start < o.end for o in opened)]
    if opened and _NO_TO_THE_QUESTION.match(passage):
        polar = polar[1:]
    if not opened and not polar:
        return tuple(Mention(match.start(), match.end(), UNDETERMINED) for match in _PERHAPS_OPEN.finditer(passage))
    return tuple(sorted([*opened, *polar]))


def _state_briefly(sentence: str) -> str | None:
    """ "It is." and "It is not.", but no more: that something is there does not say what follows from the text."""
    if re.match(r"\W*(?:so )?(?:it|the (?:statement|claim)) follows\b", sentence, re.I):
        return "Yes"
    brief = re.fullmatch(r"\W*it (?:is|does)( not|n't)?\W*", sentence, re.I)
    return None if brief is None else "No" if brief[1] else "Yes"


def _without_refusal(sentences: list[str]) -> list[str]:
    """Without the No of "No, that does not follow. It cannot be determined."."""
    if len(sentences) < 2 or not re.match(r"\W*no\b", sentences[-2], re.I):
        return sentences
    no, last = ({mention.value for mention in _find_entailment(sentence)} for sentence in sentences[-2:])
    refused = (no, last) == ({"No"}, {UNDETERMINED}) and _OPEN.search(sentences[-1])
    return [*sentences[:-2], sentences[-1]] if refused else sentences


ENTAILMENT = Kind(_find_entailment, state=_state_briefly, join=_without_refusal, polar=True, exclusive=True)
