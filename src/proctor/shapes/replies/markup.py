"""A reply as plain sentences: without reasoning, mark-up, coordinates and courtesies."""

from __future__ import annotations

import re
from collections.abc import Callable

from proctor.core.reasoning import strip_reasoning

BOX, UNBOX = "\x02", "\x03"  # around an answer that the reply marks as its answer

ITEM = "•"  # at the beginning of a line of a list

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("‘’‛`´", "'"),
        **dict.fromkeys("“”„«»", '"'),
        **dict.fromkeys("–−‐‑‒", "-"),
        **dict.fromkeys("—―", " - "),
        **dict.fromkeys("→⇒➡⟶", " -> "),
        **dict.fromkeys("\u00a0\u2009\u202f\t", " "),
        **dict.fromkeys("\u200b\ufeff\r", ""),
        **dict.fromkeys("•·◦▪‣", "-"),
        BOX: "",
        UNBOX: "",
        "…": "... ",
        **{wide: f"{narrow} " for wide, narrow in zip("。！？，：；", ".!?,:;", strict=True)},
        **dict(zip("（）０１２３４５６７８９", "()0123456789", strict=True)),
    }
)
# What a model writes after the end of its turn is not its reply.
_BEGIN = re.compile(
    r"<\|(?:begin_of_text|assistant)\|>|<s>|<bos>|"
    r"(?:<\|(?:im_start|start)\|>|<start_of_turn>)(?:assistant|model)\b"
)
_END_OF_TURN = re.compile(
    r"<\|(?:im_start|im_end|start|end|return|endoftext|end_of_text|eot_id|eom_id|user)\|>|"
    r"</s>|<eos>|<(?:start|end)_of_turn>"
)
# Scripts that set no spaces between words, also not before a word or number of ours.
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_SEAM = re.compile(rf"(?<=[{_UNSPACED}])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?=[{_UNSPACED}])")
_CAMEL_CASE = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_KEYS = r"(?:(?:final[ _]?)?(?:answer|response|result|output|prediction|solution)|(?:final|end)(?:[ _]?\w{1,12})?)"

_WORDS = r"(?:yes|no|true|false|left|right|above|below|red|blue|yellow|green|purple|orange|brown|black|\d+)"  # "<No>"

