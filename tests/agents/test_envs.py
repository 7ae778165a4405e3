"""Tasks in stepped environments: outcomes, clocks, scores; every fault with real processes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proctor
from conftest import Command, FailingRun, Serve
from helpers import needs
from helpers.env_tasks import PLAYERS, endings, play
from helpers.paths import CHECKOUT
from proctor.agents.candidate import open_agent
from proctor.agents.envs.event_log import Header, read_events
from proctor.agents.envs.referee import EnvSession
from proctor.agents.envs.types import Episode, EpisodeFault
from proctor.agents.runtime.hosting.channel import Fault
from proctor.agents.runtime.hosting.guardian import descendants
from proctor.agents.runtime.hosting.process import HostedFaultError
from proctor.agents.runtime.hosting.recipe import parse_recipe, with_arguments
from proctor.agents.runtime.lags import Lags, merge_lags
from proctor.analysis.report import Report
from proctor.core.types import Score

OWN = f"{PLAYERS}:OwnExam"


def outcomes(report: Report) -> list[str]:
    return [record.outcome for record in report.records()]


def value(report: Report, metric: str) -> float:
    found = report.metrics[metric].value
    assert found is not None
    return found


def scores(report: Report) -> list[Score]:
    return [record.score for record in report.records() if record.score is not None]


def test_the_perfect_agent_wins_and_chance_does_not() -> None:
    perfect = play("proctor.agents.envs.catch:Catcher", limit=20)
    chance = play("random", limit=20)
    assert perfect.metrics["success"].value == 1
    assert perfect.metrics["reward"].value == 5
    assert perfect.run.outcomes == {"completed": 20}
    assert value(chance, "success") < 0.5
    assert value(chance, "reward") < 3


def test_a_function_is_an_agent_too() -> None:
    assert play("policy").metrics["success"].value == 1


def test_the_same_seed_is_the_same_play() -> None:
    first, second, other = (play("random", limit=5, seed=seed) for seed in (1, 1, 2))
    assert [e.trace for e in endings(first)] == [e.trace for e in endings(second)]
    assert not {e.trace for e in endings(first)} & {e.trace for e in endings(other)}


def test_epochs_change_the_agent_and_not_the_env() -> None:
    report = play("random", limit=2, epochs=2)
    logs = [read_events(Path(report.store) / "artifacts" / report.run.id / e.events) for e in endings(report)]
    by_seed = Counter(log.header.seed for log in logs)
    assert set(by_seed.values()) == {2}
    assert len({log.trace for log in logs}) == 4
    assert report.metrics["reward"].n == 2


@pytest.mark.parametrize("parallel", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_episodes_at_once(parallel: int) -> None:
    report = play("policy", limit=12, parallel=parallel)
    assert report.metrics["success"].value == 1
    logs = list((Path(report.store) / "artifacts" / report.run.id).glob("process-*.log"))
    assert 1 <= len(logs) <= parallel, "processes are used again"


def test_language_model_plays() -> None:
    report = proctor.evaluate("agents/catch", "scripted/random", limit=5)
    assert report.metrics["length"].value == 35
    assert "unreadable" not in report.metrics
    silent = proctor.evaluate("agents/catch", "scripted/blank", limit=2)
    assert silent.metrics["unreadable"].value == silent.metrics["idle"].value == 70


def test_prompt_of_a_language_model(serve: Serve) -> None:
    """It reads the field, and its answers move the paddle; what it cannot say is counted."""

    def reply(body: dict[str, Any], number: int) -> str:
        rows = body["messages"][-1]["content"].split("\nreward")[0].splitlines()
        paddle = max(rows[-1].find("="), rows[-1].find("*"))
        thing = next(max(row.find("o"), row.find("*")) for row in rows if "o" in row or "*" in row)
        if number == 0:
            return "I do not know."
        return "left" if thing < paddle else " Right. " if thing > paddle else "<think>Hm</think>1"

    server = serve(reply)
    report = proctor.evaluate("agents/catch", "openai/m", base_url=server.url, limit=2, concurrency=1)
    assert report.metrics["success"].n == 2
    assert value(report, "reward") >= 4.5, "one answer was wasted"
    assert report.metrics["unreadable"].value == 1
    assert report.run.usage.input_tokens == 10 * 70
    first, later = server.requests[0], server.requests[10]
    assert "0 (left), 1 (stay), 2 (right)" in first["messages"][0]["content"]
    assert len(first["messages"]) == 2
    assert [message["role"] for message in later["messages"]] == ["system", *["user", "assistant"] * 4, "user"]


FAULTS = [
    ("Raises", "agent_crash", "RuntimeError: I give up"),
    ("Interrupts", "agent_crash", "KeyboardInterrupt"),
    ("Exits", "agent_crash", "status 7"),
    ("Kills", "agent_crash", "signal 9"),
    ("Hangs", "agent_hang", "in one call of the agent"),
    ("Dreams", "agent_hang", "in one call of the agent"),
    ("Cheats", "agent_crash", "3 is none of the actions 0 to 2"),
    ("Overflows", "agent_crash", "inf is not a whole number"),
    ("Pretends", "agent_crash", "Hollow"),
]
# One of each kind: raised, died, hung, an action that there is none.
KINDS = {("Raises", "step"), ("Exits", "step"), ("Hangs", "paused"), ("Cheats", "step")}


@pytest.mark.parametrize(
    ("agent", "outcome", "why", "clock"),
    [
        pytest.param(*fault, clock, marks=() if (fault[0], clock) in KINDS else pytest.mark.slow)
        for fault in FAULTS
        for clock in ("step", "realtime", "paused")
    ],
)
def test_a_fault_of_the_agent(agent: str, outcome: str, why: str, clock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcome says it, it is no play, the others go on, and nobody tries again."""
    # On a busy machine an agent may come to its third step late, and hang for a short time only.
    monkeypatch.setattr("proctor.agents.envs.referee._hang_seconds", lambda episode: 0.1)
    # By the real clock the agent has to come to its third step before the environment is over.
    settings = {"clock": clock, "fps": 20 if clock == "realtime" else 200, "timeout": 15}
    report = play(agent, settings=settings)
    records = list(report.records())
    assert outcomes(report) == ["completed", outcome, "completed"]
    assert why in scores(report)[1].why
    assert scores(report)[1].value is None
    assert [len(record.outputs) for record in records] == [1, 1, 1]
    assert report.metrics["success"].n == report.metrics["reward"].n == 2
    if clock != "realtime":  # where even a perfect agent may be too late
        assert report.metrics["success"].value == 1
    won = 2 * value(report, "success")
    assert report.metrics["success_if_faults_fail"].value == pytest.approx(won / 3)
    assert report.run.errors == 0
    log = read_events(Path(report.store) / "artifacts" / report.run.id / endings(report)[1].events)
    assert log.ending == endings(report)[1]
    if clock == "step":
        at_once = agent in ("Cheats", "Overflows", "Pretends")
        assert log.length == (0 if at_once else 2), "nothing is lost in a crash"


