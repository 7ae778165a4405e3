"""The referee against every fault there is, with real processes."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from helpers import faulty_agents as fa
from proctor.agents import EpisodeOutcome, EvaluationResult, Task
from proctor.agents.constants import TIMEOUTS
from proctor.agents.runtime.agent_client import ROLE, LocalAgentClient
from proctor.agents.runtime.clock import Clock
from proctor.agents.runtime.evaluator_client import EvaluatorClient
from proctor.agents.runtime.hosting.guarded import _is_gone
from proctor.agents.runtime.hosting.guardian import descendants as guarded_by
from proctor.agents.runtime.hosting.process import HostProcess
from proctor.agents.runtime.hosting.recipe import recipe_of
from proctor.agents.runtime.limits import EpisodeLimits
from proctor.agents.runtime.locking import EnvLock
from proctor.agents.runtime.referee import Referee, _task_for_agent

LONG = 60.0  # seconds: for what ends by itself
SHORT = 2.0  # for what ends when time is up: an agent that gets its turn only now and then still does not hang
HANGING = 0.4  # for what never does anything

slow = pytest.mark.slow


class RefereeProcesses:
    """One judge and one player, for one evaluation after the other."""

    def __init__(self, folder: Path, agent: type, evaluator: type, limits: EpisodeLimits | None = None) -> None:
        lock = {"PROCTOR_ENV_LOCK": str(folder / "lock")}
        self.evaluator_client = EvaluatorClient(recipe_of(evaluator), folder / "evaluator.log", lock, limits=limits)
        self.agent_client = LocalAgentClient(recipe_of(agent), folder / "agent.log", lock)

    async def evaluate(self, seconds: float = LONG) -> tuple[EvaluationResult, Referee]:
        referee = Referee(self.evaluator_client, self.agent_client)
        task = Task(env_name="none", timeout=seconds, check_env_interval_seconds=0.05)
        return await referee.evaluate(task), referee

    async def inside(self) -> list[tuple[int, int]]:
        """Threads and open files of the two processes."""
        found = []
        for process in (await self.agent_client._live_process(), await self.evaluator_client.prepare()):
            (pid,) = guarded_by(process.pid)
            found.append((len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd"))))
        return found

    async def close(self) -> None:
        await self.agent_client.close()
        await self.evaluator_client.end()


def descendants() -> set[int]:
    """Everything that lives below this process, by the kernel's own account."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path(f"/proc/{entry}/stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents[int(entry)] = int(fields[1])
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return below - {os.getpid()}


def living_with(variable: str) -> set[int]:
    """Processes with this in their environment, wherever they have gone."""
    found = set()
    for entry in os.listdir("/proc"):
        with suppress(OSError):
            if entry.isdigit() and variable.encode() in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                found.add(int(entry))
    return found


