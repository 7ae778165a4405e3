"""Mercury: problems of LeetCode, for which a program should be not only right but fast.

Mercury: A Code Efficiency Benchmark for Code Large Language Models, https://arxiv.org/abs/2402.07844

Beyond says where a program lies between the slowest and the fastest of the reference solutions, which are timed beside
it. The original takes the wall clock. Here a time is processor time, which the sandbox counts from outside, and the
least of several runs: neither the waiting for a processor nor what a program says of itself matters. What is left is
the noise of caches, clock rates and neighbours. All programs of a problem take turns, so that it meets them alike; and
where the references do not differ by clearly more than each differs from itself, nothing can be said about speed: there
a right program loses nothing. "timed" is the share of the problems that were solved and whose programs could be told
apart.

Under BigCode's name the prompt has the worked example of its harness, which is read from the user's copy of it.
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

from proctor.code import reply
from proctor.code.execution import Trial, run_programs, trial_of
from proctor.code.forms import Form, fenced
from proctor.code.keyed import KeyedTask
from proctor.code.libraries import LibraryTask
from proctor.code.shots import HarnessShots
from proctor.code.stopwords import STOP_WORDS, cut
from proctor.core.errors import SettingError
from proctor.core.types import Metric, Record
from proctor.metrics.passing import estimates
from proctor.metrics.statistics import score_mean
from proctor.sandbox import Program, Verdict

RESOLUTION = 3  # by as many times the noise, the fastest and the slowest reference must differ
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
    """What the references of a problem show, in seconds: how fast one can be, how slow, how uncertain both are."""

    fastest: float
    slowest: float
    noise: float

    @classmethod
    def of(cls, times: Sequence[Sequence[float]]) -> Course:
        """From several times of each, of which the least is nearest to the truth: what disturbs only adds to it."""
        least = [min(of_one) for of_one in times]
        return cls(min(least), max(least), median(max(of_one) - min(of_one) for of_one in times))

    @property
    def tells_apart(self) -> bool:
        return self.slowest - self.fastest > RESOLUTION * self.noise

    def beyond(self, seconds: float) -> float:
        """1 for a program as fast as the fastest reference, 0 for one as slow as the slowest."""
        return min(1.0, max(0.0, (self.slowest - seconds) / (self.slowest - self.fastest)))


class Mark(Struct, frozen=True):
    """What the generations for one problem are worth."""

    tries: int
    passed: int
    beyond: float
    """The sum over all of them."""
    timed: bool

    def __add__(self, other: Mark) -> Mark:
        timed = self.timed or other.timed
        return Mark(self.tries + other.tries, self.passed + other.passed, self.beyond + other.beyond, timed)


class Marks:
    """Counts what was measured when the programs ran: another time it would be something else."""

    def __init__(self, ks: Sequence[int], timing: bool) -> None:
        self._ks, self._timing = ks, timing
        self._marks: dict[int, Mark] = {}

    def add(self, record: Record) -> None:
        if record.score is not None:
            answer = record.score.answer
            tries, found = len(answer["generations"]), answer["metrics"]
            passed, beyond = round(found["pass@1"] * tries), found.get("beyond@1", 0.0) * tries
            self.note(record.sample.index, Mark(tries, passed, beyond, bool(found.get("timed"))))

    def note(self, problem: int, mark: Mark) -> None:
        self._marks[problem] = self._marks[problem] + mark if problem in self._marks else mark

    def metrics(self) -> dict[str, Metric]:
        marks = self._marks.values()
        counts = [(mark.tries, mark.passed) for mark in marks]
        counted = {f"pass@{k}": values for k, values in estimates(counts, self._ks).items()}
        if self._timing:
            counted["beyond@1"] = [mark.beyond / mark.tries for mark in marks]
            counted["timed"] = [float(mark.timed) for mark in marks]
        return {name: score_mean(values) for name, values in counted.items()}


class ZeroShotMercury(KeyedTask, LibraryTask):
    """Shows the problem as a comment, and goes on with its code."""

    summary = "solves LeetCode problems with fast Python programs (256 problems); without an example"
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
        marks = self.tally()
        for problem, (of_one, reference) in enumerate(zip(generations, references, strict=True)):
            marks.note(problem, self._mark(self.row_of(reference), of_one))
        return {name: metric.value for name, metric in marks.metrics().items() if metric.value is not None}

    def tally(self) -> Marks:
        return Marks(self.ks, timing=self.runs > 0)

    def _mark(self, doc: Any, generations: Sequence[str]) -> Mark:
        firsts = self._firsts(doc, generations)
        passed = sum(firsts[generation].passed for generation in generations)
        beyond = self._race(doc, firsts) if self.runs and passed else {}
        sum_of_beyond = sum(beyond.get(generation, 0.0) for generation in generations) if beyond else float(passed)
        return Mark(len(generations), passed, sum_of_beyond, timed=bool(beyond))

    def _race(self, doc: Any, firsts: Mapping[str, Trial]) -> dict[str, float]:
        """Beyond of the programs that pass; nothing where the references do not show what is fast."""
        references = _passing(self._firsts(doc, [known["solution"] for known in doc["solutions"]]))
        if len(references) < 2:
            return {}
        repetitions = _REPETITIONS if median(references.values()) < _SHORT else 1
        hopeless = _HOPELESS * max(references.values()) + _SHORT
        right = _passing(firsts)
        racing = [program for program, seconds in right.items() if seconds <= hopeless]
        times = self._times(doc, [*references, *racing], repetitions)
        of_references = [times[reference] for reference in references if reference in times]
        if len(of_references) < 2 or not (course := Course.of(of_references)).tells_apart:
            return {}
        return {program: course.beyond(min(times[program])) if program in times else 0.0 for program in right}

    def _firsts(self, doc: Any, sources: Sequence[str]) -> dict[str, Trial]:
        different = list(dict.fromkeys(sources))
        return dict(zip(different, self._run([self.program(doc, source) for source in different]), strict=True))

    def _times(self, doc: Any, sources: Sequence[str], repetitions: int) -> dict[str, list[float]]:
        """Of those that pass every time. They take turns."""
        turns = [(number, source) for number in range(1, self.runs + 1) for source in dict.fromkeys(sources)]
        trials = self._run([self.program(doc, source, repetitions, number) for number, source in turns])
        times: dict[str, list[float]] = {}
        for (_, source), trial in zip(turns, trials, strict=True):
            if trial.passed:
                times.setdefault(source, []).append(trial.reading)
        return {source: of_one for source, of_one in times.items() if len(of_one) == self.runs}

    def _run(self, programs: Sequence[Program]) -> list[Trial]:
        return run_programs(programs, self.limits(), self._timed)

    def _timed(self, program: Program, verdict: Verdict) -> Trial:
        trial = trial_of(program, verdict)
        if not trial.passed:
            self.require(program.source)
        return msgspec.structs.replace(trial, reading=verdict.cpu_seconds)


class Mercury(HarnessShots, ZeroShotMercury):
    """Shows one solved problem before, as the BigCode harness does; the answer is a class from its first line on."""

    summary = "solves LeetCode problems with fast Python programs (256 problems)"
    version = "2"
    SHOTS = "mercury.py"
    own_ending = "-zero-shot"
    own_manner = "without an example"

    def __init__(self, timeout: float = 10.0, runs: int = 3, prompts: str = "") -> None:
        """`prompts`: a checkout or the installed package of the BigCode harness."""
        super().__init__(timeout, runs)
        self.stop_words = [*self.stop_words, "\n###", "<|endoftext|>"]
        self.prompts = prompts

    def read_examples(self, content: bytes) -> dict[str, str]:
        """The one in the harness's source, which is read and not run."""
        keys = ["question", "sample_code", "answer"]
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.Dict) and [getattr(key, "value", None) for key in node.keys] == keys:
                example: dict[str, str] = ast.literal_eval(node)
                if all(example.values()):
                    return example
        raise ValueError(f"there is no example with {', '.join(keys)} in it")

    def get_prompt(self, doc: Any) -> str:
        example, code = self.fewshot_examples(), str(doc["prompt"])
        shown = _part(example["question"], example["sample_code"] if code else "")
        return f"{shown}{example['answer']}\n\n{_part(doc['pretty_content'][0], code)}"

    def solution(self, doc: Any) -> str | None:
        body = super().solution(doc)
        return None if body is None else f"{doc['prompt']}{body}"

    def postprocess_generation(self, generation: str, idx: int) -> str:
        """The class alone."""
        return cut(generation.removeprefix(self._form(idx).begun), self.stop_words)

    def read_chat(self, doc: Any, form: Form, text: str, index: int) -> str:
        return reply.program(doc["prompt"], text, self.entry_point(doc), self.language)


def _part(question: str, code: str) -> str:
    begun = f"### Code Prompt\n{code}\n\n" if code else ""
    return f"### Question\n{question}\n\n{begun}### Completion\n"


def _passing(trials: Mapping[str, Trial]) -> dict[str, float]:
    return {source: trial.reading for source, trial in trials.items() if trial.passed}


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
