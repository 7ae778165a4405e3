"""A mark cannot be bought, lost or forged: what is lost, who ends a task, what a success is, what has a limit."""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from conftest import Command
from helpers import referee_sides as rs
from helpers.paths import HELPERS
from proctor import evaluate
from proctor.agents import EpisodeOutcome, EvaluationResult, Task
from proctor.agents.runtime.agent_client import LocalAgentClient
from proctor.agents.runtime.attempt import Attempts
from proctor.agents.runtime.clock import Clock
from proctor.agents.runtime.evaluator_client import EvaluatorClient
from proctor.agents.runtime.hosting.recipe import Recipe, recipe_of
from proctor.agents.runtime.limits import EpisodeLimits
from proctor.agents.runtime.referee import Referee
from proctor.agents.success import SuccessError, read_success
from proctor.analysis.report import Report

FILE = str(HELPERS / "referee_sides.py")
slow = pytest.mark.slow
T = TypeVar("T")


def play(evaluator: str, agent: str, episodes: int = 1, **settings: Any) -> Report:
    told = {"timeout": 60.0, "check_env_interval_seconds": 0.05} | settings
    return evaluate(f"{FILE}:{evaluator}", agent=f"{FILE}:{agent}", limit=episodes, settings=told)


def finishes(report: Report) -> list[list[str]]:
    return [[output.finish for output in record.outputs] for record in report.records()]


def why(report: Report) -> list[str]:
    return [record.score.why for record in report.records() if record.score is not None]


async def within(seconds: float, work: Coroutine[Any, Any, T]) -> T:
    async with asyncio.timeout(seconds):
        return await work


def judge_twice(
    folder: Path,
    agent: Recipe,
    evaluator: Recipe,
    limits: EpisodeLimits | None = None,
    agent_limits: EpisodeLimits | None = None,
    seconds: float = 600.0,
) -> list[EvaluationResult]:
    """Two tasks, one after the other: the second shows that the first has left everything in order.

    Nothing here waits for the timeout of the task.
    """

    async def all_of_them() -> list[EvaluationResult]:
        evaluator_client = EvaluatorClient(evaluator, folder / "evaluator.log", limits=limits)
        agent_client = LocalAgentClient(agent, folder / "agent.log", limits=agent_limits or limits)
        task = Task(env_name="none", timeout=seconds, check_env_interval_seconds=0.05)
        try:
            return [await within(100, Referee(evaluator_client, agent_client).evaluate(task)) for _ in range(2)]
        finally:
            await agent_client.close()
            await evaluator_client.close()

    return asyncio.run(all_of_them())


# No attempt is made again that the agent has seen anything of


@pytest.mark.parametrize(
    ("evaluator", "agent", "outcome", "said"),
    [
        ("Steps", "Claiming", "agent_crash", "there is nothing left to play"),
        ("Steps", "KillingTheEvaluator", "judge_error", "killed by signal 9"),
        pytest.param("NoFileNoScore", "TakingTheScore", "judge_error", "steps.txt", marks=slow),
    ],
)
def test_agent_that_loses_its_environment_gets_no_other_attempt(
    evaluator: str, agent: str, outcome: str, said: str
) -> None:
    report = play(evaluator, agent, episodes=2)
    assert finishes(report) == [[outcome], [outcome]]
    assert len(Path("attempts.txt").read_text().split()) == 2
    assert said in why(report)[0]
    assert report.metrics["success"].value is None
    assert report.metrics["success_if_faults_fail"].value == 0.0


@slow
def test_agent_stands_still_while_the_environment_is_set_up() -> None:
    """Else it could have what it does not like set up again, with another seed."""
    report = play("Delicate", "Meddling", episodes=2)
    assert finishes(report) == [["completed"], ["completed"]]


@slow
def test_episode_at_which_the_referee_stumbles_is_the_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(path: Path) -> None:
        raise OSError(f"nobody can read {path.name}")

    monkeypatch.setattr("proctor.agents.runtime.session.EpisodeLog", stumble)
    report = play("Steps", "Stepping", episodes=2)
    assert finishes(report) == [["judge_error"], ["judge_error"]]
    assert why(report)[0] == "the referee failed: OSError: nobody can read events.jsonl"
    assert report.metrics["success_if_faults_fail"].value == 0.0


@slow
@pytest.mark.parametrize("agent", ["Burying", "Boasting"])
def test_what_an_agent_says_of_itself_is_not_believed(agent: str) -> None:
    report = play("Steps", agent, episodes=2)
    assert finishes(report) == [["completed"], ["completed"]]
    for record in report.records():
        attempt = json.loads(record.outputs[0].text)
        assert attempt["actions"] <= 3
        assert attempt["lags"] == {}


