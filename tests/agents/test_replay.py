"""A logged episode, played again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import proctor as package
from conftest import Command
from helpers import needs
from helpers.paths import HELPERS
from proctor.agents.envs.event_log import EpisodeEnding, read_events


def log_of(task: str, agent: str = "random", **settings: Any) -> Path:
    report = package.evaluate(task, agent=agent, limit=1, settings=settings, film=False)
    (path,) = (Path(report.store) / "artifacts" / report.run.id).glob("*/events.jsonl")
    return path


def ending_of(path: Path) -> EpisodeEnding:
    ending = read_events(path).ending
    assert ending is not None
    return ending


@pytest.mark.parametrize("clock", ["step", "realtime", pytest.param("paused", marks=pytest.mark.slow)])
def test_the_same_trace_whatever_the_clock_was(proctor: Command, clock: str) -> None:
    path = log_of("agents/catch", clock=clock, fps=200)
    done = proctor("replay", str(path))
    assert done.returncode == 0, done.stderr
    assert f"the same trace {read_events(path).trace}" in done.stdout
    told = json.loads(proctor("replay", str(path), "--json").stdout)
    assert told["trace"] == told["replayed"] == ending_of(path).trace
    assert told["difference"] == ""


@pytest.mark.parametrize(
    "game",
    [
        "MountainCarContinuous-v0",
        *(pytest.param(game, marks=pytest.mark.slow) for game in ("FrozenLake-v1", "Blackjack-v1")),
    ],
)
def test_a_game_of_others(proctor: Command, game: str) -> None:
    needs.module("gymnasium", "gym")
    done = proctor("replay", str(log_of(f"gym/{game}")))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_log_has_what_it_takes(tmp_path: Path) -> None:
    path = log_of("agents/catch", env_kwargs={"things": 2})
    header = json.loads(path.read_text().splitlines()[0])
    assert header["task"] == "agents/catch"
    assert header["settings"]["env_kwargs"] == {"things": 2}
    assert header["settings"]["clock"] == "step"
    assert header["seed"] > 0
    assert {"proctor", "python", "numpy"} <= header["versions"].keys()
    lines = read_events(path).lines
    assert [line.ns for line in lines] == sorted(line.ns for line in lines)
    assert len(lines) == 15
    assert lines[-1].terminated
    assert lines[-1].success is not None


def test_a_changed_log_is_noticed(proctor: Command) -> None:
    path = log_of("agents/catch")
    lines = path.read_text().splitlines()
    event = json.loads(lines[4])
    event["frame"] = "0" * 32
    path.write_text("\n".join([*lines[:4], json.dumps(event), *lines[5:]]) + "\n")
    done = proctor("replay", str(path))
    assert done.returncode == 1
    assert "A DIFFERENT TRACE: step 3: frame was '000" in done.stdout


def test_an_episode_that_was_cut_off_is_played_as_far_as_it_goes(proctor: Command) -> None:
    path = log_of("agents/catch")
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:10]) + "\n" + lines[10][:20])
    done = proctor("replay", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 8 steps: the same trace" in done.stdout


def test_of_an_episode_without_a_step_the_beginning_is_played(proctor: Command, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("def policy(observation): return 7\n")
    path = log_of("agents/catch", agent=f"{tmp_path / 'wrong.py'}:policy")
    assert ending_of(path).outcome == "agent_crash"
    done = proctor("replay", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 steps: the same trace" in done.stdout
    lines = path.read_text().splitlines()
    event = json.loads(lines[1]) | {"frame": "0" * 32}
    path.write_text("\n".join([lines[0], json.dumps(event), *lines[2:]]) + "\n")
    assert "A DIFFERENT TRACE: step 0: frame was '000" in proctor("replay", str(path)).stdout


@pytest.mark.parametrize("content", [None, "", "{}", "not a log"])
def test_what_is_no_log_is_one_sentence(proctor: Command, tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "events.jsonl"
    if content is not None:
        path.write_text(content)
    done = proctor("replay", str(path))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_a_log_of_something_else_is_refused(proctor: Command, tmp_path: Path) -> None:
    path = log_of("agents/catch")
    path.write_text(path.read_text().replace('"task":"agents/catch"', '"task":"shapes/existence"'))
    done = proctor("replay", str(path))
    assert done.returncode == 2


PAUSED_AGENT = """
import time
from proctor.agents import Agent, Task, thinking
from proctor.agents.desktop import CALLABLES, VK, get_current_frame


class Thinker(Agent):
    def _play_env(self, task: Task) -> bool:
        with thinking():
            get_current_frame(task.window_name)
        CALLABLES["keyboard.press"](VK.RIGHT)
        time.sleep(0.05)
        CALLABLES["keyboard.release"](VK.RIGHT)
        return True
"""


def window_log(task: str, agent: str, **settings: Any) -> Path:
    report = package.evaluate(task, agent=agent, limit=1, settings=settings, film=False)
    assert report.run.outcomes.keys() <= {"completed", "timeout"}, next(report.records()).score
    (path,) = (Path(report.store) / "artifacts" / report.run.id).glob("0*/events.jsonl")
    return path


@pytest.mark.parametrize("clock", [pytest.param("realtime", marks=pytest.mark.slow), "paused"])
def test_hexagon_in_its_window_is_replayed_exactly(proctor: Command, clock: str, tmp_path: Path) -> None:
    needs.program("faketime", "faketime")
    (tmp_path / "thinker.py").write_text(PAUSED_AGENT)
    path = window_log("agents/hexagon", f"{tmp_path / 'thinker.py'}:Thinker", clock=clock, timeout=2.0)
    done = proctor("replay", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the same result (exactly, by the game's own ticks)" in done.stdout
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    (moves,) = [line for line in lines if line["event"] == "moves"]
    assert moves["moves"]
    forged = json.dumps(moves | {"moves": [[0, 1]]})
    other = tmp_path / "events.jsonl"
    other.write_text("".join((forged if line is moves else json.dumps(line)) + "\n" for line in lines))
    done = proctor("replay", str(other))
    assert done.returncode == 1
    assert "A DIFFERENT RESULT: " in done.stdout


@pytest.mark.slow
def test_window_of_the_paused_clock_is_replayed(proctor: Command, tmp_path: Path) -> None:
    """A game that waits for its events, so that nothing depends on when it was started."""
    needs.program("faketime", "faketime")
    (tmp_path / "thinker.py").write_text(PAUSED_AGENT)
    game = HELPERS / "desktop_players.py"
    path = window_log(f"{game}:ArrowGame", f"{tmp_path / 'thinker.py'}:Thinker", clock="paused", window_name="Arrow")
    told = json.loads(proctor("replay", str(path), "--json").stdout)
    assert told["difference"] == ""
    assert told["metrics"]["success"] is True
    assert told["same_frames"] == told["frames"] >= 5
    assert told["inputs"] >= 5


@pytest.mark.slow
def test_window_that_went_on_by_itself_is_not_replayed(proctor: Command, tmp_path: Path) -> None:
    game = HELPERS / "desktop_players.py"
    path = window_log(f"{game}:ArrowGame", f"{game}:Pressing", window_name="Arrow")
    done = proctor("replay", str(path))
    assert done.returncode == 2
    assert "was played by the clock 'realtime'" in done.stderr
