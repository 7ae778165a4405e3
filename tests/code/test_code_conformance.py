"""Every code task keeps the promises of an exam, on a few rows of the form that its real data set has.

The rows are in tests/data/code_rows, one file for a task or all whose names begin so (apps-x-y has that of apps-x or
apps); a task without a file has its data with it. Of tasks that are made in many variants a few are walked here, and
test_benchmark_languages.py looks at all languages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from _pytest.mark import ParameterSet

import proctor
from helpers.paths import DATA
from helpers.toolchains import needs_language
from proctor.analysis.check import check_task
from proctor.code import TASK_REGISTRY
from proctor.code.shots import OWN, HarnessShots
from proctor.code.tasks.multiple import LANGUAGES as MULTIPLE_LANGUAGES
from proctor.core import registry
from proctor.core.config import build_config
from proctor.core.task import create_task

ROWS = DATA / "code_rows"
SAME_ROWS = {
    "apps-introductory": "apps",
    "ds1000-numpy-completion": "ds1000",
    "pal-gsm8k-greedy": "pal-gsm8k",
    "pal-gsmhard-majority_voting": "pal-gsmhard",
    "perturbed-humaneval-func_name-num_seeds_2": "perturbed-humaneval",
    "humanevalfixtests-python": "humanevalpack-python",
    "humanevalexplaindescribe-python": "humanevalpack-python",
    "humanevalexplainsynthesize-python": "humanevalpack-python",
    "instruct-humaneval-nocontext": "instruct-humaneval",
    "starcoder_fim": "santacoder_fim",
}
DESCRIPTIONS = {"load_data_path": str(ROWS / "humanevalpack-python.descriptions.json")}
VARIANTS = ("apps-", "bigcodebench-hard-", "ds1000-", "humanevalplus-", "pal-", "perturbed-humaneval-")
FACTORIES = ("multiple-", "humanevalfix", "humanevalexplain", "humanevalsynthesize", "starter-", *VARIANTS)


def rows_of(name: str) -> str | None:
    name = SAME_ROWS.get(name, name)
    while not (file := ROWS / f"{name}.jsonl").exists() and "-" in name:
        name = name.rpartition("-")[0]
    return str(file) if file.exists() else None


def settings_of(name: str) -> dict[str, str]:
    """The examples of the BigCode harness, where it shows some; those of ROWS are invented."""
    if name == "humanevalexplainsynthesize-python":
        return DESCRIPTIONS
    return {"prompts": str(ROWS)} if issubclass(TASK_REGISTRY[name], HarnessShots) and OWN not in name else {}


def has_rows_of_its_own(name: str) -> bool:
    return (ROWS / f"{SAME_ROWS.get(name, name)}.jsonl").exists()


WALKED = [name for name in TASK_REGISTRY if has_rows_of_its_own(name) or not name.startswith(FACTORIES)]


# One benchmark of each kind goes through the whole of `check` in `make test`: tests of a function, whole programs, code
# in a context, an answer that a program prints, a text that is measured, a gap to fill.
CHECKED = {
    "humaneval",
    "apps-introductory",
    "ds1000-numpy-completion",
    "pal-gsm8k-greedy",
    "codexglue_code_to_text-python",
    "santacoder_fim",
}
# Differ from one that stands before them in their rows or in a setting.
ALIKE = {
    "bigcodebench-instruct",
    "evalplus-mbpp",
    "humaneval-unstripped",
    "mbpp-sanitized",
    "mbppplus",
    "pal-gsmhard-majority_voting",
    "humanevalfixtests-python",
    "instruct-humaneval-nocontext",
    "starcoder_fim",
    "mercury-zero-shot",
    "evalplus-humaneval",
    "instruct-humaneval",
    "instruct_wizard_humaneval",
    "mbpp",
    "parity",
    "studenteval",
    *(name for name in TASK_REGISTRY if name.endswith(OWN)),
}


def walked(slow: Callable[[str], bool]) -> list[ParameterSet]:
    return [pytest.param(name, marks=[pytest.mark.slow] if slow(name) else []) for name in WALKED]


def needs_tools_of(name: str) -> None:
    if name.startswith("multiple-"):
        needs_language(MULTIPLE_LANGUAGES[name.removeprefix("multiple-")])


@pytest.mark.parametrize("name", walked(lambda name: name not in CHECKED))
def test_check(name: str) -> None:
    needs_tools_of(name)
    findings = check_task(f"code/{name}", settings_of(name), n=20, data=rows_of(name))
    assert [f"{finding.claim}: {finding.fault}" for finding in findings if not finding.holds] == []


@pytest.mark.parametrize("name", TASK_REGISTRY)
def test_described_and_versioned(name: str) -> None:
    cls = registry.load_task_class(f"code/{name}")
    assert cls.summary
    assert cls.version


@pytest.mark.parametrize("name", walked(lambda name: name in ALIKE or name == "multiple-js"))
@pytest.mark.parametrize("api", ["chat", pytest.param("completions", marks=pytest.mark.slow)])  # test_check has it too
def test_the_whole_path_with_the_scripted_candidates(name: str, api: str) -> None:
    needs_tools_of(name)
    options: dict[str, Any] = {
        "api": api,
        "data": rows_of(name),
        "allow_code_execution": True,
        "limit": 20,
        "fim": "starcoder",
    }
    options |= {"settings": settings_of(name), "workers": 1}  # one is started sooner than two
    right = proctor.evaluate(f"code/{name}", "scripted/oracle", **options)
    assert right.run.errors == 0
    assert all(record.score is not None and record.score.value == 1 for record in right.records())
    blank = proctor.evaluate(f"code/{name}", "scripted/blank", **options)
    assert all(record.score is not None and not record.score.value for record in blank.records())


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_every_variant_asks(api: str) -> None:
    for name in TASK_REGISTRY:
        if name.startswith(VARIANTS):
            task = create_task(TASK_REGISTRY[name], f"code/{name}", settings_of(name), data=rows_of(name))
            config = build_config({"task": f"code/{name}", "model": "m", "api": api, "fim": "starcoder"})
            samples = list(task.samples(config))
            assert samples, name
            assert len({sample.id for sample in samples}) == len(samples), name
