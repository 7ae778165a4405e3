"""LiveCodeBench: problems of programming contests with their dates, so that a model is asked only what it cannot know.

LiveCodeBench: Holistic and Contamination Free Evaluation of Large Language Models for Code,
https://arxiv.org/abs/2403.07974

The code generation scenario, with the tests of the "lite" data set. A program is judged by what it prints, or a method
of the class Solution by what it returns, in one run for each test. An output without a fence, which LiveCodeBench reads
as no answer, is code here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from proctor.code.execution import Judge, Trial, trial_of
from proctor.code.forms import Form
from proctor.code.packed_tests import PackedTest, cases_of
from proctor.code.rows import Rows, load_dataset, load_files, packaged_file, pick
from proctor.code.stopwords import cut
from proctor.code.suites import ProgramGroup, SuiteTask
from proctor.core.config import RunConfig, user_path
from proctor.core.errors import MissingDataError, SettingError, UsageError
from proctor.core.reasoning import strip_reasoning
from proctor.core.types import Message, Prompt
from proctor.sandbox import Limits, Outcome, Program, Verdict

_RELEASES = 6  # the files test.jsonl, test2.jsonl, … of the data set; a release has those of all before it
_LATEST = "release_latest"
_AT_ONCE = 8
_DETAIL = 500
_SHOWN = 80

# The names of the styles are those of the original, which has others for single models.
_CHAT, _ONE_MESSAGE, _REASONING, _STRIPPED, _BASE = STYLES = (
    "OpenAIChat", "OpenAIReasonPreview", "OpenAIReason", "Claude3", "GenericBase",
)  # fmt: skip
_SYSTEM = (
    "You are an expert Python programmer. You will be given a question (problem specification) and will generate a "
    "correct Python program that matches the specification and passes all tests."
)
_WITH_CODE = (
    "You will use the following starter code to write the solution to the problem and enclose your code within "
    "delimiters."
)
_WITHOUT_CODE = (
    "Read the inputs from stdin solve the problem and write the answer to stdout (do not directly test on the sample "
    "inputs). Enclose your code within delimiters as follows. Ensure that when the python program runs, it reads the "
    "inputs, runs the algorithm and writes output to STDOUT."
)
_WITH_MAIN = (
    "Implement a function called `main()` which orchastrates the solution by reading inputs from stdin and writing the "
    "answer to stdout. Feel free to use additional functions as necessary. Next do NOT forget to call `main` function "
    "at the end of the program otherwise you will not be awarded any points."
)

# What programs find imported, in this order: of two modules with one name the later counts.
_STARRED = (
    "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics", "itertools",
    "functools", "operator", "io", "sys", "json", "builtins", "typing",
)  # fmt: skip
_NAMED = tuple(name for name in _STARRED if name not in ("builtins", "typing"))
_LIMITS = "import sys\nsys.setrecursionlimit(50000)\nsys.set_int_max_str_digits(50000)\n"
_FUTURE = re.compile(r"^from __future__ import .*\n", re.MULTILINE)

_CALL = """
import json

