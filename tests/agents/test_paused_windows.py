"""The clock `paused` for windows: a program that stands still while an agent thinks, and does not notice."""

# ruff: noqa: E402 - where something is missing, the reason for the skip comes before the imports

from __future__ import annotations

import math
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from helpers import needs
from helpers.paths import HELPERS

for program, package in (("Xvfb", "xvfb"), ("faketime", "faketime")):
    needs.program(program, package)
for module, extra in (("pygame", "desktop"), ("Xlib", "desktop"), ("mss", "desktop"), ("pydantic", "agents")):
    needs.module(module, extra)

import proctor
from conftest import Serve
from helpers.desktop_players import LONG_THOUGHT
from proctor.agents.outcome import EnvironmentCrashedError
from proctor.agents.runtime.attempt import Attempt
from proctor.agents.windows.program import PausableProgram
from proctor.agents.windows.window import WindowEvaluator
from proctor.core.errors import UsageError

PENSIVE = f"{HELPERS / 'desktop_players.py'}:Pensive"
PATIENCE = 120.0  # seconds, for what takes a fraction of one on a machine with nothing else to do
PAUSES = 3
PAUSE = 0.2  # seconds
SURE = 0.1  # seconds within which a lag is to be known, of the pauses that it is to show

# Says what it takes the time to be, and the same for a child, as often as it is asked to by a file that grows.
TELLER = """
import os, sys, time
if os.fork() == 0:
    name, parent = "child", os.getppid()
else:
    name, parent = "parent", 0
while not parent or os.getppid() == parent:
    with open(f"{sys.argv[1]}/{name}.new", "w") as file:
        file.write(f"{time.monotonic()} {time.time()}")
    os.replace(f"{sys.argv[1]}/{name}.new", f"{sys.argv[1]}/{name}")
    time.sleep(0.002)
"""


@pytest.fixture
def teller(tmp_path: Path) -> Iterator[PausableProgram]:
    program = PausableProgram([sys.executable, "-c", TELLER, str(tmp_path)], pausable=True)
    yield program
    program.end()


def told(folder: Path, name: str) -> tuple[float, float]:
    """The two clocks of a process of the teller, when it has just written them."""
    path = folder / name
    deadline = time.monotonic() + PATIENCE
    before = path.read_text() if path.exists() else ""
    while not path.exists() or path.read_text() == before:
        assert time.monotonic() < deadline, f"{name} tells nothing"
        time.sleep(0.001)
    monotonic, wall = map(float, path.read_text().split())
    return monotonic, wall


class Lag:
    """How far a clock of the teller is behind ours: bounds, which get closer the more often it is read."""

    def __init__(self, folder: Path, name: str, clock: int) -> None:
        now = (time.monotonic, time.time)[clock]
        self.least, self.most = -math.inf, math.inf
        deadline = time.monotonic() + PATIENCE
        while self.most - self.least > SURE:
            assert time.monotonic() < deadline, f"{name} is read too late to tell its lag"
            earliest = now()
            read = told(folder, name)[clock]  # written between these two looks at our own clock
            self.least, self.most = max(self.least, earliest - read), min(self.most, now() - read)


def test_a_program_does_not_notice_that_it_was_stopped(teller: PausableProgram, tmp_path: Path) -> None:
    """Its clocks have lost what it stood still, however late a busy machine lets us look at them."""
    clocks = [(name, clock) for name in ("parent", "child") for clock in (0, 1)]
    before = {(name, clock): Lag(tmp_path, name, clock) for name, clock in clocks}
    least = most = 0.0
    for _ in range(PAUSES):
        asked = time.monotonic()
        teller.pause()
        begun = time.monotonic()
        shown = {name: (tmp_path / name).read_text() for name in ("parent", "child")}
        while time.monotonic() < begun + PAUSE:
            assert {name: (tmp_path / name).read_text() for name in shown} == shown
        least += time.monotonic() - begun
        teller.resume()
        most += time.monotonic() - asked
    for (name, clock), was in before.items():
        now = Lag(tmp_path, name, clock)
        assert now.most - was.least >= least, name
        assert now.least - was.most <= most, name


def test_pause_is_idempotent(teller: PausableProgram, tmp_path: Path) -> None:
    told(tmp_path, "child")
    teller.pause()
    teller.pause()
    teller.resume()
    teller.resume()
    told(tmp_path, "parent")


def test_a_program_with_a_clock_of_its_own_is_refused(tmp_path: Path) -> None:
    program = PausableProgram(["env", "-u", "LD_PRELOAD", sys.executable, "-c", TELLER, str(tmp_path)], pausable=True)
    try:
        told(tmp_path, "parent")
        with pytest.raises(EnvironmentCrashedError, match="clock=realtime"):
            program.pause()
    finally:
        program.end()


@pytest.mark.slow
def test_so_is_a_script_that_starts_such_a_program(tmp_path: Path) -> None:
    """The clock of the script is ours, which is of no use."""
    script = f"env -u LD_PRELOAD '{sys.executable}' -c '{TELLER}' '{tmp_path}' & wait"
    program = PausableProgram(["sh", "-c", script], pausable=True)
    try:
        told(tmp_path, "parent")
        with pytest.raises(EnvironmentCrashedError, match=r"the clock of python.* cannot be stopped"):
            program.pause()
    finally:
        program.end()


def test_a_script_and_what_it_starts_stand_still(tmp_path: Path) -> None:
    """Also if one of them has just ended."""
    program = PausableProgram(
        ["sh", "-c", f"sleep 0 & '{sys.executable}' -c '{TELLER}' '{tmp_path}'; exit"], pausable=True
    )
    try:
        told(tmp_path, "child")
        program.pause()
        shown = (tmp_path / "child").read_text()
        time.sleep(0.1)  # in which it would have written fifty times
        assert (tmp_path / "child").read_text() == shown
    finally:
        program.end()


