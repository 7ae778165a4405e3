"""The words of a reply that names keys: keys, times, waits, and what stands between them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Literal

from msgspec import Struct

from proctor.agents.desktop.vk import VK
from proctor.agents.vision.key_names import MODIFIERS, RARE, key_named, name_pattern

HOLD = 0.1  # seconds
SHORTEST_HOLD, LONGEST_HOLD = 0.01, 5.0
MOST_STROKES = 16
_UNITS = {"ms": 0.001, "millisecond": 0.001, "msec": 0.001, "s": 1.0, "sec": 1.0, "second": 1.0}
_SPOKEN = {"half": 0.5, "quarter": 0.25, "tenth": 0.1, "a": 1.0, "one": 1.0, "two": 2.0, "three": 3.0}
_COUNTS = {"once": 1, "twice": 2, "two": 2, "three": 3, "thrice": 3, "four": 4, "five": 5}
_UNIT = r"(?P<unit>milliseconds?|msecs?|ms|seconds?|secs?|s)(?![A-Za-z0-9_])"
_NOTHING = (
    r"(?:do(?:ing)? |press(?:ing)? )?nothing(?! (?:is|on|to the|in))|none|no[- ]?op|null|idle|do not move|don['’]t move"
    r"|no (?:more )?(?:key ?press(?:es)?|keys?|input|action|movement|move|buttons?)(?![A-Za-z])"
    r"(?: (?:is |are )?(?:needed|required|necessary|pressed|at all|now|to press))*"
    r"|(?:[a-z]+n['’]t|do not|not|without|no need to) (?:press(?:ing)?|do(?:ing)?|move|moving)"
    r" (?:anything|any keys?|a key)"
    r"|(?:stay|remain|hold|keep|stand) (?:still|put|here|in place|where i am)|pass"
    r"|release (?:all |the |every |any )*(?:keys?|buttons?|everything)"
)
_TOGETHER = r"at the same time(?: as)?"
WHILE = "while"  # begins what is done together with something else: "while holding", "while you press"
_DURING = rf"{WHILE} (?:also |still |you |I |keep )*(?:hold|press|push|tapp)(?:ing)?"
_SEPARATORS = "→➡"  # between names of keys they are no keys

Kind = Literal["key", "time", "times", "number", "nothing", "wait", "word", "sign"]


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def within_limits(seconds: float) -> float:
    return min(max(seconds, SHORTEST_HOLD), LONGEST_HOLD)


class Stroke(Struct, frozen=True):
    """Keys that are pressed together, and for how long. Without a key it is a wait."""

    keys: tuple[int, ...]
    seconds: float = HOLD

    @property
    def text(self) -> str:
        names = "+".join(VK(key).name.removeprefix("KEY_") for key in self.keys) or "WAIT"
        return names if self.seconds == HOLD and self.keys else f"{names}:{self.seconds:g}"


class Token(Struct):
    kind: Kind
    text: str
    start: int
    key: int = 0
    seconds: float = 0.0
    times: int = 0

    @property
    def word(self) -> str:
        return self.text.casefold().replace("’", "'")

    @property
    def is_during(self) -> bool:
        """What follows is pressed together with something else."""
        return self.kind == "word" and self.text == WHILE and self.times > 0

    @property
    def is_letter(self) -> bool:
        return self.kind == "key" and len(self.text) == 1 and self.text.isalnum()

    @property
    def is_capital(self) -> bool:
        """Written as no word of a sentence is: LEFT, VK_LEFT, ArrowLeft, ←."""
        text = self.text
        camel = re.search(r"[a-z][A-Z]", text) is not None
        return (len(text) > 1 and (text.isupper() or camel)) or "_" in text or not text.isascii()


class AmbiguousError(Exception):
    """A person could not tell which keys are meant."""


@cache
def _pattern() -> re.Pattern[str]:
    spoken = (
        r"(?:a |one )?(?P<share>half|quarter|tenth)(?: of)?(?: an?)? second"
        r"|(?P<whole>a|one|two|three) seconds?"
    )
    times = (
        r"[x×*] ?(?P<n>\d{1,2})(?![\w.])|(?<![\w.])(?P<m>\d{1,2}) ?[x×](?= ?[^\W\d_]| ?[←-⇿⬀-⯿]|\s*$)"
        r"|\b(?P<double>double[- ]?)(?=tap|press|hit)"
        r"|\b(?P<count>\d{1,2}|two|three|four|five) times\b|\b(?:once|twice|thrice)\b"
    )
    return re.compile(
        rf"(?P<times>{times})"
        rf"|(?P<spoken>\b(?:{spoken})\b)"
        rf"|(?P<time>(?<![\w.])(?P<value>\d+(?:[.,]\d+)?|\.\d+)(?:\s*(?:-|–|to)\s*\d+(?:\.\d+)?)?\s*-?{_UNIT})"
        r"|(?P<decimal>(?<![\w.])(?:\d+\.\d+|\.\d+)(?![\w.]*\d)|(?<=[:=@])\d+,\d+(?![\w,]))"
        rf"|(?P<nothing>(?<!\w)(?:{_NOTHING})(?!\w))"
        r"|(?P<wait>\bwait(?:ing)?\b)"
        rf"|(?P<together>\b{_TOGETHER}\b)|(?P<during>\b{_DURING}\b)"
        rf"|(?P<key>{name_pattern()})"
        r"|(?P<number>\d+)"
        r"|(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)*)"
        r"|(?P<sign>\S)",
        re.IGNORECASE,
    )


_HOLDING = ("hold", "holding", "keep", "holds")
_PRESSING = (*_HOLDING, "press", "pressing", "push", "pushing")


def tokens_of(text: str) -> list[Token]:
    tokens = [_token(match) for match in _pattern().finditer(text)]
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if token.kind == "key" and _is_small_word(before, token, after):
            token.kind = "word"
        elif token.kind == "key" and _separates(before, token, after):
            token.kind = "sign"
        elif token.text.isdigit() and before is not None and _holds(text, before, token):
            token.kind, token.seconds = "time", float(token.text)
    return tokens


def _holds(text: str, before: Token, token: Token) -> bool:
    """The 2 of `UP:2`, as it was asked for."""
    written = text[max(0, before.start - 1) : token.start]
    return before.text == ":" and len(written) == 2 and not written[0].isspace()


def _separates(before: Token | None, token: Token, after: Token | None) -> bool:
    """The arrows of `LEFT → RIGHT → SPACE` and of `the gap is behind me → LEFT`."""
    if token.text[0] not in _SEPARATORS or before is None or after is None:
        return False
    return before.kind != "sign" and before.text.isascii() and after.kind == "key" and after.text.isascii()


def _is_small_word(before: Token | None, token: Token, after: Token | None) -> bool:
    """The `a` of `a key`, the `down` of `hold down the left key`."""
    if token.text == "return" and after is not None and (after.text in "\"'`([{" or after.is_capital):
        return True
    if token.text == "I" and after is not None:
        return after.kind == "nothing" or (
            after.kind == "word" and after.word not in ("key", "button", "and", "then", "or", "for")
        )
    if token.text == "a" and after is not None:
        return after.word in ("key", "button") and (before is None or before.word not in ("the", "letter"))
    if token.text == "left" and before is not None and before.kind == "time" and before.text[-1].isalpha():
        return True  # 5 seconds left
    if token.text not in ("down", "up") or before is None or after is None or before.word not in _PRESSING:
        return False
    of_a_key = after.kind == "key" and (before.word in _HOLDING or not after.text.islower())
    return after.word in ("the", "on") or of_a_key


def _token(match: re.Match[str]) -> Token:
    text, start = match[0], match.start()
    if match["times"] is not None:
        count = match["n"] or match["m"] or match["count"] or ("two" if match["double"] else "")
        number = int(count) if count and count.isdigit() else _COUNTS[(count or text).casefold()]
        return Token("times", text, start, times=min(number, MOST_STROKES))
    if match["spoken"] is not None:
        return Token("time", text, start, seconds=_SPOKEN[(match["share"] or match["whole"]).casefold()])
    if match["time"] is not None:
        unit = match["unit"].casefold()
        return Token(
            "time", text, start, seconds=_number(match["value"]) * _UNITS[unit if unit in _UNITS else unit[:-1]]
        )
    if match["decimal"] is not None:
        return Token("time", text, start, seconds=_number(text))
    if match["together"] is not None:
        return Token("word", "together", start)
    if match["during"] is not None:
        return Token("word", WHILE, start, times=1)
    for kind in ("nothing", "wait", "number", "word", "sign"):
        if match[kind] is not None:
            return Token(kind, text, start)
    key = key_named(text)
    # Some names are words of a sentence, too: only in capitals are they keys.
    if key is None or (text.upper() in RARE and not text.isupper()):
        return Token("word", text, start)
    return Token("key", text, start, key=key)


def _number(text: str) -> float:
    return float(text.replace(",", "."))


def strokes_of(tokens: Iterable[Token]) -> list[Stroke]:
    """From keys, times and what joins them. Raises AmbiguousError for alternatives and contradictions."""
    built = _Builder()
    for token in tokens:
        built.add(token)
    return built.strokes()


class _Builder:
    def __init__(self) -> None:
        self._made: list[tuple[list[int], float | None, int]] = []  # keys, seconds, times
        self._before: float | None = None  # a time that was named before its key
        self._joining = self._together = self._nothing = self._alternative = False
        self._first = 0  # of those that `together` is said of
        self._times_before = 0  # that were named before their key
        self._counts_first = False
        self._sign = ""

    def add(self, token: Token) -> None:
        match token.kind:
            case "key" if token.text.isdigit() and self._sign in (":", "=", "@") and self._made:
                self._hold(float(token.text))
            case "key" if token.text.isdigit() and self._sign == "wait":
                self._hold(float(token.text))
            case "key":
                self._press(token.key)
            case "number":
                if self._sign not in (":", "=", "@", "wait", "(") or not self._made:
                    raise AmbiguousError("a number that is neither a key nor a time")
                self._hold(float(token.text))
            case "time":
                self._hold(token.seconds)
            case "times" if token.text[-1] in "x×- e" and self._stands_before_its_key:
                self._times_before, self._counts_first = token.times, True
            case "times" if self._made:
                keys, seconds, _ = self._made[-1]
                self._made[-1] = keys, seconds, token.times
            case "wait":
                self._made.append(([], self._before, 1))
                self._before = None
            case "nothing":
                self._nothing = True
            case "word" if token.is_during:
                self._joining, self._together = bool(self._made), self._together or not self._made
            case "sign" | "word":
                self._join(token.word)
        if token.kind in ("sign", "wait"):
            self._sign = token.word
        elif token.kind != "word":
            self._sign = ""

    @property
    def _stands_before_its_key(self) -> bool:
        """`3x LEFT`, where `LEFT 3x` is the other way to say it."""
        return not self._made or bool(self._sign) or self._counts_first

    def _join(self, word: str) -> None:
        if word in ("+", "&") or (word in ("-", "and", "while") and self._ends_in_modifier):
            self._joining = True
        elif word in ("together", "simultaneously", "hotkey"):
            self._together = True
        elif word == "then":
            self._join_group()
        elif word in ("or", "/", "|", "either"):
            self._alternative = True

    def _join_group(self) -> None:
        """What is said to be together, of those that were named since the last `then`."""
        group = self._made[self._first :]
        if self._together and len(group) > 1:
            keys = [key for each, _, _ in group for key in each]
            seconds = next((seconds for _, seconds, _ in group if seconds is not None), None)
            self._made[self._first :] = [(keys, seconds, 1)]
        self._first, self._together = len(self._made), False

    @property
    def _ends_in_modifier(self) -> bool:
        return bool(self._made) and bool(self._made[-1][0]) and self._made[-1][0][-1] in MODIFIERS

    def _press(self, key: int) -> None:
        if self._alternative and self._made:
            raise AmbiguousError("one key or another")
        if self._joining and self._made and self._made[-1][0]:
            self._made[-1][0].append(key)
        else:
            self._made.append(([key], self._before, self._times_before or 1))
            self._before, self._times_before = None, 0
        self._joining = False

    def _hold(self, seconds: float) -> None:
        if self._made and self._made[-1][1] is None:
            keys, _, times = self._made[-1]
            self._made[-1] = keys, seconds, times
        else:
            self._before = seconds

    def strokes(self) -> list[Stroke]:
        self._join_group()
        made = [(keys, seconds, times) for keys, seconds, times in self._made if VK.F10 not in keys]  # it stops the run
        if self._made and not made:
            raise AmbiguousError("F10 is not for the model to press")
        if self._nothing and any(keys for keys, _, _ in made):
            raise AmbiguousError("a key, and none")
        if self._nothing and not made and self._before is not None:
            made = [([], self._before, 1)]
        found: list[Stroke] = []
        for keys, seconds, times in made:
            held = HOLD if seconds is None else seconds
            found += [Stroke(tuple(dict.fromkeys(keys)), within_limits(held))] * times
        return found[:MOST_STROKES]