# Each in turn, on the whole text. None looks further than to the next bracket, quote or line, and nothing comes many
# times in a row after the first two: the time is linear in the length of the text.
_STEPS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.I | re.M), replacement)
    for pattern, replacement in (
        (r"([^\w\s])\1{3,}", r"\1\1\1"),
        (r" +", " "),
        (r"\n\s+", "\n"),
        (r"\A\W*(?:sure(?: thing)?|certainly|of course|okay|ok)\s?!\s+", ""),
        (
            r"^\W*(?:yes|sure|certainly|of course),? i (?:can|could|will|'ll|would|"
            r"'d)\b[^.!\n]{0,60}\b(?:help|assist|check|look|do)\b[^.!\n]*[.!\n]",
            "",
        ),
        (r"\\+(?:text|math|operatorname|mbox|emph)\w{0,12}\s?\{([^{}]*)\}", r"\1"),
        (r"\\+f?boxed\s?\{([^{}]*)\}", rf"\n{BOX}\1{UNBOX}\n"),
        (r"\\+(?:quad|,|;|:|!| )", " "),
        (r"\\+[()\[\]]|\$+", " "),
        (r"\\+(?:rightarrow|to|implies|Rightarrow)\b", " -> "),
        (r"\\+", ""),
        (r"</?(?:b|i|em|strong|p|br|div|span|u|code|pre|li|ul|ol|h\d)\s?/?>", "\n"),
        (rf"<{_KEYS}>([^<]*)", rf"\n{BOX}\1{UNBOX}\n"),
        (r"<(size|colou?r|form|shape)>([^<]*)</\1>", r" \1: \2; "),
        (rf"</?(?!{_WORDS}>)\w{{1,20}}>", "\n"),
        (rf"""["']{_KEYS}["']\s?:\s?"([^"]*)\"""", rf"\n{BOX}\1{UNBOX}\n"),
        (rf"""["']{_KEYS}["']\s?:\s?'([^'\n]*)'""", rf"\n{BOX}\1{UNBOX}\n"),
        (rf"""["']{_KEYS}["']\s?:\s?(\{{[^{{}}]*\}}|\[[^\[\]]*\]|[^\s,{{}}"']+)""", rf"\n{BOX}\1{UNBOX}\n"),
        (r"'''\w*|^\s*[-=_*|: ]{3,}$", "\n"),  # fences of code, rules, the second line of a table
        (r"~~[^~\n]*~~", " "),
        (r"(?<=\w)~(?=\w)", " "),
        (r"\*+|(?<!\w)_+|_+(?!\w)|^[ >#»]+", " "),
        (r"_", " "),
        (r"\b(i\.e\.|i\.e\b),?", " ie "),
        (r"\be\.g\.", " eg "),
        (r"\b(there)s\b", r"\1's"),
        (r"\b(is|are|was|were|does|do|did|has|have|would|could)nt\b", r"\1n't"),
        (r"\bvs\.", " vs "),
        (r"\.{2,}\s+(?=or\b)", " "),
        (rf"[(\[]\s*(?:x\s*[=:]\s*)?{_NUMBER}\s*[,;]\s*(?:y\s*[=:]\s*)?{_NUMBER}\s*[)\]]", "()"),
        (
            rf"\b([xy])(?:[- ](?:coordinate|value|position))?s?\s*(?:=|:|\bof\b|"
            rf"\bis\b)\s*{_NUMBER}",
            r"\1 ()",
        ),
        (rf"(?<![\w.]){_NUMBER}(?:\s?(?:<=|>=|[<>≤≥])\s?[-+\w.]{{1,12}}){{1,3}}", "()"),
        (r"\(\s*\(\)\s*\)", "()"),
        (r"\|", ";"),
        (r"[{}\[\]]", "\n"),
        (r'"', ""),
        (r"(?<!\w)'|'(?!\w)", ""),
    )
)
_LIST_MARK = re.compile(r"^\s*(?:[-+]|\(?\d{1,2}[.)]|\(?[a-h]\))[ ]+(?=\S)", re.M)
_LAST_MARK = re.compile(
    r"^[ \t]*(\d{1,2})[.)][ \t]\S.*\n[ \t]*(\d{1,2})[.)]\s*\Z", re.M
)  # before an item that was cut off
_END = re.compile(r"\n|(?<=[.!?])\s+")
_PIECE = re.compile(r".{1,600}(?:\s|$)|.{1,600}")  # a longer sentence is read in pieces
_COURTESY = re.compile(
    r"^\W*(?:i hope|hope this|let me know|feel free|please|thanks?\b|happy to|glad to|"
    r"if (?:you (?:have|need|want|would)|not,? no (?:problem|worries))|is there anything|"
    r"(?:sure(?: thing)?|certainly|of course|okay|ok|(?:great|good) question)\W*$)",
    re.I,
)
_OPENING = re.compile(
    r"^\W*(?:(?:all right|alright|okay|ok|well|sure|great|got it)\b[,!.:]*|"
    r"right(?:[,!]|(?= so\b)))\s+(?=(?:let|so|i'll|i'm|i will|i need|i can|we|now|here|first|"
    r"looking|to)\b)|"
    r"^\W*no\s+(?:problem|worries|trouble)\b\W*",
    re.I,
)


def _first_turn(text: str) -> str:
    return next(filter(str.strip, _END_OF_TURN.split(_BEGIN.sub("\n", text))), "")


def _without_cut_off_item(text: str) -> str:
    """Without the 3 of a list that ends with "3."."""
    last = _LAST_MARK.search(text[-1000:])
    cut_off = last is not None and int(last[2]) == int(last[1]) + 1
    return text.rstrip().rpartition("\n")[0] if cut_off else text


def plain_sentences(text: str, prepare: Callable[[str], str] = str) -> list[str]:
    text = _without_cut_off_item(_first_turn(strip_reasoning(text))).translate(_PLAIN)
    text = _CAMEL_CASE.sub(" ", _SEAM.sub(" ", text))
    for pattern, replacement in _STEPS:
        text = pattern.sub(replacement, text)
    marks = _LIST_MARK.findall(text)
    if len(marks) > 1:
        text = _LIST_MARK.sub(ITEM, text)
    elif not (marks and marks[0].strip()[:1].isdigit()):  # one alone is an answer: "3. They are at …"
        text = _LIST_MARK.sub("", text)
    pieces = (piece for sentence in _END.split(prepare(text)) for piece in _PIECE.findall(sentence))
    sentences = (_OPENING.sub("", piece).strip() for piece in pieces)
    kept = [sentence for sentence in sentences if sentence and not _COURTESY.match(sentence)]
    # What became one sentence, or was one from the beginning, is no list any more.
    items = sum(sentence.startswith(ITEM) for sentence in kept)
    return [sentence.lstrip(ITEM) for sentence in kept] if items == 1 else kept