@pytest.mark.slow
@pytest.mark.parametrize("clock", ["step", "realtime", "paused"])
def test_an_agent_that_hangs_before_it_begins_has_no_more_time_than_to_play(clock: str) -> None:
    report = play("Oversleeps", settings={"clock": clock, "fps": 200, "timeout": 5})
    assert outcomes(report) == ["completed", "agent_hang", "completed"]
    why = endings(report)[1].why
    assert "did not return within 5 s" in why or "in one call of the agent" in why, "the time for a setup is longer"


@pytest.mark.parametrize("clock", [pytest.param("realtime", marks=pytest.mark.slow), "paused"])
def test_agent_that_closes_its_connection_crashes(clock: str) -> None:
    """The environment waits for it, or goes on for many seconds."""
    settings = {"clock": clock, "fps": 20, "env_kwargs": {"things": 30}}
    report = play("Bails", settings=settings | {"max_steps": 10 if clock == "paused" else 100})
    assert outcomes(report) == ["played", "agent_crash", "played"]
    assert "lost the environment, which went on" in endings(report)[1].why


def test_agent_that_closes_its_connection_crashes_even_if_the_env_ended() -> None:
    settings = {"clock": "realtime", "fps": 100, "env_kwargs": {"kind": "UnheardEnv"}}
    report = play("BailsAndDawdles", OWN, limit=1, settings=settings)
    assert outcomes(report) == ["agent_crash"]
    assert "lost the environment, which went on" in endings(report)[0].why


