"""Generates controls: tests with wrong expectations, made from those of a benchmark.

Except in Python, a program shares its source with the tests, and can disable them: by an
`operator==`, a macro, its own assertion, an exit that does not exit. So a program that
passes is run again, with calls of the function under test exchanged between assertions with
different expectations. A right program fails there.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from proctor.sandbox import Program

_PREFIXED = ("clojure", "racket", "ocaml")  # calls are in parentheses as a whole
_ALIAS = "candidate"  # MultiPL-E's name for the function under test
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_TOKENS = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<number>\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)"""
    r"|\w+|[^\w\s,;()]"
)
_SKIPPED = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'""")  # strings, and characters of C
_QUOTED = re.compile(r"""'(?:\\.|[^'\\])*'""")
_SINGLE_QUOTES = ("bash", "dart", "elixir", "javascript", "lua", "perl", "php", "r", "ruby", "typescript")
_COMMENT = re.compile(r"\s(?://|#|--|;;)\s.*$")
_BLOCK_COMMENTS = {
    "haskell": r"\{-.*?-\}",
    "lua": r"--\[\[.*?\]\]",
    "ocaml": r"\(\*.*?\*\)",
    "perl": r"^=[a-z]\w*\b.*?(?:^=cut\b|\Z)",
    "racket": r"#\|.*?\|#",
    "ruby": r"^=begin\b.*?^=end\b",
    **dict.fromkeys(("ada", "bash", "clojure", "elixir", "r"), r"(?!)"),
}
_COMMENT_LINE = r"^[ \t]*(?://|#|--|;).*$"
_SCALAR = r"""(?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|-?\d[\d_.eE]*|\b(?i:true|false|null|nil|none|undefined)\b)"""
_LITERAL = rf"(?:{_SCALAR}|[\[({{](?:{_SCALAR}|[\s,:\[\](){{}}])*[\])}}])"
# A call (the NUL) that is compared with a literal: f(1) == 2, 2 == f(1), equal(f(1), 2), equal(2, f(1)).
_WITH_LITERAL = re.compile(
    rf"[^\0]*\0[\s)]*(?:={{2,3}}|-?eq)\s*{_LITERAL}[\s);]*|(?:[^\0]*[(\s])?{_LITERAL}\s*={{2,3}}\s*\0[\s);]*"
    rf"|[^\0,]*[(\s]\0\s*,\s*{_LITERAL}[\s);]*|[^\0,(]*[(\s]{_LITERAL}\s*,\s*\0[\s);]*"
)
_SWITCHED_OFF = re.compile(
    r"\bif\s*\(?\s*(?:false|0)\b|\b(?:skip\w*|ignored?|disabled|xit|xdescribe|pending)\b", re.IGNORECASE
)
_EQUATES = re.compile(
    r"==|!=|\s=\s|(?<![a-z])(?:eq|ne)(?![a-z])|equal|identical|within|expected|deeply|\bis\b", re.IGNORECASE
)
_GENERIC = re.compile(r"<[\w\s,.?\[\]*&:]*>")
_ORDER = re.compile(
    r"(?<![-=<])[<>](?![<>])|\b(?:less|greater|more|fewer|above|below|most|least|between|contains?|includes?|has|"
    r"starts?|ends?|matche?s?|positive|negative|lt|gt|le|ge)\b"
)
_NEGATION = re.compile(r"!==?|=!=|/=|<>|~=|(?<![\w)])!|\b(?:ne|not|isnt|refute|differs?|unequal)\b")
_WORD_BORDER = re.compile(r"(?<=[a-z])(?=[A-Z])|_")
_BRANCH = re.compile(r"\W*(?:else\s+)?if\b", re.IGNORECASE)
_PRINTS = re.compile(r"\b(?:print\w*|puts|echo|log|write\w*)\b", re.IGNORECASE)
_FAILS = re.compile(r"\b(?:die|exit|quit|throw|raise|panic|fail\w*|error\w*|fatal\w*|abort|return)\b", re.IGNORECASE)
_VALUES = ("true", "false", "null", "nil", "none", "undefined")
_DEFINED = re.compile(
    r"\b(?:def|fn|func|function|fun|sub|let|const|var)\s+(?:rec\s+)?(?:\([^()]*\)\s*)?(\w+)|\b(\w+)\s*\([^;{}\n]*\)\s*\{"
)