def _parent(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    return 0


@pytest.fixture(autouse=True)
def nobody_left(tmp_path: Path) -> Iterator[None]:
    before = descendants()
    yield

    def left() -> set[int]:
        # A server that other tests have running may have started something: that is its own affair.
        return {pid for pid in descendants() - before if _parent(pid) not in before}

    deadline = time.monotonic() + 60
    while left():  # whoever is about to end has no parent that could be seen
        assert time.monotonic() < deadline, "a process was left over"
        time.sleep(0.01)
    assert not living_with(f"PROCTOR_ENV_LOCK={tmp_path / 'lock'}"), "a process was left over, and is nobody's child"


def run(
    folder: Path,
    agent: type,
    evaluator: type,
    seconds: float = LONG,
    times: int = 2,
    limits: EpisodeLimits | None = None,
) -> list[tuple[EvaluationResult, Referee]]:
    async def all_of_them() -> list[tuple[EvaluationResult, Referee]]:
        processes = RefereeProcesses(folder, agent, evaluator, limits)
        try:
            async with asyncio.timeout(600):
                return [await processes.evaluate(seconds) for _ in range(times)]
        finally:
            await processes.close()

    return asyncio.run(all_of_them())


PLAY = [
    (fa.Good, fa.Watching, SHORT, EpisodeOutcome.TIMEOUT, "time was up"),
    (fa.Good, fa.Ending, LONG, EpisodeOutcome.COMPLETED, "the evaluator saw the end"),
    (fa.Good, fa.CheckRaises, SHORT, EpisodeOutcome.TIMEOUT, "the judge cannot see"),
]
MORE_PLAY = [
    (fa.Good, fa.BlindThenTimer, LONG, EpisodeOutcome.COMPLETED, "the evaluator saw the end"),
    (fa.Flooding, fa.Watching, LONG, EpisodeOutcome.COMPLETED, "the agent finished"),
    (fa.Finishing, fa.Watching, LONG, EpisodeOutcome.COMPLETED, "the agent finished"),
    (fa.Thinking, fa.Watching, SHORT, EpisodeOutcome.TIMEOUT, "time was up"),
    (fa.Sleeping, fa.Ending, LONG, EpisodeOutcome.COMPLETED, "the evaluator saw the end"),
    (fa.Good, fa.EndingByTimer, LONG, EpisodeOutcome.COMPLETED, "the evaluator saw the end"),
    (fa.Good, fa.CheckHangs, SHORT, EpisodeOutcome.TIMEOUT, "time was up"),
    (fa.Forking, fa.Watching, SHORT, EpisodeOutcome.TIMEOUT, "time was up"),
]


@pytest.mark.parametrize(
    ("agent", "evaluator", "seconds", "outcome", "notes"),
    [*PLAY, *(pytest.param(*row, marks=slow) for row in MORE_PLAY)],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_play_is_scored(
    tmp_path: Path, agent: type, evaluator: type, seconds: float, outcome: EpisodeOutcome, notes: str
) -> None:
    for result, referee in run(tmp_path, agent, evaluator, seconds):
        assert result.outcome is outcome, result.notes
        assert result.metrics["success"] is True
        assert notes in result.notes
        assert 0 < referee.elapsed <= seconds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "seconds", "outcome"),
    [
        (fa.StoppingItsGuardian, HANGING, EpisodeOutcome.AGENT_HANG),
        (fa.StoppingItsGuardianPlaying, SHORT, EpisodeOutcome.TIMEOUT),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_agent_is_frozen_though_its_guardian_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: type, seconds: float, outcome: EpisodeOutcome
) -> None:
    monkeypatch.setattr("proctor.agents.runtime.hosting.process.GUARDIAN_INTERVAL", LONG)
    for result, _ in run(tmp_path, agent, fa.Watching, seconds):
        assert result.outcome is outcome, result.notes


def test_what_an_agent_raises_on_its_way_out_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "proctor.agents.runtime.agent_client.TIMEOUTS", msgspec.structs.replace(TIMEOUTS, STOPPING=LONG)
    )
    for result, _ in run(tmp_path, fa.RaisingAfter, fa.Ending):
        assert result.outcome is EpisodeOutcome.COMPLETED
        assert result.metrics["success"] is True
        assert "on the way out" in result.notes


def test_an_agent_that_the_task_does_not_reach_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.agents.runtime.agent_client.TIMEOUTS", msgspec.structs.replace(TIMEOUTS, STARTING=0.0))
    ((result, _),) = run(tmp_path, fa.Good, fa.Watching, times=1)
    assert result.outcome is EpisodeOutcome.AGENT_CRASH
    assert "did not begin within 0 s" in result.notes


FAULTS = [
    (fa.Sleeping, fa.Watching, HANGING, EpisodeOutcome.AGENT_HANG, "never finished its first step"),
    (fa.KillingItsGuardian, fa.Watching, LONG, EpisodeOutcome.AGENT_CRASH, "the process was ended"),
    (fa.Exiting, fa.Watching, LONG, EpisodeOutcome.AGENT_CRASH, "exited with status 3"),
    (fa.Good, fa.ScoreRaises, LONG, EpisodeOutcome.JUDGE_ERROR, "the judge stumbled"),
    (fa.Good, fa.CheckDies, LONG, EpisodeOutcome.JUDGE_ERROR, "exited with status 5"),
    (fa.Good, fa.StoppedByHand, LONG, EpisodeOutcome.STOPPED, "stopped by hand"),
]
MORE_FAULTS = [
    (fa.Good, fa.WindowGone, LONG, EpisodeOutcome.ENV_CRASH, "the window is gone"),
    (fa.SpeakingInTongues, fa.Watching, LONG, EpisodeOutcome.AGENT_CRASH, "sent an invalid ending"),
    (
        fa.StoppingItsGuardianPlaying,
        fa.Watching,
        LONG,
        EpisodeOutcome.AGENT_CRASH,
        "its guardian process was stopped",
    ),
    (fa.SleepingLater, fa.Watching, SHORT, EpisodeOutcome.AGENT_HANG, "in one call of _play_env"),
    (fa.Unmakeable, fa.Watching, LONG, EpisodeOutcome.AGENT_CRASH, "no model to be had"),
    (fa.Good, fa.SetupRaises, LONG, EpisodeOutcome.ENV_CRASH, "the game does not start"),
    (fa.Raising, fa.Watching, LONG, EpisodeOutcome.AGENT_CRASH, "RuntimeError: the agent stumbled"),
    (fa.Spinning, fa.Watching, HANGING, EpisodeOutcome.AGENT_HANG, "never finished its first step"),
    (fa.HoldingOn, fa.TakingTheLock, HANGING, EpisodeOutcome.AGENT_HANG, "never finished its first step"),
    (fa.RaisingBefore, fa.Watching, LONG, EpisodeOutcome.AGENT_CRASH, "RuntimeError: the agent never began"),
    (fa.Quitting, fa.Watching, LONG, EpisodeOutcome.AGENT_CRASH, "SystemExit: 3"),
    (fa.Killed, fa.Watching, LONG, EpisodeOutcome.AGENT_CRASH, "killed by signal 9"),
    (fa.Good, fa.ScoreIsNone, LONG, EpisodeOutcome.JUDGE_ERROR, "must give an EvaluationResult"),
    (fa.Stopping, fa.Watching, LONG, EpisodeOutcome.STOPPED, ""),
]


