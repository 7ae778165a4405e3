"""Every code task keeps the promises of an exam, on a few rows of the form that its real data set has.

The rows are in tests/code_rows, one file for a task or for a family of tasks, of which one is then examined in full; a
task without a file has its data with it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import proctor
from proctor import catalog
from proctor.check import check_task
from proctor.code import TASK_REGISTRY
from proctor.config import build_config
from proctor.task import create_task

ROWS = Path(__file__).parent / "code_rows"
# Tasks that one function makes share their rows.
FAMILIES = {
    "apps": "apps-introductory",
    "ds1000": "ds1000-numpy-completion",
    "pal-gsm8k": "pal-gsm8k-greedy",
    "pal-gsmhard": "pal-gsmhard-majority_voting",
    "perturbed-humaneval": "perturbed-humaneval-func_name-num_seeds_2",
}


def family_of(name: str) -> str | None:
    return next((family for family in FAMILIES if name.startswith(f"{family}-")), None)


def rows_of(name: str) -> str | None:
    file = ROWS / f"{family_of(name) or name}.jsonl"
    return str(file) if file.exists() else None


EXAMINED = [name for name in TASK_REGISTRY if FAMILIES.get(family_of(name) or "", name) == name]


@pytest.mark.parametrize("name", EXAMINED)
def test_check(name: str):
    findings = check_task(f"code/{name}", {}, n=20, data=rows_of(name))
    assert [f"{finding.claim}: {finding.fault}" for finding in findings if not finding.holds] == []


@pytest.mark.parametrize("name", TASK_REGISTRY)
def test_described_and_versioned(name: str):
    cls = catalog.task_class(f"code/{name}")
    assert cls.summary
    assert cls.version


@pytest.mark.parametrize("name", EXAMINED)
@pytest.mark.parametrize("api", ["chat", "completions"])
def test_the_whole_path_with_the_scripted_candidates(name: str, api: str):
    options = {"api": api, "data": rows_of(name), "allow_code_execution": True, "limit": 20, "fim": "starcoder"}
    right = proctor.evaluate(f"code/{name}", "scripted/oracle", **options)
    assert right.run.errors == 0
    assert all(record.score is not None and record.score.value == 1 for record in right.records())
    blank = proctor.evaluate(f"code/{name}", "scripted/blank", **options)
    assert all(record.score is not None and not record.score.value for record in blank.records())


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_every_member_of_a_family_asks(api: str):
    for name in TASK_REGISTRY:
        if family_of(name):
            task = create_task(TASK_REGISTRY[name], f"code/{name}", {}, data=rows_of(name))
            config = build_config({"task": f"code/{name}", "model": "m", "api": api, "fim": "starcoder"})
            samples = list(task.samples(config))
            assert samples, name
            assert len({sample.id for sample in samples}) == len(samples), name
