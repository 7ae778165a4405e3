"""A source that ends with its own tests passes only if they run to their end."""

from __future__ import annotations

import pytest

from helpers.sandbox_session import LIMITS, SandboxSession
from helpers.toolchains import needs_language
from proctor.code.imports import SYNTAX, imported
from proctor.sandbox import Limits, Outcome, Program
from proctor.sandbox.endings import ENDINGS, EndMark, may_exit
from proctor.sandbox.languages import LANGUAGES, find_language

BASH = "double() {\n    echo $(($1 + $1))\n}\n"
BASH_TESTS = "set -e\n[[ $(double 2) = 4 ]]\n[[ $(double 5) = 10 ]]\n"
C = "int twice(int x) { return x + x; }\n"
C_TESTS = "#include <assert.h>\nint main(void) { assert(twice(2) == 4); assert(twice(5) == 10); }\n"
PASSED, FAILED, EXITED, CRASHED = Outcome.PASSED, Outcome.FAILED, Outcome.EXITED, Outcome.CRASHED


@pytest.mark.parametrize(
    ("language", "source", "outcome"),
    [
        ("bash", BASH + BASH_TESTS, PASSED),
        ("bash", f"{BASH}{BASH_TESTS}false || exit 0\n", EXITED),
        ("bash", f"{BASH}[[ $(double 2) = 4 ]] || exit 1\n! true\nexit 0\n", PASSED),
        ("bash", BASH.replace("+", "*") + BASH_TESTS, FAILED),
        ("bash", f"{BASH}[[ $(double 2) = 5 ]]\n", FAILED),  # its last command is the only test
        ("bash", f"{BASH}exit 0\n{BASH_TESTS}", EXITED),
        ("bash", f"{BASH}cat <<END\n{BASH_TESTS}", EXITED),  # which prints the tests, and whatever comes after them
        ("bash", f"{BASH}trap 'exit 0' EXIT\n[[ $(double 2) = 5 ]] || exit 1\n", EXITED),
        ("perl", "sub twice { 2 * $_[0] }\nexit 1 if twice(2) != 4;\nexit 0;\n", PASSED),
        ("perl", "sub twice { exit 0 }\nexit 1 if twice(2) != 4;\n", EXITED),
        ("c", C + C_TESTS, PASSED),
        ("c", C.replace("x + x", "x * x") + C_TESTS, CRASHED),
        ("c", f"#include <stdlib.h>\n{C.replace('return', 'exit(0); return')}{C_TESTS}", EXITED),
        ("c", f"#define NDEBUG\n{C.replace('x + x', '7')}{C_TESTS}", FAILED),
        ("python", "def f(x):\n    return x + 1\nassert f(1) == 2\n", PASSED),
        ("python", "import sys\ndef f(x):\n    sys.exit(0)\nassert f(1) == 2\n", EXITED),
        ("python", "import os\nos._exit(0)\nassert False\n", EXITED),
    ],
)
def test_early_exit_is_not_a_pass(session: SandboxSession, language: str, source: str, outcome: Outcome) -> None:
    needs_language(language)
    program = Program(source=source, language=language, ends_with_tests=True)
    (verdict,) = session.judge_all([program], LIMITS)
    assert verdict.outcome is outcome, verdict
    if outcome is PASSED:
        assert verdict.stdout == verdict.stderr == ""


def test_program_without_tests_may_exit_anywhere(session: SandboxSession) -> None:
    (verdict,) = session.judge_all([Program(source=f"{BASH}exit 0\n{BASH_TESTS}", language="bash")], LIMITS)
    assert verdict.passed


@pytest.mark.parametrize(
    ("language", "tests", "may"),
    [
        ("bash", BASH_TESTS, False),
        ("bash", f"{BASH_TESTS}exit 0\n", False),
        ("bash", "if double; then\n    exit 0\nfi\nexit 1\n", True),
        ("c", "int main(void) { if (twice(2) != 4) exit(1); }", False),
        ("c", "int main(void) { exit(twice(2) != 4); }", True),
        ("go", "func main() { os.Exit(0) }", True),
        ("javascript", "test();\nprocess.exit();\n", False),
        ("lua", "os.exit(lu.LuaUnit.run())", False),
        ("php", "if (f() != 2) { die('wrong'); }", True),
        ("perl", "die 'wrong' if f() != 2;", False),
        ("r", "test()\nquit('no')\n", False),
        ("kotlin", "fun main() { exitProcess(0) }", False),
    ],
)
def test_may_exit_recognises_exit_calls(language: str, tests: str, may: bool) -> None:
    assert may_exit(find_language(language), tests) is may


def test_every_language_but_kotlin_has_an_ending() -> None:
    """Python's tests run apart, and Kotlin is used by no benchmark."""
    assert {language.name for language in LANGUAGES} - ENDINGS.keys() == {"python", "kotlin"}


def test_end_mark_is_split_and_unique_per_sandbox() -> None:
    bash = find_language("bash")
    one, other = EndMark(), EndMark()
    source = one.finished(bash, BASH, "")
    assert not one.was_reached(bash, BASH, source, source)
    assert source != other.finished(bash, BASH, "")


@pytest.mark.parametrize("part", ["exit ", "os.exit(", "fn  main ", "import (\n", "use a::", "\t"])
def test_source_names_take_linear_time(part: str) -> None:
    """It is read outside the sandbox, and may have been made to take long: by the square of it, minutes."""
    source = part * (50_000 // len(part))
    for language in LANGUAGES:
        assert source[:40] in EndMark().finished(language, source, "Main")
        may_exit(language, source)
    for name in SYNTAX:
        imported(name, source)


PLAIN_TESTS = {
    "d": "void main() { assert(twice(2) == 4); }",
    "elixir": 'unless Twice.twice(2) == 4, do: raise("wrong")',
    "ruby": "raise unless twice(2) == 4",
    "lua": "assert(twice(2) == 4)",
    "clojure": "(assert (= (twice 2) 4))",
    "racket": "(unless (= (twice 2) 4) (error 'wrong))",
}
DEFINITIONS = {
    "d": "int twice(int x) { return x + x; }",
    "elixir": "defmodule Twice do\n  def twice(x), do: x + x\nend",
    "ruby": "def twice(x) = x + x",
    "lua": "function twice(x) return x + x end",
    "clojure": "(defn twice [x] (+ x x))",
    "racket": "#lang racket\n(define (twice x) (+ x x))",
}


@pytest.mark.slow
@pytest.mark.parametrize("language", PLAIN_TESTS)
def test_endings_need_no_test_framework(language: str, session: SandboxSession) -> None:
    needs_language(language)
    source = f"{DEFINITIONS[language]}\n{PLAIN_TESTS[language]}\n"
    wrong = source.replace("x + x", "x * x * x").replace("(+ x x)", "(* x x x)")
    programs = [Program(source=text, language=language, ends_with_tests=True) for text in (source, wrong)]
    right, failed = session.judge_all(programs, Limits(seconds=20.0))
    assert right.passed, right
    assert not failed.passed, failed
