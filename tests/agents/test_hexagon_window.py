"""Hexagon in its window on a real X display: keys, picture, state file, and the evaluator with its agents."""

# ruff: noqa: E402 - where something is missing, the reason for the skip comes before the imports

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from helpers import needs

needs.program("Xvfb", "xvfb")
for package, extra in (("pygame", "desktop"), ("Xlib", "desktop"), ("mss", "desktop"), ("pydantic", "agents")):
    needs.module(package, extra)

from conftest import Command
from helpers.hexagon_players import Meddler
from proctor.agents import Agent, EpisodeOutcome, EvaluationResult, Task
from proctor.agents.desktop import VK, WindowInfo
from proctor.agents.desktop.display import VirtualDisplay
from proctor.agents.desktop.x11 import XDesktop
from proctor.agents.games.hexagon.drawing import HexagonRenderer
from proctor.agents.games.hexagon.evaluator import HexagonEvaluator
from proctor.agents.games.hexagon.options import TITLE
from proctor.agents.games.hexagon.rules import LEFT, STRAIGHT, TICKS, Game, Phase
from proctor.agents.games.hexagon.state import GameState, read_state
from proctor.agents.games.hexagon.window_players import RandomWindowAgent, ReferenceAgent
from proctor.agents.runtime.agent_client import LocalAgentClient
from proctor.agents.runtime.evaluator_client import EvaluatorClient
from proctor.agents.runtime.hosting.recipe import recipe_of
from proctor.agents.runtime.locking import VARIABLE
from proctor.agents.runtime.referee import Referee

SEED = 3
PATIENCE = 120.0  # seconds, for what takes a fraction of one on a machine with nothing else to do


@pytest.fixture(scope="module")
def display() -> Iterator[VirtualDisplay]:
    display = VirtualDisplay()
    display.start()
    yield display
    display.close()


@pytest.fixture(scope="module")
def desktop(display: VirtualDisplay) -> Iterator[XDesktop]:
    desktop = XDesktop(display.name, display.authority)
    desktop.capture()  # opens its second connection
    yield desktop
    desktop.close()


