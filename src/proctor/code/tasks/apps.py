"""APPS: problems of programming contests on three levels, judged by what programs print or what functions return.

Measuring Coding Challenge Competence With APPS, https://arxiv.org/abs/2105.09938
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from proctor.code.execution import Judge, Trial, run_programs, trial_of
from proctor.code.forms import fenced
from proctor.code.keyed import KeyedTask
from proctor.code.libraries import LibraryTask
from proctor.code.task import Task
from proctor.core.errors import MissingDataError
from proctor.metrics.passing import mean_pass_at_k
from proctor.sandbox import Limits, Outcome, Program, Verdict

LEVELS = ("introductory", "interview", "competition")
_MAX_TIMEOUTS = 3  # after so many timeouts the other tests count as failed
_MAX_CONCURRENCY = 8
_DETAIL = 500  # characters kept of each failure, of which there can be many
_LONGEST_VALUE = 80

# Solutions of the data set leave out imports. The slow ones are only added to programs that
# contain these words.
_IMPORTS = """
import bisect, collections, functools, heapq, itertools, math, operator, re, string, sys, time
from bisect import *
from collections import *
from functools import *
from heapq import *
from itertools import *
from math import ceil, cos, exp, fabs, factorial, floor, gcd, inf, log, log2, log10, pi, sin, sqrt, tan
from typing import *
"""
_RARE_IMPORTS = {
    "np.": "import numpy as np",
    "raction": "import fractions; from fractions import Fraction",
    "random": "import random",
}

# Runs with the tests of a function. The file has no tuples, and the right answers come from there.
_PLAIN = """
from math import inf, nan

def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value