@pytest.mark.parametrize(
    ("agent", "evaluator", "seconds", "outcome", "notes"),
    [*FAULTS, *(pytest.param(*row, marks=slow) for row in MORE_FAULTS)],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_a_fault_is_no_score(
    tmp_path: Path, agent: type, evaluator: type, seconds: float, outcome: EpisodeOutcome, notes: str
) -> None:
    for result, _ in run(tmp_path, agent, evaluator, seconds):  # twice: the next task starts, whatever became of it
        assert result.outcome is outcome, result.notes
        assert result.metrics == {}
        assert notes in result.notes


def test_a_judge_that_never_comes_to_a_verdict_is_made_anew(tmp_path: Path) -> None:
    for result, _ in run(tmp_path, fa.Good, fa.ScoreHangs, limits=EpisodeLimits(scoring_timeout=0.3)):
        assert result.outcome is EpisodeOutcome.JUDGE_ERROR
        assert "_score_task did not return within 0.3 s" in result.notes


def test_checks_that_hang_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.agents.runtime.evaluator_client.SETTLING", 0.1)

    async def threads() -> list[int]:
        processes = RefereeProcesses(tmp_path, fa.Good, fa.CheckHangs)
        try:
            found = []
            for _ in range(2):
                await processes.evaluate(HANGING)
                found.append((await processes.inside())[1][0])
            return found
        finally:
            await processes.close()

    assert max(asyncio.run(threads())) <= 2, "its own, and that of a call which is just ending"


def test_the_agent_is_made_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    run(tmp_path, fa.Noted, fa.SetupNoted)
    assert (tmp_path / "notes").read_text().split() == ["agent", "environment", "environment"]


def test_there_is_a_result_whatever_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def stumble(*_: object) -> None:
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr(LocalAgentClient, "start", stumble)
    for result, _ in run(tmp_path, fa.Good, fa.Watching):
        assert result.outcome is EpisodeOutcome.JUDGE_ERROR
        assert "nobody thought of this" in result.notes


def nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"in": found}
    return found


@pytest.mark.parametrize(
    "fields",
    [
        {"seed": 2**64},
        {"success_criteria": {"score": -(2**63) - 1}},
        {"success_criteria": {"text": "\ud800"}},
        {"task_description": "\udfff"},
        {"success_criteria": nested(60)},
        {"success_criteria": nested(100_000)},
    ],
    ids=["seed", "number", "text", "description", "deep", "very-deep"],
)
def test_a_task_that_cannot_be_carried_to_a_process_is_none(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Task(env_name="none", timeout=1, **fields)


def test_killing_again_and_again_and_at_once(tmp_path: Path) -> None:
    async def killed() -> tuple[EpisodeOutcome, EpisodeOutcome]:
        processes = RefereeProcesses(tmp_path, fa.Sleeping, fa.Watching)
        try:
            async with asyncio.timeout(600):
                agent_client = processes.agent_client
                await agent_client.start(Task(env_name="none", timeout=600))
                with pytest.MonkeyPatch.context() as patch:  # it does not stop by itself, and nobody freezes it
                    patch.setattr(
                        "proctor.agents.runtime.agent_client.TIMEOUTS", msgspec.structs.replace(TIMEOUTS, STOPPING=LONG)
                    )
                    _, ending, _, _ = await asyncio.gather(
                        agent_client.kill(), agent_client.stop(), agent_client.kill(), agent_client.settle()
                    )
                await asyncio.gather(
                    agent_client.kill(), agent_client.prepare(), agent_client.kill(), agent_client.prepare()
                )
                result, _ = await processes.evaluate(HANGING)
            return ending.outcome, result.outcome
        finally:
            await processes.close()

    assert asyncio.run(killed()) == (EpisodeOutcome.AGENT_CRASH, EpisodeOutcome.AGENT_HANG)


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 5, 8])
def test_a_start_that_is_given_up_leaves_nothing_open(tmp_path: Path, turns: int) -> None:
    """Whatever it waits for in that moment; what is left would fail the test when it is over."""

    async def given_up() -> None:
        starting = asyncio.create_task(HostProcess.start(ROLE, recipe_of(fa.Good), tmp_path / "agent.log"))
        for _ in range(turns):
            await asyncio.sleep(0)
        await cancel_again_and_again(starting)

    asyncio.run(given_up())


