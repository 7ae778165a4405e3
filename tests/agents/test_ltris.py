"""A game from Debian that knows nothing of us: judged by its letters, by a picture, and by an evaluator of a user's."""

# ruff: noqa: E402 - where something is missing, the reason for the skip comes before the imports

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from helpers import needs
from helpers.paths import HELPERS

needs.module("Xlib", "desktop")
needs.module("rapidocr", "desktop")
needs.program("Xvfb", "xvfb")
needs.program("ltris", "ltris")

from conftest import Command
from proctor import Score, evaluate
from proctor.agents.windows.screen_checks import SURE
from proctor.store import open_store

LTRIS = shutil.which("ltris") or shutil.which("/usr/games/ltris")
pytestmark = pytest.mark.slow
FILE = str(HELPERS / "ltris_players.py")


@pytest.fixture(autouse=True)
def _a_player_who_is_new_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The game keeps its settings there."""
    monkeypatch.setenv("HOME", str(tmp_path))


def play(agent: str, **settings: Any) -> tuple[Score, Path]:
    """The score of an episode, and the frame that was judged in it."""
    told = {"command": LTRIS, "window": "LTris", "attempts": 1, **settings}
    report = evaluate("agents/window", agent=f"{FILE}:{agent}", limit=1, film=False, settings=told)
    (record,) = report.records()
    assert record.score is not None
    artifacts = Path(os.environ["PROCTOR_STORE"]) / "artifacts" / report.run.id
    return record.score, artifacts / "000000-0-1" / record.score.answer["frame"]


def test_success_is_read_and_then_seen(tmp_path: Path) -> None:
    """The page for a new game: found by what is written on it, and by how that looked."""
    score, frame = play("MenuPlayer", text="Start Game", look_every=300, timeout=300)
    assert (score.outcome, score.value) == ("completed", 1.0), score
    assert "Start Game" in score.answer["read"]

    Image.open(frame).crop((110, 215, 210, 240)).save(tmp_path / "start.png")
    wanted = {"image": str(tmp_path / "start.png"), "look_every": 0.1}
    score, _ = play("PatientMenuPlayer", **wanted, timeout=300)
    assert (score.outcome, score.value) == ("completed", 1.0), score
    assert score.answer["fit"] > 0.99

    # Who does nothing gets neither.
    score, _ = play("Idle", **wanted | {"text": "Start Game", "look_every": 300}, timeout=2)
    assert (score.outcome, score.value) == ("timeout", 0.0)
    assert "New Game" in score.answer["read"]
    assert score.answer["fit"] < SURE


@pytest.mark.parametrize(("agent", "timeout", "success"), [("Dropper", 300, True), ("Idle", 2, False)])
def test_an_evaluator_of_a_users_own(proctor: Command, agent: str, timeout: float, success: bool) -> None:
    task = f"--set env_name={LTRIS} --set window_name=LTris --set timeout={timeout} --set attempts=1"
    often = "--set check_env_interval_seconds=0.1 --no-film --limit 1"
    criteria = """--set 'success_criteria={"cells": 20}'"""
    done = proctor(*shlex.split(f"run {FILE}:Pile --agent {FILE}:{agent} {task} {often} {criteria}"))
    assert done.returncode == 0, done.stdout + done.stderr
    store = open_store()
    (run,) = store.runs()
    (record,) = store.records(run)
    store.close()
    assert record.score is not None
    assert record.score.answer["success"] is success, record.score
    assert record.outcome == ("completed" if success else "timeout")
    assert (record.score.answer["cells"] >= 20) is success