def test_what_fails_before_the_agent_begins_is_tried_again_with_another_seed() -> None:
    report = play("NoSetUpAtFirst", "Stepping")
    assert finishes(report) == [["env_crash", "completed"]]
    first, second = Path("attempts.txt").read_text().split()
    assert first != second
    (record,) = report.records()
    told = [json.loads(output.text) for output in record.outputs]
    assert [(str(x["seed"]), x["by_agent"]) for x in told] == [(first, False), (second, False)]
    assert report.metrics["lost_env_crash"].value == 1
    assert "lost_env_crash" in str(report)
    assert report.metrics["success_if_faults_fail"].value == 1.0


def test_rule_for_another_attempt() -> None:
    def number(*ends: tuple[EpisodeOutcome, bool, bool], most: int = 3) -> int:
        """Attempts that are made when they end so."""
        attempts = Attempts(most)
        return next((i for i, end in enumerate(ends, 1) if not attempts.should_retry(*end)), len(ends) + 1)

    lost, seen, cut = (
        (EpisodeOutcome.ENV_CRASH, False),
        (EpisodeOutcome.JUDGE_ERROR, True),
        (EpisodeOutcome.STOPPED, False),
    )
    assert number((*lost, False), (*lost, False), (*lost, False)) == 3
    assert number((*seen, False)) == 1
    assert number((*lost, False), most=1) == 1
    assert number((*cut, True), (*lost, False), most=1) == 2, "a run that was cut short is nobody's fault"
    assert [number((outcome, False, False)) for outcome in EpisodeOutcome if outcome.is_play] == [1, 1]


def test_episode_that_was_under_way_when_the_run_was_killed_has_another_seed(proctor: Command) -> None:
    """Else an agent that fares badly could kill the run, and have its episode back when that is resumed."""
    os.mkfifo("gate")
    command = [sys.executable, "-m", "proctor", "run", f"{FILE}:Steps", "--agent", f"{FILE}:Waiting", "--quiet"]
    with subprocess.Popen([*command, "--episodes", "2"]) as process, open("gate") as gate:
        gate.read(1)
        process.send_signal(signal.SIGKILL)
        gate.read()  # until the agent is gone, too
    Path("gate").unlink()
    done = proctor("resume", "latest", "--json")
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert run["outcomes"] == {"completed": 2}
    assert run["metrics"]["lost_stopped"]["value"] == 1
    assert run["metrics"]["success_if_faults_fail"]["value"] == 1.0
    seeds = Path("attempts.txt").read_text().split()
    assert len(set(seeds)) == 3


# The first cause counts


def test_agent_that_raises_has_not_played_even_if_the_game_ends_meanwhile(tmp_path: Path) -> None:
    for result in judge_twice(tmp_path, recipe_of(rs.RaisingWhileTheGameEnds), recipe_of(rs.Steps)):
        assert result.outcome is EpisodeOutcome.AGENT_CRASH, result.notes
        assert "NameError: name 'presss' is not defined" in result.notes


def test_agent_that_raises_after_the_end_has_played(tmp_path: Path) -> None:
    for result in judge_twice(tmp_path, recipe_of(rs.RaisingAfterTheEnd), recipe_of(rs.Steps)):
        assert result.outcome is EpisodeOutcome.COMPLETED, result.notes


# What a success is


def test_evaluator_that_gives_no_success_is_a_judge_error_that_is_named() -> None:
    report = play("Lazy", "Stepping", episodes=5)
    assert report.run.outcomes == {"completed": 1, "judge_error": 4}
    assert (report.metrics["success"].value, report.metrics["success"].n) == (1.0, 1)
    assert (report.metrics["success_if_faults_fail"].value, report.metrics["success_if_faults_fail"].n) == (0.2, 5)
    said = why(report)[1:]
    wanted = ("success is missing", "success is nan", "success is 1.5", "'yes', of type str")
    assert [words for text, words in zip(said, wanted, strict=True) if words not in text] == []


@slow
def test_numbers_of_numpy_are_numbers_and_what_has_no_mean_is_left_out() -> None:
    report = play("Exotic", "Stepping")
    assert report.metrics["success"].value == 1.0
    assert report.metrics["share"].value == 0.5
    assert "ratio" not in report.metrics
    assert "the metric ratio is nan" in why(report)[0]
    assert "the metric row is left out: TypeError" in why(report)[0]


def test_tasks_without_success_say_so() -> None:
    report = play("Unjudged", "Stepping")
    assert report.run.outcomes == {"played": 1}
    assert report.metrics["success"].value is None
    assert report.metrics["success_if_faults_fail"].value is None
    assert report.metrics["steps"].value == 3


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.01, 1.01, 2, None, "True", [1], {}])
def test_what_is_no_success(value: Any) -> None:
    for required in (True, False):
        with pytest.raises(SuccessError, match="success is"):
            read_success({"success": value}, required)