def test_agent_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("class Agent:\n    def __init__(self): 1 / 0\n    def act(self, o): return 0\n")
    report = proctor.evaluate("agents/catch", agent="broken.py:Agent", limit=1)
    assert outcomes(report) == ["agent_crash"]
    assert len(next(report.records()).outputs) == 1
    assert "division by zero" in scores(report)[0].why


ENV_FAULTS = [("RaisingEnv", "the environment is broken"), ("DyingEnv", "status 9"), ("HangingEnv", "one step")]
# One of each kind of fault, clock and player; the other combinations are slow.
WORLDS = {("RaisingEnv", "step", "model"), ("DyingEnv", "realtime", "agent"), ("HangingEnv", "step", "agent")}


@pytest.mark.parametrize(
    ("kind", "why", "clock", "player"),
    [
        pytest.param(kind, why, clock, player, marks=() if (kind, clock, player) in WORLDS else pytest.mark.slow)
        for kind, why in ENV_FAULTS
        for clock in ("step", "realtime")
        for player in ("agent", "model")
    ],
)
def test_env_lost_while_the_agent_plays_is_a_failure_without_retry(
    kind: str, why: str, clock: str, player: str
) -> None:
    settings = {"clock": clock, "fps": 50, "timeout": 4, "env_kwargs": {"kind": kind}}
    if player == "agent":
        report = play("policy", OWN, limit=1, settings=settings)
    else:
        report = proctor.evaluate(OWN, "scripted/random", limit=1, settings=settings)
    (record,) = report.records()
    assert [output.finish for output in record.outputs] == ["env_crash"]
    (ending,) = endings(report)
    assert why in ending.why
    assert ending.by_agent
    assert report.metrics["success"].n == 0
    assert report.metrics["success_if_faults_fail"].value == 0


