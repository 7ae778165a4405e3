"""Mercury: problems of LeetCode, for which a program should be not only right but fast.

Mercury: A Code Efficiency Benchmark for Code Large Language Models, https://arxiv.org/abs/2402.07844

Beyond says where a program lies between the slowest and the fastest of the reference solutions, which are timed beside
it. The original takes the wall clock. Here a time is processor time, which the sandbox counts from outside, and the
least of several runs: neither the waiting for a processor nor what a program says of itself matters. What is left is
the noise of caches and clock rates. It is estimated for each problem, and where the references do not clearly differ by
more, nothing can be said about speed: there a right program loses nothing. "timed" is the share of the problems that
were solved and whose programs could be told apart by their speed.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from proctor.code.execution import Trial, run_programs, trial_of
from proctor.code.forms import fenced
from proctor.code.keyed import KeyedTask
from proctor.code.libraries import LibraryTask
from proctor.code.stopwords import STOP_WORDS
from proctor.errors import SettingError
from proctor.metrics.passing import pass_at_k
from proctor.sandbox import Program, Verdict

RESOLUTION = 5  # by as many times the noise, the fastest and the slowest reference must differ
_SHORT = 0.1  # seconds: shorter tests are repeated, so that they outweigh the start of a program
_REPETITIONS = 10
_HOPELESS = 2  # times as slow as the slowest reference: not worth the time that measuring takes

# What LeetCode has imported and defined for every program.
_GIVEN = """
import bisect, collections, copy, functools, heapq, itertools, math, re, string, sys
from bisect import bisect_left, bisect_right, insort
from collections import Counter, OrderedDict, defaultdict, deque
from functools import cache, cmp_to_key, lru_cache, reduce
from heapq import heapify, heappop, heappush, heappushpop, heapreplace, nlargest, nsmallest
from itertools import accumulate, chain, combinations, groupby, pairwise, permutations, product, zip_longest
from math import ceil, comb, factorial, floor, gcd, inf, isqrt, log, log2, sqrt
from string import ascii_lowercase
from sys import maxsize
from typing import *

class ListNode:
    def __init__(self, val=0, next=None):
        self.val = val
        self.next = next

class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val = val
        self.left = left
        self.right = right
"""
_SORTED = """
import sortedcontainers
from sortedcontainers import SortedDict, SortedList, SortedSet
"""

# The data set makes lists and trees by a package called lctk. These are its functions.
_NODES = """
def _linked_list(values, cyclePos=-1):
    nodes = [ListNode(value) for value in values]
    for node, following in zip(nodes, nodes[1:]):
        node.next = following
    if nodes and cyclePos >= 0:
        nodes[-1].next = nodes[cyclePos]
    return nodes[0] if nodes else None

def _values_of_list(head):
    values, seen = [], set()
    while head is not None and id(head) not in seen:
        seen.add(id(head))
        values.append(head.val)
        head = head.next
    return values

def _binary_tree(values):
    rest = iter(values)
    first = next(rest, None)
    nodes = [] if first is None else [TreeNode(first)]
    for node in nodes:
        for side in ("left", "right"):
            value = next(rest, None)
            if value is not None:
                setattr(node, side, TreeNode(value))
                nodes.append(getattr(node, side))
    return nodes[0] if nodes else None

def _values_of_tree(root):
    values, nodes = [], [root]
    for node in nodes:
        values.append(None if node is None else node.val)
        nodes.extend(() if node is None else (node.left, node.right))
    while values and values[-1] is None:
        values.pop()
    return values

class _Nodes:
    linkedList, linkedList2Arr = staticmethod(_linked_list), staticmethod(_values_of_list)
    binaryTree, binaryTree2Arr = staticmethod(_binary_tree), staticmethod(_values_of_tree)

sys.modules["lctk"] = _Nodes
"""
_NODE_FUNCTIONS = {"linkedList", "linkedList2Arr", "binaryTree", "binaryTree2Arr"}

_TESTS = """
import copy
from math import inf, nan

{convert}

{evaluate}

CASES = {cases}
function = Solution().{name}
for repetition in range({repetitions}):
    for case in CASES:
        inputs, expected = convert_offline((copy.deepcopy(case["input"]), case["expected"]))
        outputs = function(*inputs)
        assert evaluate_offline(inputs, outputs, expected), case["input"]
