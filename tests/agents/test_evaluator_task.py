"""Evaluators as exams of the core: records, outcomes, resume, and nothing left behind."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from test_referee_faults import RefereeProcesses, descendants

from conftest import Command
from helpers import faulty_agents as fa
from helpers.paths import HELPERS
from proctor import evaluate
from proctor.agents import Task
from proctor.agents.runtime.hosting.recipe import recipe_of
from proctor.agents.runtime.session import NO_DISPLAY, EpisodeSession, RecordingOptions
from proctor.core.errors import UsageError
from proctor.core.types import Sample
from proctor.store import open_store

FILE = str(HELPERS / "faulty_agents.py")


def exam(evaluator: str, agent: str, episodes: int, **options: Any) -> Any:
    settings = {"timeout": 30.0} | options.pop("settings", {})
    return evaluate(f"{FILE}:{evaluator}", agent=f"{FILE}:{agent}", limit=episodes, settings=settings, **options)


def test_evaluator_is_a_task() -> None:
    report = exam("Watching", "Finishing", 4, parallel=2)
    assert report.run.n == 4
    assert report.run.candidate == f"{FILE}:Finishing"
    assert report.run.outcomes == {"completed": 4}
    assert report.run.metrics["success"].value == 1.0
    records = list(report.records())
    assert len({record.sample.metadata["task"]["task_id"] for record in records}) == 4
    attempt = json.loads(records[0].outputs[0].text)
    assert attempt["actions"] == 3
    assert attempt["outcome"] == "completed"
    logs = sorted(Path(os.environ["PROCTOR_STORE"]).glob("artifacts/*/*/events.jsonl"))
    events = [json.loads(line) for line in logs[0].read_text().splitlines()]
    kinds = ["episode", "task", "set_up", "started", "over", "agent_stopped", "result"]
    assert [event["event"] for event in events] == kinds
    assert [event["ns"] for event in events] == sorted(event["ns"] for event in events)
    assert len(logs) == 4


def test_the_same_seed_sets_the_same_tasks() -> None:
    def tasks(seed: int) -> list[Any]:
        return [record.sample.metadata["task"] for record in exam("Watching", "Finishing", 1, seed=seed).records()]

    first, again, other = map(tasks, (1, 1, 2))
    assert first == again
    assert first != other


def test_faults_are_counted_beside_the_score() -> None:
    report = exam("Watching", "CrashingEverySecond", 4)
    assert report.run.outcomes == {"agent_crash": 2, "completed": 2}
    assert report.run.metrics["success"].value == 1.0
    assert report.run.metrics["success"].n == 2
    assert report.run.metrics["success_if_faults_fail"].value == 0.5
    assert report.run.errors == 0


def test_faults_of_the_env_are_retried_and_all_attempts_are_stored() -> None:
    report = exam("SetupRaises", "Finishing", 1)
    (record,) = report.records()
    assert [output.finish for output in record.outputs] == ["env_crash", "env_crash"]
    assert record.score is not None
    assert record.score.value is None
    assert record.score.outcome == "env_crash"
    assert "the game does not start" in record.score.why


def test_killed_run_resumes_without_repeating_episodes(tmp_path: Path, proctor: Command) -> None:
    log = tmp_path / "episodes"
    os.mkfifo(tmp_path / "gate")
    environment = os.environ | {"EPISODES": str(log), "GATE": str(tmp_path / "gate")}
    command = [sys.executable, "-m", "proctor", "run", f"{FILE}:Watching", "--agent", f"{FILE}:Logging"]
    with subprocess.Popen([*command, "--episodes", "4", "--quiet"], env=environment) as process:
        with open(tmp_path / "gate") as gate:  # opened by the third episode, when two are done
            gate.read(1)
        while len(finished()) < 2:  # stored a moment later
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert log.read_text() == "xxx"
    done = proctor("resume", "latest", "--json", EPISODES=str(log))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["runs"][0]["n"] == 4
    assert log.read_text() == "xxx" + "xx", "no finished episode was played again"


def test_resume_scores_a_played_episode_without_replaying_it(proctor: Command) -> None:
    command = ["run", f"{FILE}:Watching", "--agent", f"{FILE}:Finishing", "--episodes", "2"]
    assert proctor(*command, "--generation-only").returncode == 0
    assert finished() == []
    assert proctor("resume", "latest", "--no-generation-only").returncode == 0
    assert len(finished()) == 2
    store = Path(os.environ["PROCTOR_STORE"])
    assert len(list(store.glob("artifacts/*/0*/events.jsonl"))) == 2, "one attempt each"


def finished() -> list[str]:
    store = open_store()
    try:
        return [record.sample.id for record in store.records(store.run("latest")) if record.finished]
    finally:
        store.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--agent", f"{FILE}:Watching"], "is not an Agent"),
        (["--agent", f"{FILE}:Nobody"], "has no 'Nobody'"),
        (["--agent", "nowhere.py:A"], "there is no file"),
        (["--agent", "random"], "--agent module:Class"),
        (["--model", "scripted/blank"], "task for agents"),
        ([], "--agent module:Class"),
        (["--model", "scripted/blank", "--agent", f"{FILE}:Good"], "a run needs one of them"),
        (["--agent", f"{FILE}:Good", "--set", "timeout=0"], "timeout"),
        (["--agent", f"{FILE}:Good", "--set", "timeout=inf"], "timeout"),
        (["--agent", f"{FILE}:Good", "--parallel", "0"], "parallel"),
    ],
)
def test_bad_input(proctor: Command, arguments: list[str], said: str) -> None:
    done = proctor("run", f"{FILE}:Watching", "--episodes", "1", *arguments)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_hanging_agent_is_stopped_soon_after_its_timeout(tmp_path: Path) -> None:
    """It is ended by force: nobody waits for what would never come. A busy machine may make some of them late."""

    async def overshoots() -> list[float]:
        processes = RefereeProcesses(tmp_path, fa.Sleeping, fa.Watching)
        try:
            return [(await processes.evaluate(0.1))[1].overshoot for _ in range(2)]
        finally:
            await processes.close()

    assert min(asyncio.run(overshoots())) <= 1.0


@pytest.mark.parametrize("episodes", [100, pytest.param(1_000, marks=pytest.mark.slow)])
def test_hundreds_of_episodes_leave_nothing_behind(tmp_path: Path, episodes: int) -> None:
    async def play(processes: RefereeProcesses, times: int) -> None:
        for _ in range(times):
            result, _ = await processes.evaluate(60)
            assert result.outcome == "completed"

    def counts() -> tuple[int, int, int]:
        return threading.active_count(), len(os.listdir("/proc/self/fd")), len(descendants())

    async def all_of_them() -> None:
        processes = RefereeProcesses(tmp_path, fa.Finishing, fa.Watching)
        try:
            await play(processes, 3)
            before, inside = counts(), await processes.inside()
            await play(processes, episodes)
            assert counts() == before
            after = await processes.inside()
            assert [files for _, files in after] == [files for _, files in inside]
            # Beside the main thread that of the last call: an agent is frozen before it can end.
            assert all(threads <= 2 for threads, _ in after), "nor inside the processes of agent and evaluator"
        finally:
            await processes.close()

    nothing = counts()
    asyncio.run(all_of_them())
    assert counts() == nothing


def test_a_recording_whose_start_is_cancelled_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    class FakeRecording:
        def close(self) -> str:
            closed.set()
            return "the video is short"

    def start(self: EpisodeSession, folder: Path) -> FakeRecording:
        entered.set()
        go_on.wait()
        return FakeRecording()

    async def play() -> None:
        task = Task(env_name="none", timeout=60)
        session = EpisodeSession(
            recipe_of(fa.Good), recipe_of(fa.Watching), NO_DISPLAY, RecordingOptions(), tmp_path / "session"
        )
        playing = asyncio.create_task(session.play(task, tmp_path / "episode", Sample("0-0", 0, "")))
        await asyncio.to_thread(entered.wait)
        for _ in range(10):
            playing.cancel()
            await asyncio.sleep(0)
        has_left = playing.done()
        go_on.set()
        assert not has_left
        with pytest.raises(asyncio.CancelledError):
            await playing
        await session.close()

    monkeypatch.setattr(EpisodeSession, "_start_recording", start)
    asyncio.run(play())
    assert closed.is_set()


def test_model_cannot_play_a_task_without_a_window() -> None:
    with pytest.raises(UsageError, match="task for agents"):
        evaluate(f"{FILE}:Watching", "scripted/blank", limit=1)