class _Check(Struct, frozen=True):
    """A line of the tests with a call of the function under test."""

    number: int
    before: str
    call: str
    after: str


def program_with_control(
    join: Callable[[str, str], str],
    answer: str,
    tests: str,
    wrong: str,
    language: str,
    *,
    reference: str | None = None,
    ends_with_tests: bool = True,
) -> Program:
    """The program of an answer and its tests, with a control if there are wrong tests."""
    return Program(
        source=join(answer, tests),
        language=language,
        ends_with_tests=ends_with_tests,
        control=join(answer, wrong) if wrong else "",
        reference_control=join(reference, wrong) if wrong and reference else "",
    )


def with_wrong_expectations(tests: str, language: str, names: Iterable[str], *, of_known_make: bool = True) -> str:
    """The tests with exchanged calls; '' if no two are known to expect different values.

    ``names``: of the function under test. Tests of unknown make may number assertions or
    compute expectations: there, only assertions that compare a call with a literal count.
    """
    if not of_known_make and _SWITCHED_OFF.search(tests):
        return ""
    lines = tests.split("\n")
    known = [re.escape(name) for name in {_ALIAS, *names} if name]
    found = _find_checks(_without_comments(tests, language), language, "|".join(known))
    checks = _by_kind(found if of_known_make else filter(_compares_with_literal, found))
    exchanges = itertools.chain.from_iterable(map(_exchange, checks))
    exchanged = {check.number: f"{check.before}{call}{check.after}" for check, call in exchanges}
    return "\n".join(exchanged.get(number, line) for number, line in enumerate(lines)) if exchanged else ""


def with_exchanged_ends(tests: str, language: str, helper: str) -> str:
    """Exchanges expectations of tests that pass them to a helper as the last argument.

    Only for known tests: elsewhere the last argument may be a message.
    """
    ends = r"(?P<end>[^\s'\"]\S*|'[^']*'|\"[^\"]*\")$" if language == "bash" else r",(?P<end>[^,]*)\);?$"
    lines = tests.split("\n")
    found = [re.search(rf"^\s*{helper}\b.*?{ends}", line) for line in lines]
    checks = [(number, match) for number, match in enumerate(found) if match]
    for (number, match), (_, other) in itertools.pairwise(checks):
        if match["end"] != other["end"]:
            lines[number] = f"{lines[number][: match.start('end')]}{other['end']}{lines[number][match.end('end') :]}"
    return "\n".join(lines) if lines != tests.split("\n") else ""


def defined_in(source: str, tests: str) -> set[str]:
    """Functions that a source defines and tests call, if the tested one is unknown."""
    names = {name for match in _DEFINED.finditer(source) for name in match.groups() if name}
    return {name for name in names if re.search(rf"\b{re.escape(name)}\b", tests)}


def _without_comments(tests: str, language: str) -> list[str]:
    """The lines, with comments blanked out."""
    comment = f"{_BLOCK_COMMENTS.get(language, r'/[*].*?[*]/')}|(?-s:{_COMMENT_LINE})"
    blanked = re.sub(comment, lambda found: re.sub(".", " ", found[0]), tests, flags=re.DOTALL | re.MULTILINE)
    return blanked.split("\n")


def _find_checks(lines: Sequence[str], language: str, names: str) -> Iterator[_Check]:
    for number, line in enumerate(lines):
        span = _call_in(line, language, names)
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if span is not None and _expects_equality(line[: span[0]], line[span[1] :], following):
            start, end = span
            yield _Check(number, line[:start], line[start:end], line[end:])


def _expects_equality(before: str, after: str, following: str) -> bool:
    """Whether only one value of the call satisfies the line, unlike `f(1) > 0`.

    A condition that leads to a failure (`if (f(1) != 2) throw …`) is the negation of the
    expectation; ``following`` is the next line, which may have that failure.
    """
    rest, led_to = (
        _SKIPPED.sub('""', _COMMENT.sub("", text)) for text in (f"{before} {after}", f"{after} {following}")
    )
    rest = _WORD_BORDER.sub(" ", rest).lower()
    negations = len(_NEGATION.findall(rest))
    while _GENERIC.search(rest):
        rest = _GENERIC.sub("", rest)
    if _ORDER.search(rest) or _PRINTS.search(before):  # printing does not judge
        return False
    if not _BRANCH.match(before):
        return negations == 0
    then, _, otherwise = led_to.partition("else")
    return negations == 1 if _FAILS.search(then) else negations == 0 and bool(otherwise)