"""


class AppsTest(Struct, frozen=True):
    """One test: stdin and stdout, or arguments and results."""

    given: Any
    right: Any


class APPS(KeyedTask, LibraryTask):
    """pass@1 is strict accuracy: all tests must pass; plus the mean share of passed tests."""

    DATASET_PATH = "codeparrot/apps"
    NEEDED = ("problem_id", "question", "input_output", "starter_code", "difficulty")
    KEYS = ("problem_id",)
    LIBRARIES: ClassVar[Mapping[str, str]] = {"numpy": "numpy"}
    ks: tuple[int, ...] = (1, 2, 3, 5, 10, 100)
    group_by = ("format",)
    max_tokens = 1024

    def __init__(self, timeout: float = 4.0, any_order: bool = False) -> None:
        """`any_order`: what is printed may stand in another order, as in the original, which tests sets of words."""
        super().__init__(stop_words=["\nQUESTION", "\n---", "\nANSWER"], requires_execution=True)
        self.timeout = timeout
        self.any_order = any_order

    def get_dataset(self) -> Any:
        if self._given.file is None:
            return super().get_dataset()
        rows = [row for row in super().get_dataset() if row["difficulty"] == self.DATASET_NAME]
        if not rows:
            raise MissingDataError(f"{self._given.file} has no problems of the difficulty {self.DATASET_NAME}.")
        return rows

    def get_prompt(self, doc: Any) -> dict[str, str]:
        way = "Call-Based" if self.entry_point(doc) else "Standard Input"
        question = f"\nQUESTION:\n{doc['question']}{doc['starter_code']}\nUse {way} format\nANSWER:"
        return {"instruction": question, "context": ""}

    def chat_prompt(self, doc: Any) -> str:
        name = self.entry_point(doc)
        target = f"a Python function {name}" if name else "a Python program that reads stdin and writes to stdout"
        asked = f"Write {target}. Reply with the complete code in one code block.\n\n{doc['question']}"
        begun = f"\n\nBegin with this code:\n\n{fenced(doc['starter_code'], 'python')}" if doc["starter_code"] else ""
        return asked + begun

    def entry_point(self, doc: Any) -> str:
        return str(_tests(doc).get("fn_name") or "")

    def solution(self, doc: Any) -> str | None:
        found = json.loads(doc.get("solutions") or "[]")
        return str(found[0]) if found else None

    def identify(self, doc: Any, index: int) -> str:
        return str(doc["problem_id"])

    def describe(self, doc: Any) -> dict[str, Any]:
        return {**super().describe(doc), "format": "call" if self.entry_point(doc) else "stdin"}

    def process_results(self, generations: list[list[str]], references: list[Any]) -> dict[str, float]:
        pairs = zip(generations, references, strict=True)
        shares = [self._shares(self.row_of(reference), of_one) for of_one, reference in pairs]
        passing = mean_pass_at_k([(len(of_one), of_one.count(1)) for of_one in shares], self.ks)
        return {**passing, "avg_accuracy": sum(sum(of_one) / len(of_one) for of_one in shares) / len(shares)}

    def _shares(self, doc: Any, generations: Sequence[str]) -> list[float]:
        shares = {generation: self._share(doc, generation) for generation in dict.fromkeys(generations)}
        return [shares[generation] for generation in generations]

    def _share(self, doc: Any, generation: str) -> float:
        """The share of tests that pass."""
        programs, judge = self._trials(doc, generation)
        limits = self._limits(doc)
        passed = timeouts = 0
        for start in range(0, len(programs), _MAX_CONCURRENCY):
            trials = run_programs(programs[start : start + _MAX_CONCURRENCY], limits, judge)
            passed += sum(trial.passed for trial in trials)
            timeouts += sum(trial.outcome == Outcome.TIMEOUT for trial in trials)
            if timeouts >= _MAX_TIMEOUTS:
                break
        return passed / len(programs)

    def _limits(self, doc: Any) -> Limits:
        """The limits, with room for the longest right output."""
        usual = self.limits()
        longest = max(len(str(case.right).encode()) for case in cases_of(doc))
        return msgspec.structs.replace(usual, output_kib=usual.output_kib + longest // 1024)

    def _trials(self, doc: Any, generation: str) -> tuple[list[Program], Judge]:
        """A program for each test, so that each has its own time, and none sees the others."""
        cases, name = cases_of(doc), self.entry_point(doc)
        source = _with_imports(generation)
        if name:
            return [_call(source, name, case) for case in cases], self._judged
        # The same program with the same input is another trial in another problem, where something else is right.
        programs = [
            Program(source=f"{source}\n# {doc['problem_id']}.{number}", stdin=case.given)
            for number, case in enumerate(cases)
        ]
        right = {program: case.right for program, case in zip(programs, cases, strict=True)}

        def judge(program: Program, verdict: Verdict) -> Trial:
            trial = self._judged(program, verdict)
            if not trial.passed or same_output(verdict.stdout, right[program], self.any_order):
                return trial
            detail = f"It printed {_short(verdict.stdout)} instead of {_short(right[program])}."
            return msgspec.structs.replace(trial, outcome=Outcome.FAILED, detail=detail)

        return programs, judge

    def _judged(self, program: Program, verdict: Verdict) -> Trial:
        trial = trial_of(program, verdict)
        if not trial.passed:
            self.require(program.source)
        return msgspec.structs.replace(trial, detail=trial.detail[-_DETAIL:])


def create_all_tasks() -> dict[str, type[Task]]:
    return {
        f"apps-{level}": type(
            f"{level.title()}APPS",
            (APPS,),
            {"DATASET_NAME": level, "summary": f"solves problems of programming contests in Python ({level} level)"},
        )
        for level in LEVELS
    }


def cases_of(doc: Any) -> list[AppsTest]:
    tests = _tests(doc)
    pairs = list(zip(tests.get("inputs", ()), tests.get("outputs", ()), strict=False))
    if not pairs:
        raise ValueError(f"problem {doc['problem_id']} has no tests: it cannot be judged")
    if tests.get("fn_name"):
        return [AppsTest([_with_whole_keys(value) for value in given], _accepted(right)) for given, right in pairs]
    return [AppsTest(_text(given), _text(right)) for given, right in pairs]


def same_output(found: str, right: str, any_order: bool = False) -> bool:
    """Whether the same was printed. Blanks and empty lines do not count, and numbers with a point may be rounded."""
    one, other = _words(found), _words(right)
    if len(one) == len(other) and all(map(_same_line, one, other)):
        return True
    return any_order and {frozenset(line) for line in one} == {frozenset(line) for line in other}


def _words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line.strip()]


def _same_line(one: Sequence[str], other: Sequence[str]) -> bool:
    return len(one) == len(other) and all(map(_same_word, one, other))


def _same_word(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        if _is_whole(one) and _is_whole(other):  # however large they are: 1000001 is not nearly 1000000
            return int(one) == int(other)
        return math.isclose(float(one), float(other), rel_tol=1e-5, abs_tol=1e-8)
    except ValueError:
        return False


def _is_whole(word: str) -> bool:
    return word.lstrip("+-").isdecimal()


def _tests(doc: Any) -> dict[str, Any]:
    tests: dict[str, Any] = json.loads(doc["input_output"] or "{}")
    return tests


def _text(lines: Any) -> str:
    return "\n".join(map(str, lines)) if isinstance(lines, list) else str(lines)


def _accepted(right: Any) -> list[Any]:
    """Most answers stand in the file as the only item of a list."""
    answers = [right, right[0]] if isinstance(right, list) and right else [right]
    return answers + [_with_whole_keys(answer) for answer in answers if isinstance(answer, dict)]


def _with_whole_keys(value: Any) -> Any:
    """JSON has made texts of all keys."""
    if isinstance(value, dict) and all(_is_whole(key) for key in value):
        return {int(key): item for key, item in value.items()}
    return value


def _call(source: str, name: str, case: AppsTest) -> Program:
    in_class = re.search(r"^class\s+Solution\b", source, re.MULTILINE)
    function = f"Solution().{name}" if in_class else name
    tests = f"{_PLAIN}assert plain({function}(*{case.given!r})) in {case.right!r}\n"
    return Program(source=source, tests=tests, entry_point="Solution" if in_class else name)


def _with_imports(generation: str) -> str:
    if "from __future__" in generation:  # must come first
        return generation
    rare = "\n".join(line for word, line in _RARE_IMPORTS.items() if word in generation)
    return f"{_IMPORTS}{rare}\n\n{generation}"


def _short(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]} …")