async def cancel_again_and_again(task: asyncio.Task[Any]) -> None:
    for _ in range(20):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task


def test_an_end_that_is_given_up_leaves_nothing_open(tmp_path: Path) -> None:
    async def given_up() -> None:
        process = await HostProcess.start(ROLE, recipe_of(fa.Good), tmp_path / "agent.log")
        ending = asyncio.create_task(process.end())
        await asyncio.sleep(0)
        await cancel_again_and_again(ending)
        assert not process.is_alive

    asyncio.run(given_up())


def wait_until_stopped(pid: int) -> None:
    while "T (stopped)" not in Path(f"/proc/{pid}/status").read_text():
        time.sleep(0.01)


def test_an_agent_that_ends_just_before_it_is_frozen_plays_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    freeze = HostProcess.freeze

    async def freeze_late(self: HostProcess) -> None:
        assert await self.is_idle(LONG)
        await freeze(self)

    monkeypatch.setattr(HostProcess, "freeze", freeze_late)
    monkeypatch.setattr("proctor.agents.runtime.agent_client.TIMEOUTS", msgspec.structs.replace(TIMEOUTS, STOPPING=0.0))
    for result, _ in run(tmp_path, fa.Thinking, fa.Watching, SHORT):
        assert (result.outcome, result.notes) == (EpisodeOutcome.TIMEOUT, "time was up")


def test_an_agent_is_frozen_even_if_its_guardian_is_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "proctor.agents.runtime.hosting.guardian.FREEZE", b"?"
    )  # here: the guardian waits for the real one
    monkeypatch.setattr("proctor.agents.runtime.hosting.process.ANSWERING", 10 * LONG)

    async def frozen() -> None:
        process = await HostProcess.start(ROLE, recipe_of(fa.Good), tmp_path / "agent.log")
        (pid,) = guarded_by(process.pid)
        freezing = asyncio.create_task(process.freeze())
        try:
            await asyncio.to_thread(wait_until_stopped, pid)
            assert not freezing.done(), "the guardian has not said that all of them stand still"
        finally:
            freezing.cancel()
            await process.end()

    asyncio.run(frozen())


def test_a_start_that_fails_leaves_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError):
        asyncio.run(HostProcess.start(ROLE, recipe_of(fa.Good), tmp_path / "agent.log"))


def test_whoever_went_on_without_the_lock_lets_go_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_ENV_LOCK", str(tmp_path / "lock"))
    lock = EnvLock()
    lock.timeout = 0.05
    held, done = threading.Event(), threading.Event()

    def hold() -> bool:
        with lock:
            held.set()
            done.wait(60)
            return is_locked()

    def is_locked() -> bool:
        with open(tmp_path / "lock") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    with ThreadPoolExecutor(1) as thread:
        holding = thread.submit(hold)
        assert held.wait(60)
        with lock, lock:
            assert is_locked()
        assert is_locked()
        done.set()
        assert holding.result(60)
    assert not is_locked()
    with lock, lock:
        assert is_locked()
    assert not is_locked()


def test_a_fault_of_the_agent_ends_the_evaluation_at_once(tmp_path: Path) -> None:
    async def timed() -> float:
        processes = RefereeProcesses(tmp_path, fa.RaisingBefore, fa.Watching)
        try:
            started = time.monotonic()
            await processes.evaluate(600)
            return time.monotonic() - started
        finally:
            await processes.close()

    assert asyncio.run(timed()) < 300, "it waited for the whole timeout"


