"""Exams in worlds: outcomes, clocks, scores; every fault with real processes."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import json
import math
import os
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import proctor
from proctor.agents.candidate import open_agent
from proctor.agents.hosting.recipe import parse_recipe, with_arguments
from proctor.agents.lags import Lags, merged
from proctor.agents.worlds import observations, spaces
from proctor.agents.worlds.arena import Table
from proctor.agents.worlds.catch import Catch, Catcher
from proctor.agents.worlds.episode import Episode
from proctor.agents.worlds.events import Ending, EventLog, Header, State, close_log, ending_of, read_events
from proctor.agents.worlds.gate import Frame, Gate, Move
from proctor.errors import UsageError
from proctor.evaluation import resume
from proctor.report import Report
from world_players import FORGED, descendants

HERE = Path(__file__).parent
PLAYERS = HERE / "world_players.py"
OWN = f"{PLAYERS}:OwnExam"


def play(agent: str, task: str = "agents/catch", limit: int = 3, **options: Any) -> Report:
    settings = options.pop("settings", {})
    agent = f"{PLAYERS}:{agent}" if agent[0].isupper() or agent in ("policy", "left") else agent
    return proctor.evaluate(task, agent=agent, limit=limit, settings={"timeout": 60} | settings, **options)


def endings(report: Report) -> list[Ending]:
    return [msgspec.json.decode(record.outputs[-1].text, type=Ending) for record in report.records()]


def outcomes(report: Report) -> list[str]:
    return [record.outcome for record in report.records()]


def test_the_perfect_agent_wins_and_chance_does_not():
    perfect = play("proctor.agents.worlds.catch:Catcher", limit=20)
    chance = play("random", limit=20)
    assert perfect.metrics["success"].value == 1
    assert perfect.metrics["reward"].value == 5
    assert perfect.run.outcomes == {"completed": 20}
    assert chance.metrics["success"].value < 0.5
    assert chance.metrics["reward"].value < 3


def test_a_function_is_an_agent_too():
    assert play("policy").metrics["success"].value == 1


def test_the_same_seed_is_the_same_play():
    first, second, other = (play("random", limit=5, seed=seed) for seed in (1, 1, 2))
    assert [e.trace for e in endings(first)] == [e.trace for e in endings(second)]
    assert not {e.trace for e in endings(first)} & {e.trace for e in endings(other)}


def test_epochs_differ_in_the_agent_not_in_the_world():
    report = play("random", limit=2, epochs=2)
    logs = [read_events(Path(report.store) / "artifacts" / report.run.id / e.events) for e in endings(report)]
    by_seed = Counter(log.header.seed for log in logs)
    assert set(by_seed.values()) == {2}
    assert len({log.trace for log in logs}) == 4
    assert report.metrics["reward"].n == 2


@pytest.mark.parametrize("parallel", [1, 4])
def test_episodes_at_once(parallel: int):
    report = play("policy", limit=12, parallel=parallel)
    assert report.metrics["success"].value == 1
    logs = list((Path(report.store) / "artifacts" / report.run.id).glob("process-*.log"))
    assert 1 <= len(logs) <= parallel, "processes are used again"


def test_a_model_plays_by_words():
    report = proctor.evaluate("agents/catch", "scripted/random", limit=5)
    assert report.metrics["length"].value == 35
    assert "unreadable" not in report.metrics
    silent = proctor.evaluate("agents/catch", "scripted/blank", limit=2)
    assert silent.metrics["unreadable"].value == silent.metrics["idle"].value == 70


def test_what_a_model_is_shown(serve):
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
    assert report.metrics["reward"].value >= 4.5, "one answer was wasted"
    assert report.metrics["unreadable"].value == 1
    assert report.run.usage.input_tokens == 10 * 70
    first, later = server.requests[0], server.requests[10]
    assert "0 (left), 1 (stay), 2 (right)" in first["messages"][0]["content"]
    assert len(first["messages"]) == 2
    assert [message["role"] for message in later["messages"]] == ["system", *["user", "assistant"] * 4, "user"]


@pytest.mark.parametrize(
    ("agent", "outcome", "why"),
    [
        ("Raises", "agent_crash", "RuntimeError: I give up"),
        ("Interrupts", "agent_crash", "KeyboardInterrupt"),
        ("Exits", "agent_crash", "status 7"),
        ("Kills", "agent_crash", "signal 9"),
        ("Hangs", "agent_hang", "in one call of the agent"),
        ("Dreams", "agent_hang", "in one call of the agent"),
        ("Cheats", "agent_crash", "3 is none of the actions 0 to 2"),
        ("Overflows", "agent_crash", "inf is not a whole number"),
        ("Pretends", "agent_crash", "Hollow"),
    ],
)
@pytest.mark.parametrize("clock", ["step", "realtime", "paused"])
def test_a_fault_of_the_agent(agent: str, outcome: str, why: str, clock: str):
    """The outcome says it, it is no play, the others go on, and nobody tries again."""
    report = play(agent, settings={"clock": clock, "fps": 200, "timeout": 2})
    records = list(report.records())
    assert [record.outcome for record in records] == ["completed", outcome, "completed"]
    assert why in records[1].score.why
    assert records[1].score.value is None
    assert [len(record.outputs) for record in records] == [1, 1, 1]
    assert report.metrics["success"].n == report.metrics["reward"].n == 2
    if clock != "realtime":  # where even a perfect agent may be too late
        assert report.metrics["success"].value == 1
    won = 2 * report.metrics["success"].value
    assert report.metrics["success_if_faults_fail"].value == pytest.approx(won / 3)
    assert report.run.errors == 0
    log = read_events(Path(report.store) / "artifacts" / report.run.id / endings(report)[1].events)
    assert log.ending == endings(report)[1]
    if clock == "step":
        at_once = agent in ("Cheats", "Overflows", "Pretends")
        assert log.length == (0 if at_once else 2), "nothing is lost in a crash"


@pytest.mark.parametrize("clock", ["step", "realtime", "paused"])
def test_an_agent_that_hangs_before_it_begins_has_no_more_time_than_to_play(clock: str):
    started = time.monotonic()
    report = play("Oversleeps", settings={"clock": clock, "fps": 200, "timeout": 1})
    assert outcomes(report) == ["completed", "agent_hang", "completed"]
    assert time.monotonic() - started < 60, "the time for a setup is twice as long"


@pytest.mark.parametrize("clock", ["realtime", "paused"])
@pytest.mark.parametrize("things", [1, 100])  # over before anybody asks why the agent is gone, or long after
def test_an_agent_that_cuts_its_line_has_left(clock: str, things: int):
    settings = {"clock": clock, "fps": 100, "env_kwargs": {"things": things}, "max_steps": 700}
    report = play("Bails", settings=settings)
    assert outcomes(report) == ["completed", "agent_crash", "completed"]
    assert "lost the world, which went on" in endings(report)[1].why


def test_an_agent_that_cannot_be_made(tmp_path: Path):
    (tmp_path / "broken.py").write_text("class Agent:\n    def __init__(self): 1 / 0\n    def act(self, o): return 0\n")
    report = proctor.evaluate("agents/catch", agent="broken.py:Agent", limit=1)
    assert outcomes(report) == ["agent_crash"]
    assert len(next(report.records()).outputs) == 1
    assert "division by zero" in next(report.records()).score.why


@pytest.mark.parametrize(
    ("kind", "why"), [("RaisingWorld", "the world is broken"), ("DyingWorld", "status 9"), ("HangingWorld", "one step")]
)
@pytest.mark.parametrize("clock", ["step", "realtime"])
@pytest.mark.parametrize("player", ["agent", "model"])
def test_a_fault_of_the_world_is_tried_again(kind: str, why: str, clock: str, player: str):
    settings = {"clock": clock, "fps": 200, "timeout": 1, "env_kwargs": {"kind": kind}}
    if player == "agent":
        report = play("policy", OWN, limit=2, settings=settings)
    else:
        report = proctor.evaluate(OWN, "scripted/random", limit=2, settings=settings)
    for record in report.records():
        assert [output.finish for output in record.outputs] == ["env_crash", "completed"]
        assert why in json.loads(record.outputs[0].text)["why"]
    assert report.metrics["success"].n == 2
    once = play("policy", OWN, limit=2, seed=5, settings=settings | {"attempts": 1})
    assert outcomes(once) == ["env_crash", "env_crash"]
    assert once.metrics["success"].value is None
    assert once.metrics["success_if_faults_fail"].value is None, "it was not the agent's fault"


def test_a_world_that_cannot_be_made_is_one_sentence(proctor):
    done = proctor("run", "agents/catch", "--agent", "random", "--set", 'env_kwargs={"width": 1}')
    assert done.returncode == 2
    assert "a width of at least 2" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_agent_for_something_else_is_refused(proctor):
    done = proctor("run", "agents/catch", "--agent", "proctor.agents.worlds.catch:Catch")
    assert done.returncode == 2
    assert "act(observation)" in done.stderr


def test_a_flood_of_output_does_no_harm():
    report = play("Floods", limit=2)
    assert report.metrics["success"].value == 1
    log = next((Path(report.store) / "artifacts" / report.run.id).glob("process-*.log"))
    assert log.stat().st_size < 3_000_000


@pytest.mark.parametrize("clock", ["step", "realtime"])
def test_no_process_outlives_the_run(clock: str):
    before = set(descendants(os.getpid()))
    play("Forks", limit=3, settings={"clock": clock, "fps": 200})
    children = Path("children.txt").read_text().split()
    assert len(children) == 3
    for child in children:
        path = Path(f"/proc/{child}/cmdline")
        assert not path.exists() or b"proctor-test-orphan" not in path.read_bytes()
    assert set(descendants(os.getpid())) == before


def test_time_is_up():
    settings = {"env_kwargs": {"kind": "UnfinishedWorld"}, "timeout": 0.5}
    report = play("policy", OWN, limit=2, settings=settings)
    assert outcomes(report) == ["timeout", "timeout"]
    assert report.metrics["success"].value is None
    wanted = play("policy", OWN, limit=2, settings=settings | {"success_reward": 1})
    assert wanted.metrics["success"].value == 1
    short = play("policy", OWN, limit=1, settings=settings | {"max_steps": 3})
    assert outcomes(short) == ["played"]
    assert endings(short)[0].length == 3


def test_the_real_clock_does_not_wait():
    """An agent that never answers in time: the world goes on with its idle action, and the ticks are on time."""
    settings = {"clock": "realtime", "fps": 100, "env_kwargs": {"kind": "UnheardWorld"}}
    report = play("Dawdles", OWN, settings=settings)
    assert report.run.outcomes == {"completed": 3}
    for ending in endings(report):
        assert ending.length == ending.idle == 35
        assert ending.lags["reaction"].n == ending.late == ending.dropped == 0
        assert ending.seconds >= 35 / 100


def test_the_report_says_how_late_everything_was():
    report = play("policy", settings={"clock": "realtime", "fps": 100})
    for ending in endings(report):
        assert ending.seconds >= 35 / 100
        assert ending.lags["reaction"].n + ending.idle == 35
    for name in ("late", "dropped", "late_ticks", "slow_ticks", "idle"):
        assert report.metrics[name].method == "count"
    for lag in ("observation", "reaction", "action"):
        p50, p95, longest = (report.metrics[f"{lag}_{which}_ms"].value for which in ("p50", "p95", "max"))
        assert 0 < p50 <= p95 <= longest
    text = str(report)
    assert "clock=realtime, fps=100" in text
    assert "reaction_p50_ms" in text


def test_a_paused_world_stands_still():
    report = play("policy", settings={"clock": "paused", "fps": 100})
    assert report.metrics["success"].value == 1, "it always waits"
    for ending in endings(report):
        assert (ending.idle, ending.late, ending.dropped) == (0, 0, 0)
        assert ending.seconds >= 35 / 100
        assert ending.lags["action"].n == 35


@pytest.mark.parametrize("clock", ["realtime", "paused"])
def test_a_model_by_the_clock(clock: str):
    report = proctor.evaluate("agents/catch", "scripted/random", limit=2, settings={"clock": clock, "fps": 100})
    assert report.run.outcomes == {"completed": 2}
    assert report.metrics["length"].value == 35


def test_a_model_error_is_no_play(failing_run):
    _, records = failing_run("agents/catch", "scripted/oracle", limit=2, settings={"clock": "realtime"})
    assert [record.error.kind for record in records] == ["model", "model"]


@pytest.fixture
def gate() -> Gate:
    opened = Gate()
    opened.open("secret", spaces.Choice(3).take)
    return opened


def ask(gate: Gate, *requests: tuple[str, str, dict[str, Any]]) -> list[tuple[int, bytes]]:
    async def all_of_them() -> list[tuple[int, bytes]]:
        answers = []
        async with aiohttp.ClientSession(f"http://127.0.0.1:{gate.port}") as session:
            for method, path, options in requests:
                given = {"headers": {"Authorization": "Bearer secret"}} | options
                async with session.request(method, path, **given) as reply:
                    answers.append((reply.status, await reply.read()))
        return answers

    return asyncio.run(all_of_them())


def move(tick: int, action: Any) -> dict[str, Any]:
    return {"data": msgspec.msgpack.encode(Move(tick, action, 1, 2))}


def test_the_gate_lets_nobody_in_without_the_token(gate: Gate):
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
        answers = ask(gate, ("GET", "/observation", {"headers": headers}), ("POST", "/action", {"headers": headers}))
        assert [status for status, _ in answers] == [401, 401]


def test_a_token_that_is_no_text_is_a_wrong_one(gate: Gate):
    with socket.create_connection(("127.0.0.1", gate.port), timeout=30) as connection:
        connection.sendall(b"GET /observation HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\xfe\r\n\r\n")
        assert connection.makefile("rb").readline() == b"HTTP/1.1 401 Unauthorized\r\n"


def test_the_gate_gives_the_newest_and_takes_the_last(gate: Gate):
    gate.show(Frame(0, observations.pack("first"), None, False))
    gate.show(Frame(1, observations.pack("second"), 1.0, False))
    ((_, seen), *answers) = ask(
        gate,
        ("GET", "/observation", {}),
        ("POST", "/action", move(0, 1)),
        ("POST", "/action", move(1, 2)),
        ("POST", "/action", move(1, 7)),
        ("POST", "/action", move(9, 1)),
        ("POST", "/action", move(1, float("inf"))),
        ("POST", "/action", {"data": b"\xc1"}),
        ("POST", "/action", {"data": io.BytesIO(b"x" * 2_000_000)}),
        ("GET", "/observation", {"params": {"after": "?"}}),
        ("GET", "/elsewhere", {}),
    )
    assert msgspec.msgpack.decode(seen, type=Frame).tick == 1
    assert [status for status, _ in answers] == [200, 204, 400, 400, 400, 400, 413, 400, 404]
    assert gate.dropped == 1
    assert gate.take().action == 2
    assert gate.take() is None
    gate.close()
    assert ask(gate, ("POST", "/action", move(1, 1)))[0][0] == 410
    gate.open("secret", spaces.Choice(3).take)
    gate.show(Frame(0, b"", None, False))
    assert ask(gate, ("POST", "/action", move(0, 0)))[0][0] == 204


def test_an_action_that_cannot_even_be_looked_at_is_refused(gate: Gate):
    def take(action: Any) -> Any:
        raise RuntimeError("what is this")

    gate.open("secret", take)
    gate.show(Frame(0, b"", None, False))
    ((status, said),) = ask(gate, ("POST", "/action", move(0, 1)))
    assert (status, said) == (400, b"its action raised RuntimeError: what is this")


def logs() -> dict[Path, int]:
    """Those that have an ending, and when it was written."""
    paths = Path(os.environ["PROCTOR_STORE"]).glob("artifacts/*/*/events.jsonl")
    return {path: path.stat().st_mtime_ns for path in paths if read_events(path).ending is not None}


def killed(*options: str) -> None:
    """A run of twenty episodes, in the middle of the eighth."""
    os.mkfifo("gate")
    command = [sys.executable, "-m", "proctor", "run", "agents/catch", "--agent", f"{PLAYERS}:Gated", "--limit", "20"]
    process = subprocess.Popen([*command, *options, "--quiet"], env=os.environ | {"GATE": "gate"})
    with process, open("gate") as gate:
        process.kill()
        gate.read()  # until the agents are gone, too


def test_killed_and_resumed_no_finished_episode_is_repeated():
    """Every log holds one play, and those that had an ending when the kill came are the same files as before."""
    killed("--parallel", "2", "--set", "clock=paused", "--set", "fps=500")
    before = logs()
    assert 6 <= len(before) <= 7, "the other agent may have been in the middle of the seventh"
    report = resume("latest", {})
    after = logs()
    assert {path: after[path] for path in before} == before, "a finished episode was played again"
    assert len(after) == 20
    assert [record.sample.index for record in report.records()] == list(range(20))
    whole = play("Gated", limit=20, parallel=2)
    assert [e.reward for e in endings(report)] == [e.reward for e in endings(whole)]


def test_a_resumed_run_believes_no_log_that_does_not_fit():
    killed()
    first, *_ = sorted(logs())
    run, honest = first.parent.parent, first.read_text()
    (run / "000015-0-1").mkdir()
    (run / "000015-0-1" / first.name).write_text(FORGED)
    (run / "000016-0-1").mkdir()
    (run / "000016-0-1" / first.name).write_text(honest)  # of another episode
    under_way = run / "000007-0-1" / first.name
    under_way.write_bytes(under_way.read_bytes().splitlines()[0] + b"\n" + FORGED.encode())
    report = resume("latest", {})
    whole = play("Gated", limit=20)
    assert [e.trace for e in endings(report)] == [e.trace for e in endings(whole)]


def test_nobody_writes_the_endings_of_episodes_to_come():
    report = play("Forges")
    assert [e.length for e in endings(report)] == [35, 35, 35]
    assert report.metrics["reward"].value < 5


def test_a_thousand_episodes_leak_nothing():
    """In the harness and in the process of the world: no thread, no file, no process more than after the first ten."""

    def held(pid: int) -> tuple[int, int]:
        return len(os.listdir(f"/proc/{pid}/task")), len(os.listdir(f"/proc/{pid}/fd"))

    async def main() -> None:
        world = with_arguments("proctor.agents.worlds.catch", "Catch", width=2, height=2, things=1)
        table = Table(world, parse_recipe(f"{PLAYERS}:left", "agent"), "step", Path("process.log"))
        seen = {}
        for number in range(1_000):
            episode = Episode(Header("agents/catch", {}, "left", number, 0.0, {}), f"{number % 10}/events.jsonl", 0, 60)
            ending = await table.play(episode)
            assert ending.outcome == "completed"
            if number in (10, 999):
                below = sorted(descendants(os.getpid()))
                seen[number] = below, [held(pid) for pid in (os.getpid(), *below)]
        await table.close()
        (processes, early), (processes_now, late) = seen[10], seen[999]
        assert processes == processes_now
        assert [files for _, files in early] == [files for _, files in late]
        # The thread that gave the last answer may not quite have ended.
        assert all(now <= before + 1 for (before, _), (now, _) in zip(early, late, strict=True))

    before = set(descendants(os.getpid())), threading.active_count(), len(os.listdir("/proc/self/fd"))
    asyncio.run(main())
    assert (set(descendants(os.getpid())), threading.active_count(), len(os.listdir("/proc/self/fd"))) == before


# Catch by itself


@given(st.integers(2, 9), st.integers(0, 5), st.integers(1, 4), st.integers(0, 2**31))
def test_catch_can_always_be_won(width: int, more: int, things: int, seed: int):
    world = Catch(width, width + more, things)
    observation, _ = world.reset(seed=seed)
    total, over, info = 0.0, False, {}
    while not over:
        assert world.text(observation).count("\n") == world.height - 1
        observation, reward, over, truncated, info = world.step(Catcher().act(observation))
        assert not truncated
        total += reward
    assert total == things
    assert info == {"is_success": True}


# Spaces and observations


@given(st.integers(1, 30), st.integers(-5, 5), st.data())
def test_every_choice_can_be_said_by_name_and_by_number(n: int, start: int, data: st.DataObject):
    names = tuple(f"do {chr(97 + i)}" for i in range(n)) if data.draw(st.booleans()) else ()
    space = spaces.Choice(n, start, names)
    for number, word in enumerate(space.words(), start):
        assert space.read(word) == space.read(f" {word.upper()}.\n") == space.read(str(number)) == number
        assert space.take(number) == space.take(np.int64(number)) == space.take(np.array(number)) == number
    for wrong in ("", "left or right", f"{start + n}", f"{start - 1}", "1.5", "١", "do a, because"):
        if wrong not in names:
            assert space.read(wrong) is None


@given(st.text())
def test_no_answer_is_taken_for_what_it_is_not(text: str):
    for space in (
        spaces.Choice(3, 0, ("left", "stay", "right")),
        spaces.Choices((2, 3), (2,), "int64"),
        spaces.Numbers((-1.0, 0.0), (1.0, 2.0), (2,), "float32"),
    ):
        read = space.read(text)
        if read is not None:
            space.take(read)


@pytest.mark.parametrize("wrong", ["left", 1.5, None, [1, 2], object(), float("nan"), float("inf"), 10**30, "1"])
def test_what_is_no_action_is_refused(wrong: Any):
    numbers = spaces.Numbers((0.0,) * 3, (1.0,) * 3, (3,), "float32")
    for space in (spaces.Choice(3), spaces.Choices((2, 2, 2), (3,), "int8"), numbers):
        with pytest.raises(spaces.IllegalActionError):
            space.take(wrong)


def test_numbers_stay_within_their_bounds():
    bound = float(np.float32(0.7))  # a little less than 0.7
    space = spaces.Numbers((-bound, -math.inf), (bound, math.inf), (2,), "float32")
    for right in ([0.7, 0], [-0.7, 1e30], [0, -1e30]):
        assert space.take(right).tolist() == np.array(right, "float32").tolist()
    for wrong in ([0.7001, 0], [-99.0, 0]):
        with pytest.raises(spaces.IllegalActionError, match="out of the range"):
            space.take(wrong)


values = st.recursive(
    st.one_of(
        st.integers(-(2**63), 2**63 - 1),
        st.text(),
        st.booleans(),
        st.floats(allow_nan=False),
        arrays.arrays(st.sampled_from(["u1", "i8", "f4", "?"]), arrays.array_shapes(max_dims=3, max_side=5)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(), inner, max_size=3),
        st.tuples(inner, inner),
    ),
    max_leaves=8,
)


@given(values)
def test_an_observation_survives_the_wire(value: Any):
    assert same(observations.unpack(observations.pack(value)), value)
    assert observations.fingerprint(value) == observations.fingerprint(value)
    assert isinstance(observations.in_words(value), str)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return one == other and type(one) is type(other)


def test_a_picture_in_words_is_short():
    picture = np.zeros((210, 160, 3), np.uint8)
    picture[100:110, 70:80] = 255
    text = observations.in_words(picture)
    assert len(text) < 1_000
    assert "9" in text


def test_colours_of_a_terminal_are_named():
    assert observations.without_escapes("a\x1b[41mF\x1b[0mb\x1b[34;1mR\x1b[0m\x1b[2K") == "a<red:F>b<blue:R>"


@given(st.lists(st.integers(0, 10**10), min_size=1), st.integers(1, 5))
def test_lags_add_up(delays: list[int], parts: int):
    pieces = [Lags(counts={}) for _ in range(parts)]
    for number, delay in enumerate(delays):
        pieces[number % parts].add(delay)
    together = merged(pieces)
    exact = sorted(max(delay / 1e6, 1e-4) for delay in delays)
    assert together.n == len(delays)
    assert together.longest == exact[-1]
    for share in (0.5, 0.95, 1.0):
        expected = exact[max(0, -(-int(share * 100) * len(exact) // 100) - 1)]
        assert together.quantile(share) == pytest.approx(expected, rel=0.02)


# Logs


def test_a_log_that_was_cut_off_keeps_its_whole_lines(tmp_path: Path):
    path = tmp_path / "e" / "events.jsonl"
    log = EventLog(path, Header("t", {}, "a", 1, 0.0, {}))
    for number in range(1_000):
        log.add(number, State(number, 1.0, False, False, "f" * 32))
    assert read_events(path).length == 999, "before it is closed"
    trace = log.trace
    assert read_events(path).trace == trace
    log.close()
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 10)
    close_log(path, Ending("agent_crash"))
    cut = read_events(path)
    assert (cut.length, cut.ending) == (998, Ending("agent_crash"))


@pytest.mark.parametrize("content", [b"", b"\n", b"{}", b"no json", b'{"format": 9}', b"\xff\xfe"])
def test_what_is_no_log_is_refused(tmp_path: Path, content: bytes):
    path = tmp_path / "events.jsonl"
    path.write_bytes(content)
    with pytest.raises(UsageError):
        read_events(path)
    assert ending_of(path, Header("t", {}, "a", 1, 0.0, {})) is None


def test_an_agent_is_known_by_its_source(tmp_path: Path):
    path = tmp_path / "mine.py"
    path.write_text("def policy(o): return 0\n")
    first = open_agent(f"{path}:policy").identity()
    path.write_text("def policy(o): return 1 \n")
    second = open_agent(f"{path}:policy").identity()
    assert first["agent"] == second["agent"]
    assert first["sha256"] != second["sha256"]
    assert open_agent("random").identity() == {"agent": "random"}


def test_the_guide_runs(proctor, tmp_path: Path):
    text = (HERE.parent / "docs" / "worlds.md").read_text()
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        (tmp_path / re.search(r"# (\w+\.py)", block)[1]).write_text(block)
    commands = re.findall(r"^proctor (.+)$", text, re.MULTILINE)
    assert len(commands) >= 8
    for command in commands:
        words = shlex.split(command.replace("smollm2", "scripted/random"), comments=True)
        if any(word.startswith("gym/") for word in words) and importlib.util.find_spec("gymnasium") is None:
            continue
        if words[0] == "replay":
            words[1] = str(next(Path(os.environ["PROCTOR_STORE"]).glob("artifacts/*/000000-0-1/events.jsonl")))
        done = proctor(*words)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