@pytest.mark.parametrize("clock", ["step", pytest.param("realtime", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("RaisingResetEnv", "reset raised RuntimeError: the environment is broken"),
        pytest.param("DyingResetEnv", "status 9", marks=pytest.mark.slow),
        pytest.param("HangingResetEnv", "did not return within 2 s", marks=pytest.mark.slow),
    ],
)
def test_env_that_fails_before_the_agent_begins_is_retried_with_another_seed(kind: str, why: str, clock: str) -> None:
    settings = {"clock": clock, "fps": 50, "setup_timeout": 2, "env_kwargs": {"kind": kind}}
    report = play("policy", OWN, limit=1, settings=settings)
    (record,) = report.records()
    assert [output.finish for output in record.outputs] == ["env_crash", "completed"]
    first, second = (json.loads(output.text) for output in record.outputs)
    assert why in first["why"]
    assert not first["by_agent"]
    assert first["seed"] == record.sample.seed != second["seed"]
    assert report.metrics["lost_env_crash"].value == 1
    assert report.metrics["success_if_faults_fail"].value == 1
    assert "lost_env_crash" in str(report)


def test_env_that_never_begins_is_not_a_fault_of_the_agent() -> None:
    settings = {"env_kwargs": {"kind": "RaisingResetEnv"}, "attempts": 1}
    once = play("policy", OWN, limit=1, settings=settings)
    assert outcomes(once) == ["env_crash"]
    assert once.metrics["success"].value is None
    assert once.metrics["success_if_faults_fail"].value is None


@pytest.mark.parametrize("clock", ["step", pytest.param("realtime", marks=pytest.mark.slow)])
def test_env_killed_by_its_agent_is_a_failure_without_retry(clock: str) -> None:
    settings = {"clock": clock, "fps": 50, "env_kwargs": {"kind": "KnownEnv"}}
    report = play("KillsTheEnv", OWN, limit=2, settings=settings)
    assert outcomes(report)[0] in ("env_crash", "agent_crash"), "by the clock `step` they share the process"
    assert [len(record.outputs) for record in report.records()] == [1, 1]
    assert outcomes(report)[1] == "completed", "the next episode is played"
    assert not Path("env.pid").exists(), "at the end it is closed"
    assert report.metrics["success_if_faults_fail"].value == 0.5


@pytest.mark.parametrize(
    ("success", "outcome", "why"),
    [
        ("nan", "judge_error", "success is nan"),
        pytest.param("half", "judge_error", "must say True or False", marks=pytest.mark.slow),
        pytest.param("lost", "judge_error", "'lost', of type str", marks=pytest.mark.slow),
        pytest.param("one", "completed", "", marks=pytest.mark.slow),
    ],
)
def test_invalid_success_of_an_env_is_judge_error(success: str, outcome: str, why: str) -> None:
    report = play("policy", OWN, limit=1, settings={"env_kwargs": {"kind": "VagueEnv", "success": success}})
    assert outcomes(report) == [outcome]
    assert why in endings(report)[0].why
    assert report.metrics["success_if_faults_fail"].value == (outcome == "completed")


def test_error_of_the_agent_after_the_end_is_noted() -> None:
    async def raising() -> None:
        raise HostedFaultError(Fault("RuntimeError", "too late"))

    async def said(closed_at: float | None) -> str:
        session: Any = EnvSession(parse_recipe(f"{PLAYERS}:left", "agent"), None, "realtime", Path("process.log"))
        session._agent = SimpleNamespace(closed_at=closed_at, pulse=SimpleNamespace(busy_seconds=0.0))
        episode = Episode(Header("t", {}, "a", 1, 0.0, {}), "events.jsonl", 1, 10.0)
        why: str = await session._let_finish(asyncio.create_task(raising()), episode)
        return why

    assert asyncio.run(said(None)) == "after the end, the agent: RuntimeError: too late"
    with pytest.raises(EpisodeFault, match="too late"):
        asyncio.run(said(1.0))  # its process had died before


def test_env_that_cannot_be_created_is_a_one_line_error(proctor: Command) -> None:
    done = proctor("run", "agents/catch", "--agent", "random", "--set", 'env_kwargs={"width": 1}')
    assert done.returncode == 2
    assert "a width of at least 2" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_agent_for_something_else_is_refused(proctor: Command) -> None:
    done = proctor("run", "agents/catch", "--agent", "proctor.agents.envs.catch:Catch")
    assert done.returncode == 2
    assert "act(observation)" in done.stderr


def test_a_flood_of_output_does_no_harm() -> None:
    report = play("Floods", limit=2)
    assert report.metrics["success"].value == 1
    log = next((Path(report.store) / "artifacts" / report.run.id).glob("process-*.log"))
    assert log.stat().st_size < 3_000_000


@pytest.mark.parametrize("clock", ["step", pytest.param("realtime", marks=pytest.mark.slow)])
def test_no_process_outlives_the_run(clock: str) -> None:
    before = set(descendants(os.getpid()))
    play("Forks", limit=3, settings={"clock": clock, "fps": 200})
    children = Path("children.txt").read_text().split()
    assert len(children) == 3
    for child in children:
        with suppress(OSError):  # it is gone
            assert b"proctor-test-orphan" not in Path(f"/proc/{child}/cmdline").read_bytes()
    assert set(descendants(os.getpid())) == before


def test_time_is_up() -> None:
    settings = {"env_kwargs": {"kind": "UnfinishedEnv"}, "timeout": 0.5}
    report = play("policy", OWN, limit=1, settings=settings)
    assert outcomes(report) == ["timeout"]
    assert report.metrics["success"].value is None
    wanted = play("policy", OWN, limit=1, settings=settings | {"success_reward": 1})
    assert wanted.metrics["success"].value == 1
    short = play("policy", OWN, limit=1, settings=settings | {"max_steps": 3})
    assert outcomes(short) == ["played"]
    assert endings(short)[0].length == 3


def test_realtime_clock_does_not_wait() -> None:
    """An agent that never answers in time: the environment goes on with its idle action, and the ticks are on time."""
    settings = {"clock": "realtime", "fps": 100, "env_kwargs": {"kind": "UnheardEnv"}}
    report = play("Dawdles", OWN, settings=settings)
    assert report.run.outcomes == {"completed": 3}
    for ending in endings(report):
        assert ending.length == ending.idle == 35
        assert ending.lags["reaction"].n == ending.late == ending.dropped == 0
        assert ending.seconds >= 35 / 100


@pytest.mark.slow
def test_report_shows_lags() -> None:
    report = play("policy", settings={"clock": "realtime", "fps": 50})
    for ending in endings(report):
        assert ending.seconds >= 35 / 50
        assert ending.lags["reaction"].n + ending.idle == 35
    for name in ("late", "dropped", "late_ticks", "slow_ticks", "idle"):
        assert report.metrics[name].method == "count"
    for lag in ("observation", "reaction", "action"):
        p50, p95, longest = (value(report, f"{lag}_{which}_ms") for which in ("p50", "p95", "max"))
        assert 0 < p50 <= p95 <= longest
    text = str(report)
    assert "clock=realtime, fps=50" in text
    assert "reaction_p50_ms" in text


def test_paused_env_waits() -> None:
    report = play("policy", settings={"clock": "paused", "fps": 100})
    assert report.metrics["success"].value == 1, "it always waits"
    for ending in endings(report):
        assert (ending.idle, ending.late, ending.dropped) == (0, 0, 0)
        assert ending.seconds >= 35 / 100
        assert ending.lags["action"].n == 35


@pytest.mark.parametrize("clock", ["realtime", pytest.param("paused", marks=pytest.mark.slow)])
def test_language_model_plays_with_a_timed_clock(clock: str) -> None:
    report = proctor.evaluate("agents/catch", "scripted/random", limit=2, settings={"clock": clock, "fps": 100})
    assert report.run.outcomes == {"completed": 2}
    assert report.metrics["length"].value == 35


def test_model_error_is_not_scored(failing_run: FailingRun) -> None:
    _, records = failing_run("agents/catch", "scripted/oracle", limit=2, settings={"clock": "realtime"})
    assert [record.error and record.error.kind for record in records] == ["model", "model"]


def test_agent_cannot_forge_later_endings() -> None:
    report = play("Forges")
    assert [e.length for e in endings(report)] == [35, 35, 35]
    assert value(report, "reward") < 5


@pytest.mark.parametrize("episodes", [200, pytest.param(1_000, marks=pytest.mark.slow)])
def test_hundreds_of_episodes_leak_nothing_in_the_env(episodes: int) -> None:
    """No more threads, files or processes than after the first ten, in the harness and in the environment's process."""

    def held(pid: int) -> tuple[int, int]:
        return len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd"))

    async def main() -> None:
        env = with_arguments("proctor.agents.envs.catch", "Catch", width=2, height=2, things=1)
        session = EnvSession(env, parse_recipe(f"{PLAYERS}:left", "agent"), "step", Path("process.log"))
        seen = {}
        for number in range(episodes):
            episode = Episode(Header("agents/catch", {}, "left", number, 0.0, {}), f"{number % 10}/events.jsonl", 0, 60)
            ending = await session.play(episode)
            assert ending.outcome == "completed"
            if number in (10, episodes - 1):
                below = sorted(set(descendants(os.getpid())) - before[0])  # other tests may have servers of their own
                seen[number] = below, [held(pid) for pid in (os.getpid(), *below)]
        await session.close()
        (processes, early), (processes_now, late) = seen[10], seen[episodes - 1]
        assert processes == processes_now
        assert [files for _, files in early] == [files for _, files in late]
        # The thread that gave the last answer may not quite have ended.
        assert all(now <= before + 1 for (before, _), (now, _) in zip(early, late, strict=True))

    before = set(descendants(os.getpid())), threading.active_count(), len(os.listdir("/proc/self/fd"))
    asyncio.run(main())
    assert set(descendants(os.getpid())) <= before[0]
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == before[1:]


class SlowToEnd:
    """Stands for a process: its end takes several turns of the event loop."""

    def __init__(self, turns: int) -> None:
        self._turns, self.is_alive = turns, True

    async def is_idle(self, seconds: float) -> bool:
        return False

    async def end(self) -> None:
        for _ in range(self._turns):
            await asyncio.sleep(0)
        self.is_alive = False


def test_cancelled_close_waits_for_both_processes() -> None:
    async def main() -> None:
        session: Any = EnvSession(parse_recipe(f"{PLAYERS}:left", "agent"), None, "realtime", Path("process.log"))
        session._env, session._agent = processes = SlowToEnd(3), SlowToEnd(30)
        closing = asyncio.create_task(session.close())
        for _ in range(10):
            await asyncio.sleep(0)
            closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert not any(process.is_alive for process in processes)

    asyncio.run(main())


def test_an_agent_is_known_by_its_source(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def policy(o): return 0\n")
    first = open_agent(f"{path}:policy").identity()
    path.write_text("def policy(o): return 1 \n")
    second = open_agent(f"{path}:policy").identity()
    assert first["agent"] == second["agent"]
    assert first["sha256"] != second["sha256"]
    assert open_agent("random").identity() == {"agent": "random"}


def test_the_guide_runs(proctor: Command, tmp_path: Path) -> None:
    needs.module("gymnasium", "gym")
    text = (CHECKOUT / "docs" / "environments.md").read_text()
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        name = re.search(r"# (\w+\.py)", block)
        assert name is not None
        (tmp_path / name[1]).write_text(block)
    commands = re.findall(r"^proctor (.+)$", text, re.MULTILINE)
    assert len(commands) >= 8
    for command in commands:
        quick = command.replace("smollm2", "scripted/random").replace("--episodes 20", "--episodes 2")
        words = shlex.split(quick, comments=True)
        if words[0] == "run":
            words.append("--no-film")  # videos have tests of their own
        if words[0] == "replay":
            words[1] = str(next(Path(os.environ["PROCTOR_STORE"]).glob("artifacts/*/000000-0-1/events.jsonl")))
        done = proctor(*words)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


@given(st.lists(st.integers(0, 10**10), min_size=1), st.integers(1, 5))
def test_lags_add_up(delays: list[int], parts: int) -> None:
    pieces = [Lags(counts={}) for _ in range(parts)]
    for number, delay in enumerate(delays):
        pieces[number % parts].add(delay)
    together = merge_lags(pieces)
    exact = sorted(max(delay / 1e6, 1e-4) for delay in delays)
    assert together.n == len(delays)
    assert together.longest == exact[-1]
    for share in (0.5, 0.95, 1.0):
        expected = exact[max(0, -(-int(share * 100) * len(exact) // 100) - 1)]
        assert together.quantile(share) == pytest.approx(expected, rel=0.02)