# run {number}
"""


class Course(Struct, frozen=True):
    """On which the programs of one problem are timed: how long the references take, in seconds."""

    repetitions: int
    fastest: float
    slowest: float
    noise: float

    @property
    def tells_apart(self) -> bool:
        return self.slowest - self.fastest > RESOLUTION * self.noise

    def beyond(self, seconds: float) -> float:
        """1 for a program as fast as the fastest reference, 0 for one as slow as the slowest."""
        return min(1.0, max(0.0, (self.slowest - seconds) / (self.slowest - self.fastest)))


class Mark(Struct, frozen=True):
    """What the generations for one problem are worth."""

    passed: list[bool]
    beyond: list[float]
    timed: bool


class Mercury(KeyedTask, LibraryTask):
    summary = "solves LeetCode problems with fast Python programs (256 problems)"
    DATASET_PATH = "Elfsong/Mercury"
    SPLIT = "eval"
    NEEDED = (
        "slug_name", "difficulty", "pretty_content", "solutions", "prompt", "convert_offline", "evaluate_offline",
        "entry_point", "test_cases",
    )  # fmt: skip
    KEYS = ("slug_name",)
    LIBRARIES: ClassVar[Mapping[str, str]] = {"sortedcontainers": "sortedcontainers"}
    ks = (1, 3, 5, 10, 15, 20, 30, 50, 100)
    group_by = ("difficulty",)
    max_tokens = 1024

    def __init__(self, timeout: float = 10.0, runs: int = 3) -> None:
        """`runs`: how often each program is timed, at least twice; with 0, speed does not count."""
        if runs < 0 or runs == 1:
            raise SettingError(f"mercury: setting runs: expected 0, or 2 and more, got {runs}.", "runs")
        super().__init__(stop_words=STOP_WORDS["python"], requires_execution=True)
        self.timeout = timeout
        self.runs = runs

    def get_prompt(self, doc: Any) -> str:
        return f"'''{doc['pretty_content'][0]}'''\n{doc['prompt']}"

    def chat_prompt(self, doc: Any) -> str:
        asked = (
            "Solve this problem in Python, by a program as fast as possible. Reply with the complete class in one code "
            f"block.\n\n{doc['pretty_content'][0]}\n\nBegin with this code:\n\n"
        )
        return asked + fenced(doc["prompt"].rstrip(), "python")

    def entry_point(self, doc: Any) -> str:
        return "Solution"

    def solution(self, doc: Any) -> str | None:
        """The fastest reference whose method can stand where the prompt begins one."""
        references = sorted(doc["solutions"], key=lambda known: int(re.sub(r"\D", "", known["runtime"]) or 0))
        found = (completion_of(known["solution"], doc["prompt"], doc["entry_point"]) for known in references)
        return next(filter(None, found), None)

    def identify(self, doc: Any, index: int) -> str:
        return str(doc["slug_name"])

    def describe(self, doc: Any) -> dict[str, Any]:
        return {**super().describe(doc), "difficulty": doc["difficulty"]}

    def program(self, doc: Any, generation: str, repetitions: int = 1, number: int = 0) -> Program:
        """The number tells the runs of one program apart."""
        # The text of the problem is no part of the program: not every text can stand between quotes.
        code = generation.removeprefix(self.get_prompt(doc).removesuffix(doc["prompt"]))
        nodes = _uses_nodes(doc)
        tests = _TESTS.format(
            convert=doc["convert_offline"],
            evaluate=doc["evaluate_offline"],
            cases=json.loads(doc["test_cases"]),
            name=doc["entry_point"],
            repetitions=repetitions,
            number=number,
        )
        return Program(
            source=_GIVEN + (_SORTED if "Sorted" in code else "") + (_NODES if nodes else "") + f"\n{code}",
            tests=tests,
            entry_point="Solution",
            beside=nodes,
        )

    def process_results(self, generations: list[list[str]], references: list[Any]) -> dict[str, float]:
        pairs = zip(generations, references, strict=True)
        marks = [self._mark(self.row_of(reference), of_one) for of_one, reference in pairs]
        most = min(len(mark.passed) for mark in marks)
        passing = {
            f"pass@{k}": _mean([pass_at_k(len(mark.passed), sum(mark.passed), k) for mark in marks])
            for k in self.ks
            if k <= most
        }
        if not self.runs:
            return passing
        beyond = _mean([_mean(mark.beyond) for mark in marks])
        return {**passing, "beyond@1": beyond, "timed": _mean([mark.timed for mark in marks])}

    def _mark(self, doc: Any, generations: Sequence[str]) -> Mark:
        different = list(dict.fromkeys(generations))  # the same program has the same speed
        firsts = dict(zip(different, self._run([self.program(doc, one) for one in different]), strict=True))
        passed = [firsts[generation].passed for generation in generations]
        course = self._course(doc) if self.runs and any(passed) else None
        if course is None or not course.tells_apart:
            return Mark(passed, [float(one) for one in passed], timed=False)
        beyond = {one: self._beyond(doc, course, one, first) for one, first in firsts.items()}
        return Mark(passed, [beyond[generation] for generation in generations], timed=True)

    def _course(self, doc: Any) -> Course | None:
        """Made by the references that are right; it takes two."""
        sources = list(dict.fromkeys(known["solution"] for known in doc["solutions"]))
        firsts = zip(sources, self._run([self.program(doc, source) for source in sources]), strict=True)
        right = {source: first.reading for source, first in firsts if first.passed}
        repetitions = _REPETITIONS if right and median(right.values()) < _SHORT else 1
        times = [found for source in right if (found := self._times(doc, source, repetitions))]
        if len(times) < 2:
            return None
        # What disturbs a program only makes it slower: its least time is nearest to the truth, and the next one says
        # how near.
        least = [min(of_one) for of_one in times]
        noise = median(sorted(of_one)[1] - min(of_one) for of_one in times)
        return Course(repetitions, min(least), max(least), noise)

    def _beyond(self, doc: Any, course: Course, generation: str, first: Trial) -> float:
        slow = first.reading * course.repetitions > _HOPELESS * course.slowest + _SHORT * course.repetitions
        times = self._times(doc, generation, course.repetitions) if first.passed and not slow else []
        return course.beyond(min(times)) if times else 0.0

    def _times(self, doc: Any, source: str, repetitions: int) -> list[float]:
        """None where it fails under the strain."""
        trials = self._run([self.program(doc, source, repetitions, number) for number in range(1, self.runs + 1)])
        return [trial.reading for trial in trials] if all(trial.passed for trial in trials) else []

    def _run(self, programs: Sequence[Program]) -> list[Trial]:
        return run_programs(programs, self.limits(), self._timed)

    def _timed(self, program: Program, verdict: Verdict) -> Trial:
        trial = trial_of(program, verdict)
        if not trial.passed:
            self.require(program.source)
        return msgspec.structs.replace(trial, reading=verdict.cpu_seconds)


def completion_of(solution: str, prompt: str, method: str) -> str | None:
    """The lines of a class that go on where the prompt has begun the method; None where they would not fit."""
    try:
        whole, begun = ast.parse(solution), ast.parse(f"{prompt.rstrip()}\n        pass")
    except SyntaxError:
        return None
    (of_whole, members), (of_begun, _) = _method(whole, method), _method(begun, method)
    if of_whole is None or of_begun is None or len(whole.body) > 1 or _arguments(of_whole) != _arguments(of_begun):
        return None
    lines = solution.splitlines()
    body = lines[of_whole.body[0].lineno - 1 : of_whole.end_lineno]
    others = [line for member in members if member is not of_whole for line in _lines(member, lines)]
    already_there = prompt[len(prompt.rstrip(" \t")) :]  # the indentation of the first line, mostly
    return "\n".join([*body, "", *others]).removeprefix(already_there) + "\n"


def _method(tree: ast.Module, name: str) -> tuple[ast.FunctionDef | None, list[ast.stmt]]:
    """The method of the first class, and all that stands in the class."""
    members = next((node.body for node in tree.body if isinstance(node, ast.ClassDef)), [])
    methods = [member for member in members if isinstance(member, ast.FunctionDef) and member.name == name]
    return (methods[0] if methods else None), members


def _arguments(method: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in method.args.args]


def _lines(member: ast.stmt, lines: Sequence[str]) -> Sequence[str]:
    first = min([member.lineno, *(decorator.lineno for decorator in getattr(member, "decorator_list", ()))])
    return [*lines[first - 1 : member.end_lineno], ""]


def _uses_nodes(doc: Any) -> bool:
    used = set(re.findall(r"\blctk\.(\w+)", doc["convert_offline"] + doc["evaluate_offline"]))
    if unknown := used - _NODE_FUNCTIONS:
        raise ValueError(f"problem {doc['slug_name']} needs lctk.{sorted(unknown)[0]}, which is not known here")
    return bool(used)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