def test_nothing_is_left_of_a_program(tmp_path: Path) -> None:
    program = PausableProgram([sys.executable, "-c", TELLER, str(tmp_path)], pausable=True)
    told(tmp_path, "parent")
    program.pause()
    clock = program._file
    assert clock.exists()
    program.end()
    assert not clock.parent.exists()
    assert program.poll() == -signal.SIGKILL
    assert not [name for name in os.listdir("/dev/shm") if name.endswith(f"_{program.pid}")]


def test_the_files_of_a_clock_lie_with_those_of_the_episode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where whoever is killed may leave them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("proctor.agents.windows.evaluator.release_everything", lambda: None)
    Path("episode").mkdir()
    evaluator = WindowEvaluator()
    evaluator.folder, evaluator.clock = Path("episode"), "paused"
    evaluator._start(["true"])
    program = evaluator._running()
    assert program.wait(PATIENCE) == 0
    assert program._file.is_absolute()
    assert program._file.parents[1] == tmp_path / "episode"
    evaluator._close_environment()
    assert os.listdir(tmp_path / "episode") == []


def test_nothing_is_left_of_what_a_program_has_started(tmp_path: Path) -> None:
    """A game behind a script: its window would be there when the next episode looks for its own."""
    file = tmp_path / "child"
    program = PausableProgram(["sh", "-c", f"sleep 1000 & echo $! > {file}.new; mv {file}.new {file}; wait"])
    deadline = time.monotonic() + PATIENCE
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.001)
    child = os.pidfd_open(int(file.read_text()))
    try:
        program.end()
        assert select.select([child], [], [], PATIENCE)[0], "it is still there"
    finally:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(child, signal.SIGKILL)
        os.close(child)


def test_the_game_waits_for_an_agent_that_thinks(tmp_path: Path) -> None:
    """An agent that thinks at each of its steps for longer than the whole game lasts."""
    begun = time.monotonic()
    report = proctor.evaluate(
        "agents/hexagon",
        agent=PENSIVE,
        settings={"clock": "paused", "timeout": 1.0, "survive": 0.1},
        limit=1,
        film=False,
        store=str(tmp_path),
    )
    wall = time.monotonic() - begun
    (record,) = report.records()
    played = msgspec.json.decode(record.outputs[-1].text, type=Attempt)
    assert played.outcome.is_play, played.notes
    # A game that goes on while the agent thinks is over before its first thought is.
    assert played.actions >= 1
    assert wall > played.actions * LONG_THOUGHT + played.elapsed - LONG_THOUGHT
    assert 0 <= played.metrics["time_survived"] <= played.elapsed <= 1.0


@pytest.mark.slow
def test_too_long_thought_is_a_hang(tmp_path: Path) -> None:
    settings = {"clock": "paused", "timeout": 300.0, "longest_thought": LONG_THOUGHT / 2}
    report = proctor.evaluate(
        "agents/hexagon", agent=PENSIVE, settings=settings, limit=1, film=False, store=str(tmp_path)
    )
    (record,) = report.records()
    played = msgspec.json.decode(record.outputs[-1].text, type=Attempt)
    assert played.outcome == "agent_hang"


def test_evaluator_that_cannot_pause_is_refused(tmp_path: Path) -> None:
    evaluator = HELPERS / "faulty_agents.py"
    with pytest.raises(UsageError, match="_pause_environment"):
        proctor.evaluate(
            f"{evaluator}:Watching", agent=PENSIVE, settings={"clock": "paused"}, limit=1, store=str(tmp_path)
        )


@pytest.mark.slow
def test_the_game_waits_for_a_model(serve: Serve, tmp_path: Path) -> None:
    """A server that takes its time; its model holds a key for a fifth of a second, or does nothing."""

    def answer(body: dict[str, Any], number: int) -> str:
        time.sleep(LONG_THOUGHT)
        return "NONE" if number % 2 else "RIGHT:0.2"

    settings = {"clock": "paused", "timeout": 1.0, "survive": 0.1}
    report = proctor.evaluate(
        "agents/hexagon",
        "openai/slow",
        base_url=serve(answer).url,
        settings=settings,
        limit=1,
        film=False,
        store=str(tmp_path),
    )
    (record,) = report.records()
    played = msgspec.json.decode(record.outputs[-1].text, type=Attempt)
    assert played.outcome.is_play, played.notes
    assert played.actions >= 1  # a game that does not wait is over before the first answer
    assert 0 <= played.metrics["time_survived"] <= played.elapsed <= 1.0


@pytest.mark.slow
def test_a_game_of_others_waits_too(tmp_path: Path) -> None:
    """LTris, whose clock is SDL's: the window stands still from the first thought on, and goes on after it."""
    needs.program("ltris", "ltris")
    game = shutil.which("ltris", path=f"{os.environ['PATH']}:/usr/games")
    settings = {"clock": "paused", "command": game, "window": "LTris", "text": "never to be read", "timeout": 5.0}
    report = proctor.evaluate(
        "agents/window",
        agent=f"{HELPERS / 'desktop_players.py'}:Comparing",
        settings=settings,
        limit=1,
        film=False,
        store=str(tmp_path),
    )
    (record,) = report.records()
    played = msgspec.json.decode(record.outputs[-1].text, type=Attempt)
    assert played.outcome == "timeout", played.notes
    assert played.actions >= 2