def test_an_agent_that_closes_its_channel_is_ended_before_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only for the word of a dead one there is time: this one lives on, and its play is not scored."""
    monkeypatch.setattr("proctor.agents.runtime.hosting.process.DYING", 10 * LONG)
    ((result, _),) = run(tmp_path, fa.ClosingItsChannel, fa.Watching, times=1)
    assert (result.outcome, result.notes) == (EpisodeOutcome.AGENT_CRASH, "the process was ended")


def test_the_log_says_where_a_library_crashed(tmp_path: Path) -> None:
    ((result, _),) = run(tmp_path, fa.Aborting, fa.Watching, times=1)
    assert result.outcome == EpisodeOutcome.AGENT_CRASH
    assert "in _play_env" in (tmp_path / "agent.log").read_text()


def test_what_an_agent_floods_is_kept_in_bounds(tmp_path: Path) -> None:
    run(tmp_path, fa.Flooding, fa.Watching)
    log = tmp_path / "agent.log"
    assert log.stat().st_size < 4 * 512 * 1024
    assert b"bytes left out" in log.read_bytes()


def test_a_stop_from_outside(tmp_path: Path) -> None:
    async def stopped() -> EvaluationResult:
        processes = RefereeProcesses(tmp_path, fa.Good, fa.Watching)
        referee = Referee(processes.evaluator_client, processes.agent_client)
        evaluation = asyncio.create_task(referee.evaluate(Task(env_name="none", timeout=600)))
        referee.stop()
        result = await evaluation
        await processes.close()
        return result

    assert asyncio.run(stopped()).outcome is EpisodeOutcome.STOPPED


@pytest.mark.slow
def test_a_stop_from_outside_in_the_middle_of_a_long_thought(tmp_path: Path) -> None:
    """Whoever stops it does not ask what the agent is doing: that it hangs could be seen only when time is up."""

    async def stopped() -> EvaluationResult:
        processes = RefereeProcesses(tmp_path, fa.Sleeping, fa.Watching)
        referee = Referee(processes.evaluator_client, processes.agent_client)
        evaluation = asyncio.create_task(referee.evaluate(Task(env_name="none", timeout=600)))
        while processes.agent_client._playing is None:  # noqa: ASYNC110 - nobody tells when an agent has begun
            await asyncio.sleep(0.001)
        referee.stop()
        result = await evaluation
        await processes.close()
        return result

    assert asyncio.run(stopped()).outcome is EpisodeOutcome.STOPPED


@pytest.mark.parametrize("whom", ["starter", "guardian"])
def test_all_is_ended_with_whoever_started_it_and_with_the_guardian(tmp_path: Path, whom: str) -> None:
    """One is gone without a word, the other is ended: nothing is left."""
    script = """
import asyncio, sys, pathlib
from helpers import faulty_agents as fa
from proctor.agents import Task
from proctor.agents.runtime.agent_client import LocalAgentClient
from proctor.agents.runtime.hosting.recipe import recipe_of

async def main():
    client = LocalAgentClient(recipe_of(fa.Forking), pathlib.Path(sys.argv[1]) / "agent.log")
    await client.start(Task(env_name="none", timeout=600))
    while client._process.pulse.calls == 0:
        await asyncio.sleep(0.01)
    print(client._process.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        guardian = int(process.stdout.readline())
        below = [guardian, *guarded_by(guardian)]
        assert len(below) >= 4, "guardian, agent, child, grandchild"
        if whom == "guardian":
            os.kill(guardian, signal.SIGTERM)
            await_end(below[1:])
        process.send_signal(signal.SIGKILL)
    await_end(below)


def await_end(pids: list[int]) -> None:
    for pid in pids:
        while not _is_gone(pid):
            time.sleep(0.01)  # ends with the test's own limit, if it ends at all


class StandingStill:
    async def pause(self) -> None:
        pass

    async def resume(self) -> None:
        pass


def test_a_pause_before_the_start_of_the_clock_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("proctor.agents.runtime.clock.time", SimpleNamespace(monotonic=lambda: now))

    async def play() -> list[float]:
        nonlocal now
        clock = Clock(StandingStill(), LONG)
        seen = []
        await clock.pause()
        now += 8  # the machine is busy
        clock.start()
        now += 4
        seen.append(clock.elapsed)
        await clock.resume()
        now += 2
        seen.append(clock.elapsed)
        await clock.pause()
        now += 1
        await clock.resume()
        seen.append(clock.elapsed)
        return seen

    assert asyncio.run(play()) == [0.0, 2.0, 2.0]


def test_the_agent_is_not_told_the_seed_of_the_world() -> None:
    task = Task(env_name="none", timeout=1, seed=12345)
    told = _task_for_agent(task)
    assert told.seed != task.seed
    assert told == task.model_copy(update={"seed": told.seed}) == _task_for_agent(task)
    assert _task_for_agent(Task(env_name="none", timeout=1)).seed is None
