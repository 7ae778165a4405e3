"""BigCodeBench: practical problems that take the functions of many libraries, each judged by a class of unit tests.

BigCodeBench: Benchmarking Code Generation with Diverse Function Calls and Complex Instructions,
https://arxiv.org/abs/2406.15877

The tests replace functions of libraries and look at files, tables and plots: they run in the program's process, and the
records say `in-process`. What a program could do to them there is looked for (unit_tests.py), but no list of that is
complete.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from proctor.code.execution import Trial, trial_of
from proctor.code.forms import Form
from proctor.code.libraries import LibraryTask, imported
from proctor.code.scripts import END_TOKENS, INSTRUCTION, NEW_STATEMENTS, read_script, sanitize
from proctor.code.suites import ProgramGroup, SuiteTask
from proctor.code.task import Task
from proctor.sandbox import Limits, Outcome, Program, Verdict

_OUTPUT_KIB = 16 << 10  # nobody reads it
_PROCESSES = 256
# By the name that is imported, packages that are called otherwise.
PACKAGES = {
    "bs4": "beautifulsoup4",
    "Crypto": "pycryptodome",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dns": "dnspython",
    "docx": "python-docx",
    "flask_mail": "Flask-Mail",
    "PIL": "pillow",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "wtforms": "WTForms",
    "yaml": "PyYAML",
}
# As the original sets it up. Programs find these names there already.
_SURROUNDINGS = """
import os, sys
from os import environ
environ.update(TZ="UTC", OMP_NUM_THREADS="1", TF_CPP_MIN_LOG_LEVEL="3", TF_ENABLE_ONEDNN_OPTS="0")
__import__("time").tzset()
"""
_FUTURE = re.compile(r"^from __future__ import .*\n", re.MULTILINE)
_TESTS = """
import sys
__name__ = "__test__"
sys.modules["__test__"] = sys.modules["__main__"]
_unit_tests = {{"__name__": "unit_tests"}}
exec({runner!r}, _unit_tests)
{tests}
{entry_point} = _unit_tests["watched"]({entry_point})
_unit_tests["run"](TestCases, {token!r})
"""


class BigCodeBench(SuiteTask, LibraryTask):
    """Completes a function: its imports, its signature and a docstring with examples are given."""

    DATASET_PATH = "bigcode/bigcodebench"
    SPLIT = "v0.1.4"
    NEEDED = (
        "task_id",
        "complete_prompt",
        "instruct_prompt",
        "code_prompt",
        "canonical_solution",
        "test",
        "entry_point",
    )
    KEYS = ("task_id",)
    ks: tuple[int, ...] = (1, 5, 10)
    max_tokens = 1280
    memory_mib = 30 << 10
    stops: ClassVar[tuple[str, ...]] = (*END_TOKENS, *NEW_STATEMENTS)

    def __init__(self, timeout: float = 240.0, calibrated: bool = True) -> None:
        """`calibrated`: imports and signature of the problem stand before each program, whether it has them or not."""
        super().__init__(stop_words=list(self.stops), requires_execution=True)
        self.timeout = timeout
        self.calibrated = calibrated

    def libraries(self) -> Mapping[str, str]:
        """Those of all problems together."""
        rows = self.rows()
        names = {name for index in range(len(rows)) for name in _needed(rows[index])}
        return {name: PACKAGES.get(name, name) for name in names}

    def get_prompt(self, doc: Any) -> str | dict[str, str]:
        return str(doc["complete_prompt"])

    def chat_prompt(self, doc: Any) -> str:
        return f"{INSTRUCTION}\n```\n{doc['complete_prompt'].strip()}\n```\n"

    def identify(self, doc: Any, index: int) -> str:
        return str(doc["task_id"])

    def postprocess_generation(self, generation: str, idx: int) -> str:
        doc = self.rows()[idx]
        completion = generation.removeprefix(doc["complete_prompt"]).replace("\t", "    ")
        return sanitize(doc["complete_prompt"] + completion, doc["entry_point"])

    def read_chat(self, doc: Any, form: Form, text: str, index: int) -> str:
        return read_script(text, doc["code_prompt"], doc["entry_point"])

    def groups(self, doc: Any, generation: str) -> Iterator[ProgramGroup]:
        self.require(*(f"import {name}" for name in _needed(doc)))
        token = hashlib.sha256(doc["test"].encode()).hexdigest()[:16]
        before = f"{doc['code_prompt']}\n    pass\n" if self.calibrated else ""
        future = "".join(_FUTURE.findall(generation))  # must come first
        program = Program(
            source=f"{future}{_SURROUNDINGS}{before}{_FUTURE.sub('', generation)}",
            tests=_TESTS.format(runner=_runner(), tests=doc["test"], entry_point=doc["entry_point"], token=token),
            entry_point=doc["entry_point"],
            beside=True,
        )

        def judge(program: Program, verdict: Verdict) -> Trial:
            trial = trial_of(program, verdict)
            if trial.passed and token not in verdict.stdout:
                why = "The program ended its tests before they were over."
                return msgspec.structs.replace(trial, outcome=Outcome.EXITED, detail=why)
            if not trial.passed:
                self.require(program.source)
            return trial

        yield ProgramGroup([program], self.limits(), judge)

    def limits(self) -> Limits:
        return msgspec.structs.replace(super().limits(), output_kib=_OUTPUT_KIB, processes=_PROCESSES)


class InstructBigCodeBench(BigCodeBench):
    """Follows an instruction in words, with the imports and the signature at its end."""

    stops = END_TOKENS

    def get_prompt(self, doc: Any) -> dict[str, str]:
        return {"instruction": f"{INSTRUCTION}\n{doc['instruct_prompt'].strip()}\n", "context": ""}

    def chat_prompt(self, doc: Any) -> str:
        return f"{INSTRUCTION}\n{doc['instruct_prompt'].strip()}\n"

    def postprocess_generation(self, generation: str, idx: int) -> str:
        doc = self.rows()[idx]
        return read_script(generation.replace("\t", "    "), doc["code_prompt"], doc["entry_point"])


def create_all_tasks() -> dict[str, type[Task]]:
    kinds = {
        "complete": (BigCodeBench, "completes functions that use many libraries"),
        "instruct": (InstructBigCodeBench, "writes functions that use many libraries, from an instruction"),
    }
    subsets = {"": (BigCodeBench.DATASET_PATH, 1140), "hard-": (f"{BigCodeBench.DATASET_PATH}-hard", 148)}
    return {
        f"bigcodebench-{subset}{kind}": type(
            cls.__name__, (cls,), {"DATASET_PATH": path, "summary": f"{said} ({number} problems)"}
        )
        for subset, (path, number) in subsets.items()
        for kind, (cls, said) in kinds.items()
    }


def _needed(doc: Any) -> Iterable[str]:
    """The libraries that a problem names, and those that its tests import."""
    named = doc.get("libs") or []
    listed = ast.literal_eval(named) if isinstance(named, str) else named
    names = {str(name).partition(".")[0] for name in listed} | imported(doc["test"], doc["code_prompt"])
    return sorted(name for name in names if name not in sys.stdlib_module_names)


@cache
def _runner() -> str:
    return (Path(__file__).parent.parent / "unit_tests.py").read_text(encoding="utf-8")