_given = [json.loads(line) for line in {given!r}.split("\\n")]
_right = json.loads({right!r})
_found = {function}(*_given)
assert (list(_found) if isinstance(_found, tuple) else _found) == _right
"""


class LiveCodeBench(SuiteTask):
    summary = "solves problems of programming contests in a window of dates (1055 problems)"
    DATASET_PATH = "livecodebench/code_generation_lite"
    NEEDED = (
        "question_content", "question_id", "platform", "difficulty", "contest_date", "starter_code",
        "public_test_cases", "private_test_cases", "metadata",
    )  # fmt: skip
    KEYS = ("question_id",)
    ks: tuple[int, ...] = (1, 5, 10)
    group_by = ("difficulty", "platform")
    max_tokens = 2000
    memory_mib = 4096
    _kept: tuple[str, list[PackedTest]] = ("", [])

    def __init__(
        self,
        timeout: float = 6.0,
        release: str = _LATEST,
        start_date: str = "",
        end_date: str = "",
        style: str = _CHAT,
        prompts: str = "",
    ) -> None:
        """`timeout`: seconds for each test. `prompts`: the folder of LiveCodeBench, for its example in GenericBase."""
        super().__init__(stop_words=["###"], requires_execution=True)
        self.timeout = timeout
        self.files = _files_of(release)
        if self._given.file is not None and release != _LATEST:
            raise SettingError(
                "livecodebench: setting release names files of the hub; with --data leave it out.", "release"
            )
        self.window = _day("start_date", start_date, date.min), _day("end_date", end_date, date.max)
        if style not in STYLES:
            raise SettingError(f"livecodebench: setting style: expected {' or '.join(STYLES)}, got {style!r}.", "style")
        self.style = style
        self.prompts = prompts

    def get_dataset(self) -> Any:
        rows = self._all_rows()
        columns = [self._column(rows, key) for key in ("contest_date", "question_id")]
        first, last = self.window
        days = [str(day)[:10] for day in columns[0]]
        chosen = [index for index, day in enumerate(days) if first <= day <= last]
        if not chosen:
            raise MissingDataError(
                f"livecodebench: there is no problem from {first} to {last}; those in the data are from {min(days)} to "
                f"{max(days)}."
            )
        return pick(rows, sorted(chosen, key=lambda index: str(columns[1][index])))

    def _all_rows(self) -> Rows:
        if self._given.file is None:
            return load_files(self.DATASET_PATH, self.files)
        rows: Rows = load_dataset(self.DATASET_PATH, split=self.SPLIT)
        return rows

    def _column(self, rows: Any, key: str) -> Sequence[Any]:
        if key not in rows.column_names:
            raise MissingDataError(
                f"livecodebench: the rows have no {key!r}; there is: {', '.join(rows.column_names)}."
            )
        return list(rows[key])

    def get_prompt(self, doc: Any) -> dict[str, str]:
        text = self._base_prompt(doc) if self.style == _BASE else _question(doc, self.style == _REASONING)
        return {"instruction": text.rstrip() if self.style == _STRIPPED else text, "context": ""}

    def _base_prompt(self, doc: Any) -> str:
        code = doc["starter_code"]
        example = self._example("func" if code else "stdin")
        asked = {"question": doc["question_content"], "sample_code": code, "answer": ""}
        return "".join(_worked(one, with_code=bool(code)) for one in (example, asked))

    def _example(self, kind: str) -> Mapping[str, str]:
        examples: list[dict[str, str]] = json.loads(_examples_file(self.prompts, f"{kind}.json").read_text())
        return examples[0]

    def _prompt(self, doc: Any, config: RunConfig) -> Prompt:
        question = self.get_prompt(doc)["instruction"]
        if config.api == "completions" and config.instruction_tokens is not None:
            return super()._prompt(doc, config)
        if self.style == _BASE:
            return config.prefix + question if config.api == "completions" else (Message("user", question),)
        if config.api == "completions" or self.style in (_ONE_MESSAGE, _REASONING):
            whole = f"{config.prefix}{_SYSTEM}\n\n{question}"
            return whole if config.api == "completions" else (Message("user", whole),)
        return Message("system", _SYSTEM), Message("user", config.prefix + question)

    def entry_point(self, doc: Any) -> str:
        metadata = doc["metadata"]
        told = json.loads(metadata or "{}") if isinstance(metadata, str) else metadata or {}
        return str(told.get("func_name") or "")

    def identify(self, doc: Any, index: int) -> str:
        return str(doc["question_id"])

    def describe(self, doc: Any) -> dict[str, Any]:
        told = {key: str(doc[key]) for key in ("difficulty", "platform", "contest_date")}
        return {**super().describe(doc), **told, "format": "call" if self.entry_point(doc) else "stdin"}

    def postprocess_generation(self, generation: str, idx: int) -> str:
        return self._code(cut(generation, self.stop_words))

    def read_chat(self, doc: Any, form: Form, text: str, index: int) -> str:
        return self._code(strip_reasoning(text))

    def _code(self, text: str) -> str:
        return text.strip() if self.style == _BASE else last_fenced(text)

    def groups(self, doc: Any, generation: str) -> Iterator[ProgramGroup]:
        cases, name = self._cases(doc), self.entry_point(doc)
        longest = max(len(case.output) for case in cases)
        usual = self.limits()
        # Whoever prints what is right may print it, and as much again as any program.
        limits = msgspec.structs.replace(usual, output_kib=usual.output_kib + longest // 1024)
        source = with_imports(generation)
        for start in range(0, len(cases), _AT_ONCE):
            some = range(start, min(start + _AT_ONCE, len(cases)))
            if name:
                yield ProgramGroup([_call(source, name, cases[number]) for number in some], limits)
            else:
                yield _printing(source, {number: cases[number] for number in some}, limits)

    def _cases(self, doc: Any) -> list[PackedTest]:
        """Those of the last problem are kept: its completions are judged together."""
        key, kept = doc["question_id"], self._kept  # one look: other problems are judged in other threads
        if kept[0] != key:
            self._kept = kept = key, cases_of(doc["public_test_cases"]) + cases_of(doc["private_test_cases"])
        if not kept[1]:
            raise ValueError(f"problem {key} has no tests: it cannot be judged")
        return kept[1]


def _files_of(release: str) -> list[str]:
    """release_v3 has the first three files, v3 the third alone, v2_v4 the second to the fourth."""
    found = re.fullmatch(r"(release_)?v(\d)(?:_v(\d))?", release.replace(_LATEST, f"release_v{_RELEASES}"))
    cumulative, one, other = found.groups() if found else (None, "0", None)
    first, last = (1 if cumulative else int(one)), int(other or one)
    if not 1 <= first <= last <= _RELEASES or (cumulative and other):
        known = f"release_v1 to release_v{_RELEASES}, v1 to v{_RELEASES}, or a span such as v2_v4"
        raise SettingError(f"livecodebench: setting release: expected {known}, got {release!r}.", "release")
    return ["test.jsonl" if number == 1 else f"test{number}.jsonl" for number in range(first, last + 1)]


def _day(setting: str, given: str, default: date) -> str:
    try:
        return (date.fromisoformat(str(given)) if given else default).isoformat()
    except ValueError:
        raise SettingError(
            f"livecodebench: setting {setting}: expected a day such as 2024-09-01, got {given!r}.", setting
        ) from None


def _question(doc: Any, with_main: bool) -> str:
    """The format that the original calls generic."""
    code = doc["starter_code"]
    form = _WITH_CODE if code else _WITH_MAIN if with_main else _WITHOUT_CODE
    return (
        f"### Question:\n{doc['question_content']}\n\n### Format: {form}\n"
        f"```python\n{code or '# YOUR CODE HERE'}\n```\n\n### Answer: (use the provided format with backticks)\n\n"
    )


def _worked(example: Mapping[str, str], with_code: bool) -> str:
    code = f"### Starter Code\n{example['sample_code']}\n\n" if with_code else ""
    answer = f"{example['answer']}\n\n" if example["answer"] else ""
    return f"### Question\n{example['question']}\n\n{code}### Answer\n\n{answer}"


def _examples_file(given: str, name: str) -> Path:
    """A file with worked examples: in a checkout, or in an installed package that has them."""
    inside = Path("prompts/few_shot_examples/generation") / name
    if given:
        folder = user_path(given)
        for path in (folder / name, folder / inside, folder / "lcb_runner" / inside, folder / "livecodebench" / inside):
            if path.is_file():
                return path
        raise UsageError(f"livecodebench: there is no {inside} in {folder}, a checkout of LiveCodeBench.")
    for package in ("lcb_runner", "livecodebench"):
        if packaged := packaged_file(package, str(inside)):
            return packaged
    raise UsageError(
        "livecodebench: the style GenericBase shows an example of LiveCodeBench's own, which is not part of Proctor: "
        "--set prompts=PATH names a checkout of it."
    )


def last_fenced(text: str) -> str:
    """What stands between the last two fences, after one that was left open, or in a text without any."""
    lines = text.split("\n")
    fences = [number for number, line in enumerate(lines) if "```" in line]
    if len(fences) < 2:
        return "\n".join(lines[fences[0] + 1 :]) if fences else text.strip("\n")
    return "\n".join(lines[fences[-2] + 1 : fences[-1]])


def with_imports(code: str) -> str:
    """With what programs find imported; only what has a name in common with them, as imports take time."""
    words = set(re.findall(r"\w+", code))
    starred = [f"from {module} import *" for module in _STARRED if not words.isdisjoint(_exported(module))]
    named = [f"import {module}" for module in _NAMED if module in words]
    future = "".join(_FUTURE.findall(code))  # must come first
    return "\n".join([future + _LIMITS, *starred, *named, "", _FUTURE.sub("", code)])


@cache
def _exported(module: str) -> frozenset[str]:
    found = import_module(module)
    return frozenset(getattr(found, "__all__", [name for name in vars(found) if not name.startswith("_")]))


def _call(source: str, name: str, case: PackedTest) -> Program:
    in_class = "class Solution" in source
    tests = _CALL.format(given=case.input, right=case.output, function=f"Solution().{name}" if in_class else name)
    return Program(source=source, tests=tests, entry_point="Solution" if in_class else name)


def _printing(source: str, cases: Mapping[int, PackedTest], limits: Limits) -> ProgramGroup:
    """The number keeps two tests with the same input apart."""
    programs = {Program(source=f"{source}\n# {number}", stdin=case.input): case for number, case in cases.items()}
    return ProgramGroup(
        list(programs), limits, _comparing({program: case.output for program, case in programs.items()})
    )


def _comparing(right: Mapping[Program, str]) -> Judge:
    def judge(program: Program, verdict: Verdict) -> Trial:
        trial = trial_of(program, verdict)
        trial = msgspec.structs.replace(trial, detail=trial.detail[-_DETAIL:])
        if not trial.passed or same_output(verdict.stdout, right[program]):
            return trial
        detail = f"It printed {_short(verdict.stdout)} instead of {_short(right[program])}."
        return msgspec.structs.replace(trial, outcome=Outcome.FAILED, detail=detail)

    return judge


def same_output(found: str, right: str) -> bool:
    """Line by line the same, without blanks around them; or the same numbers, however they are written."""
    one, other = (text.strip().split("\n") for text in (found, right))
    return len(one) == len(other) and all(map(_same_line, one, other))


def _same_line(one: str, other: str) -> bool:
    one, other = one.strip(), other.strip()
    try:
        return one == other or [*map(Decimal, one.split())] == [*map(Decimal, other.split())]
    except InvalidOperation:  # not a number, or one that cannot be compared
        return False


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …")
