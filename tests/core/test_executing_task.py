"""Tasks that run programs: the core opens the sandbox and stores the isolation level."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Command

EXECUTING = """
from collections.abc import Iterator, Sequence
from proctor import Output, RunConfig, Sample, Score, Task
from proctor.sandbox import Limits, Outcome, Program

class Doubling(Task):
    executes = True

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        for i in range(config.limit_start, config.limit_start + self.count(config)):
            solution = f"def f{i}(x): return x + {i}"
            yield Sample(id=f"double-{i}", index=i, input=f"Write f{i}.", target=solution, metadata={})

    def count(self, config: RunConfig) -> int:
        return config.limit or 6

    async def judge(self, sample: Sample, outputs: Sequence[Output]) -> Score:
        program = Program(source=outputs[0].text, tests=f"assert f{sample.index}(1) == {sample.index} + 1")
        verdict = await self.sandbox.judge(program, Limits())
        return Score(float(verdict.passed), verdict.outcome, outputs[0].text)
"""


@pytest.fixture
def doubling(tmp_path: Path) -> str:
    path = tmp_path / "doubling.py"
    path.write_text(EXECUTING)
    return f"{path}:Doubling"


def test_run_stores_the_isolation_level(proctor: Command, doubling: str) -> None:
    done = proctor("run", doubling, "--allow-code-execution", "--model", "scripted/oracle", "--workers", "1", "--json")
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert run["metrics"]["accuracy"]["value"] == 1
    assert run["outcomes"] == {"passed": 6}
    assert run["sandbox"].split(":")[0] in ("full", "confined")
    assert run["provenance"]["sandbox"] == run["sandbox"]


def test_wrong_programs_are_failures_not_errors(proctor: Command, doubling: str) -> None:
    done = proctor("run", doubling, "--allow-code-execution", "--model", "scripted/blank", "--json")
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert run["metrics"]["accuracy"]["value"] == 0
    assert run["errors"] == 0


def test_check_judges_in_the_sandbox(proctor: Command, doubling: str) -> None:
    done = proctor("check", doubling)
    assert "the right answer gets full marks" in done.stdout
    assert "✗" not in done.stdout.replace("another seed makes other samples", ""), done.stdout


def test_task_without_programs_opens_no_sandbox(proctor: Command, adding: str) -> None:
    done = proctor("run", adding, "--model", "scripted/oracle", "--json")
    assert "sandbox" not in json.loads(done.stdout)["runs"][0]


def test_missing_container_engine_is_named(proctor: Command, doubling: str) -> None:
    done = proctor(
        "run", doubling, "--allow-code-execution", "--model", "scripted/oracle", "--sandbox", "podman", PATH="/nowhere"
    )
    assert done.returncode == 2
    assert "podman" in done.stderr


def test_programs_need_allow_code_execution(proctor: Command, doubling: str) -> None:
    done = proctor("run", doubling, "--model", "scripted/oracle")
    assert done.returncode == 2
    assert "--allow-code-execution" in done.stderr
    assert "Traceback" not in done.stderr


def test_generation_only_needs_no_permission_and_resume_judges(proctor: Command, doubling: str) -> None:
    done = proctor("run", doubling, "--model", "scripted/oracle", "--generation-only", "--json")
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert run["n"] == 0
    later = proctor("resume", run["id"], "--no-generation-only", "--allow-code-execution", "--json")
    assert later.returncode == 0, later.stderr
    (run,) = json.loads(later.stdout)["runs"]
    assert run["outcomes"] == {"passed": 6}