def test_what_is_a_success() -> None:
    given = (True, False, 0, 1, 0.25)
    assert [read_success({"success": value}) for value in given] == [1.0, 0.0, 0.0, 1.0, 0.25]
    assert read_success({}, required=False) is None


# What is raised to end a program ends a task at once


def rows(hooks: dict[str, EpisodeOutcome]) -> list[Any]:
    quick = {("_play_env", "KeyboardInterrupt"), ("_check_env_continue", "OwnError")}
    return [
        pytest.param(hook, error, outcome, marks=() if (hook, error) in quick else slow)
        for hook, outcome in hooks.items()
        for error in rs.ERRORS
    ]


@pytest.mark.parametrize(("hook", "error", "outcome"), rows(rs.AGENT_HOOKS))
def test_hook_of_an_agent_that_raises_no_exception(
    tmp_path: Path, hook: str, error: str, outcome: EpisodeOutcome
) -> None:
    agent = recipe_of(rs.RaisingAgent, (hook, error))
    for result in judge_twice(tmp_path, agent, recipe_of(rs.RaisingEvaluator, ("", ""))):
        assert result.outcome is outcome, result.notes
        assert error in result.notes


@pytest.mark.parametrize(("hook", "error", "outcome"), rows(rs.EVALUATOR_HOOKS))
def test_hook_of_an_evaluator_that_raises_no_exception(
    tmp_path: Path, hook: str, error: str, outcome: EpisodeOutcome
) -> None:
    evaluator = recipe_of(rs.RaisingEvaluator, (hook, error))
    for result in judge_twice(tmp_path, recipe_of(rs.RaisingAgent, ("", "")), evaluator):
        assert result.outcome is outcome, result.notes
        assert error in result.notes


@slow
@pytest.mark.parametrize("error", rs.ERRORS)
@pytest.mark.parametrize("hook", ["_pause_environment", "_resume_environment", "_close_environment"])
def test_environment_that_raises_no_exception_when_it_is_to_wait(tmp_path: Path, hook: str, error: str) -> None:
    async def turned() -> None:
        evaluator_client = EvaluatorClient(
            recipe_of(rs.RaisingEvaluator, (hook, error)), tmp_path / "evaluator.log", clock="paused"
        )
        agent_client = LocalAgentClient(recipe_of(rs.Pensive), tmp_path / "agent.log")
        clock = agent_client.clock = Clock(evaluator_client, 600)
        try:
            task = Task(env_name="none", timeout=600)
            result = await within(100, Referee(evaluator_client, agent_client, clock=clock).evaluate(task))
        finally:
            await agent_client.close()
            await within(100, evaluator_client.close())
        wanted = EpisodeOutcome.COMPLETED if hook == "_close_environment" else EpisodeOutcome.JUDGE_ERROR
        assert result.outcome is wanted, result.notes

    asyncio.run(turned())


# Limits


@pytest.mark.slow
def test_deadlines_are_settings(tmp_path: Path) -> None:
    limits = EpisodeLimits(setup_timeout=0.3)
    for result in judge_twice(tmp_path, recipe_of(rs.Stepping), recipe_of(rs.SlowToSetUp), limits):
        assert result.outcome is EpisodeOutcome.ENV_CRASH
        assert "did not return within 0.3 s" in result.notes
    hasty = EpisodeLimits(startup_timeout=1.5)
    for result in judge_twice(tmp_path, recipe_of(rs.SlowToMake), recipe_of(rs.Steps), agent_limits=hasty):
        assert result.outcome is EpisodeOutcome.AGENT_CRASH
        assert "was not ready after 1.5 s" in result.notes


@pytest.mark.slow
def test_check_that_hangs_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.agents.runtime.evaluator_client.SETTLING", 0.1)
    for result in judge_twice(tmp_path, recipe_of(rs.Endless), recipe_of(rs.Blind), seconds=1.0):
        assert result.outcome is EpisodeOutcome.TIMEOUT
        assert "_check_env_continue has not returned for" in result.notes


@pytest.mark.parametrize(
    ("agent", "evaluator", "outcome"),
    [
        (rs.Bloating, rs.Steps, EpisodeOutcome.AGENT_CRASH),
        pytest.param(rs.BloatingChild, rs.Steps, EpisodeOutcome.AGENT_CRASH, marks=slow),
        pytest.param(rs.Endless, rs.BloatingGame, EpisodeOutcome.ENV_CRASH, marks=slow),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_memory_has_a_limit(tmp_path: Path, agent: type, evaluator: type, outcome: EpisodeOutcome) -> None:
    for result in judge_twice(tmp_path, recipe_of(agent), recipe_of(evaluator), EpisodeLimits(memory=0.3)):
        assert result.outcome is outcome, result.notes
        assert "used more than 0.3 GiB of memory" in result.notes