class Player:
    """Who sits before a game that was just started."""

    def __init__(self, desktop: XDesktop, state: Path, *options: str, title: str = TITLE) -> None:
        self._desktop, self._state = desktop, state
        program = [sys.executable, "-m", "proctor.agents.games.hexagon", f"--seed={SEED}", f"--state={state}"]
        self.process = subprocess.Popen(
            [*program, f"--title={title}", *options], env={**os.environ, **desktop.environment}
        )
        self.wait_until(lambda: read_state(state) is not None)
        self.window = self._titled(title)
        desktop.activate(self.window)

    def _titled(self, title: str) -> WindowInfo:
        found: list[WindowInfo] = []

        def is_there() -> bool:
            found[:] = [window for window in self._desktop.windows() if window.title == title]
            return bool(found)

        self.wait_until(is_there)
        return found[0]

    def wait_until(self, happens: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not happens():
            assert time.monotonic() < deadline
            time.sleep(0.002)

    @property
    def state(self) -> GameState:
        state = read_state(self._state)
        assert state is not None
        return state

    def phase(self) -> Phase:
        return self.state.phase

    def tap(self, key: VK) -> None:
        self._desktop.key(key, True)
        self._desktop.key(key, False)

    def wait_for_the_end(self) -> GameState:
        self.wait_until(lambda: self.phase() is Phase.OVER)
        return self.state

    def see(self) -> np.ndarray:
        return self._desktop.capture(self.window)[:, :, 2::-1]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


SitDown = Callable[..., Player]


@pytest.fixture
def sit_down(desktop: XDesktop, tmp_path: Path) -> Iterator[SitDown]:
    players: list[Player] = []

    def start(*options: str, **more: str) -> Player:
        players.append(Player(desktop, tmp_path / f"state-{len(players)}", *options, **more))
        return players[-1]

    yield start
    for player in players:
        player.close()


def played(direction: int, level: int = 1) -> Game:
    """The first round as it must go when one key is held, or none."""
    game = Game(SEED, level)
    game.start()
    while game.phase is Phase.PLAYING:
        game.tick(direction)
    return game


def test_space_starts_and_death_is_shown_and_space_starts_again(sit_down: SitDown) -> None:
    player = sit_down()
    assert player.phase() is Phase.READY
    assert np.array_equal(player.see(), HexagonRenderer().frame(Game(SEED)))
    player.tap(VK.SPACE)
    state, expected = player.wait_for_the_end(), played(STRAIGHT)
    assert (state.seed, state.level, state.played, state.tick) == (SEED, 1, 1, expected.round.ticks)
    assert state.survived == state.last == state.best == expected.round.ticks / TICKS
    # The whole picture, with GAME OVER, LAST, BEST and PRESS SPACE TO RETRY, is the one drawn without a window.
    assert np.array_equal(player.see(), HexagonRenderer().frame(expected))
    player.tap(VK.SPACE)
    player.wait_until(lambda: player.phase() is Phase.PLAYING or player.state.played == 2)


@pytest.mark.slow
def test_an_arrow_that_is_held_moves_the_cursor(sit_down: SitDown, desktop: XDesktop) -> None:
    player = sit_down("--level=5", "--size=320x240", "--fps=30", title="A small one")
    assert (player.window.width, player.window.height) == (320, 240)
    desktop.key(VK.LEFT, True)
    try:
        player.tap(VK.SPACE)
        state, expected = player.wait_for_the_end(), played(LEFT, level=5)
    finally:
        desktop.key(VK.LEFT, False)
    assert (state.level, state.tick, state.cursor) == (5, expected.round.ticks, expected.round.cursor)
    assert np.array_equal(player.see(), HexagonRenderer((320, 240)).frame(expected))


def test_escape_ends_it_and_what_it_told_remains(sit_down: SitDown) -> None:
    player = sit_down()
    player.tap(VK.ESCAPE)
    assert player.process.wait(PATIENCE) == 0
    assert player.state.phase is Phase.READY


@pytest.mark.slow
def test_what_it_told_remains_when_it_is_killed(sit_down: SitDown) -> None:
    killed = sit_down()
    killed.process.send_signal(signal.SIGKILL)
    killed.process.wait(PATIENCE)
    assert killed.state.phase is Phase.READY


def test_without_a_display_it_says_so(proctor: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    done = proctor("play", "hexagon")
    assert done.returncode == 2
    assert "No window can be opened here" in done.stderr


def evaluate(
    display: VirtualDisplay, folder: Path, episodes: list[tuple[type[Agent], str, float]]
) -> list[EvaluationResult]:
    """Each an agent, what it is told and the time it has; all judged by one evaluator."""
    environment = {**display.environment, VARIABLE: str(folder / "env.lock")}

    async def play() -> list[EvaluationResult]:
        judge = EvaluatorClient(recipe_of(HexagonEvaluator), folder / "evaluator.log", environment)
        players: dict[type[Agent], LocalAgentClient] = {}
        results = []
        try:
            for agent, told, timeout in episodes:
                if agent not in players:
                    players[agent] = LocalAgentClient(recipe_of(agent), folder / f"{agent.__name__}.log", environment)
                task = Task(
                    env_name="hexagon",
                    task_description=told,
                    timeout=timeout,
                    seed=SEED,
                    success_criteria={"time_survived": 0.1},
                )
                results.append(await Referee(judge, players[agent]).evaluate(task))
        finally:
            for player in players.values():
                await player.close()
            await judge.end()
        return results

    return asyncio.run(play())


@pytest.mark.slow
def test_the_reference_plays(display: VirtualDisplay, tmp_path: Path) -> None:
    """How well it plays is for the bench: here it may have to share the machine."""
    (reference,) = evaluate(display, tmp_path, [(ReferenceAgent, "", 20.0)])
    assert reference.outcome in (EpisodeOutcome.TIMEOUT, EpisodeOutcome.COMPLETED), reference.notes
    assert reference.metrics["time_survived"] <= 20.0
    assert reference.metrics["success"] is (reference.metrics["time_survived"] > 0.1)


def test_evaluations_and_what_can_befall_them(display: VirtualDisplay, tmp_path: Path) -> None:
    episodes: list[tuple[type[Agent], str, float]] = [
        *((Meddler, told, PATIENCE) for told in ("kill", "close", "")),
        (RandomWindowAgent, "", PATIENCE),
    ]
    killed, closed, idle, chance = evaluate(display, tmp_path, episodes)
    assert killed.outcome is EpisodeOutcome.ENV_CRASH
    assert "the game has ended, with status -9" in killed.notes
    assert closed.outcome is EpisodeOutcome.ENV_CRASH
    assert "the window of the game is gone" in closed.notes
    assert idle.outcome is EpisodeOutcome.COMPLETED, idle.notes
    assert idle.metrics["time_survived"] == played(STRAIGHT).round.ticks / TICKS
    assert idle.metrics["success"] is True
    assert chance.outcome is EpisodeOutcome.COMPLETED, chance.notes