def _call_in(line: str, language: str, names: str) -> tuple[int, int] | None:
    """The first call in a line, if it ends there."""
    flags = re.IGNORECASE if language == "ada" else 0
    if language == "haskell":
        found = re.search(rf"\b(?:{names})\b.*?(?=\s==\s)", line)
        return found.span() if found else None
    if language in _PREFIXED:
        found = re.search(rf"\(\s*(?:{names})(?=[\s)])", line)
        opening = found.start() if found else -1
    elif language == "bash":
        found = re.search(rf"\$\((?:{names})(?=[\s)])", line)
        opening = found.start() + 1 if found else -1
    else:
        found = re.search(rf"(?<!\w)(?:{names})(?:->|\.call|\.)?\s?\(", line, flags)
        opening = found.end() - 1 if found else -1
    end = _closing(line, opening, language) if found else None
    return None if found is None or end is None else (found.start(), end)


def _closing(line: str, opening: int, language: str) -> int | None:
    """The position after the closing bracket of the one at `opening`."""
    waiting: list[str] = []
    position = opening
    quoted = language in _SINGLE_QUOTES
    while position < len(line):
        skipped = _SKIPPED.match(line, position) or (_QUOTED.match(line, position) if quoted else None)
        if skipped:
            position = skipped.end()
            continue
        sign = line[position]
        position += 1
        if sign in _PAIRS:
            waiting.append(_PAIRS[sign])
        elif sign in _PAIRS.values():
            if sign != waiting.pop():
                return None
            if not waiting:
                return position
    return None


def _compares_with_literal(check: _Check) -> bool:
    return bool(_WITH_LITERAL.fullmatch(f"{_COMMENT.sub('', check.before)}\0{_COMMENT.sub('', check.after)}"))


def _by_kind(checks: Iterable[_Check]) -> Iterable[list[_Check]]:
    """Groups checks by their beginning, which separates kinds of assertions."""
    kinds: dict[str, list[_Check]] = defaultdict(list)
    for check in checks:
        kinds["".join(re.findall(r"^\W*\w*", check.before)).strip()].append(check)
    return kinds.values()


def _exchange(checks: Sequence[_Check]) -> Iterator[tuple[_Check, str]]:
    """Pairs checks with calls that have another expectation, as far as possible."""
    keys = _expectations(checks)
    ordered = sorted(range(len(checks)), key=lambda index: (keys[index], index))
    distance = max(Counter(keys).values(), default=0)
    for position, index in enumerate(ordered):
        other = ordered[(position + distance) % len(ordered)]
        if keys[other] != keys[index] and checks[other].call != checks[index].call:
            yield checks[index], checks[other].call


def _expectations(checks: Sequence[_Check]) -> list[tuple[str, ...]]:
    """A key per expectation; keys differ only if the expectations surely do.

    The key ignores order, spelling of numbers (2 is 2.0) and messages. Strings count if
    nothing else differs, something is compared, and no other value precedes them, because
    such a string is a message.
    """
    rests = [_COMMENT.sub("", f"{check.before} {check.after}") for check in checks]
    tokens = [list(_TOKENS.finditer(rest)) for rest in rests]
    plain = [tuple(sorted(_spelling(token) for token in of_one if not token["text"])) for of_one in tokens]
    if len(set(plain)) > 1 or not all(map(_compares_texts, rests, tokens)):
        return plain
    return [tuple(sorted(token["text"][1:-1] for token in of_one if token["text"])) for of_one in tokens]


def _compares_texts(rest: str, tokens: Iterable[re.Match[str]]) -> bool:
    values = (token for token in tokens if token["text"] or token["number"] or token[0].lower() in _VALUES)
    first = next(values, None)
    return (first is None or bool(first["text"])) and bool(_EQUATES.search(_SKIPPED.sub("", rest)))


def _spelling(token: re.Match[str]) -> str:
    number = token["number"]
    return f"{float(number.replace('_', '')):g}" if number else token[0]
