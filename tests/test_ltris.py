"""A game from Debian that knows nothing of us: judged by its letters, by a picture, and by an evaluator of a user's."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

pytest.importorskip("Xlib", reason="the extra desktop is not installed")
pytest.importorskip("rapidocr", reason="the extra desktop is not installed")
if shutil.which("Xvfb") is None:
    pytest.skip("Xvfb is not installed", allow_module_level=True)

from proctor import Record, evaluate
from proctor.agents.judges import SURE
from proctor.store import open_store

LTRIS = shutil.which("ltris") or shutil.which("/usr/games/ltris")
pytestmark = pytest.mark.skipif(LTRIS is None, reason="ltris is not installed")
FILE = str(Path(__file__).parent / "ltris_players.py")


@pytest.fixture(autouse=True)
def _a_player_who_is_new_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The game keeps its settings there."""
    monkeypatch.setenv("HOME", str(tmp_path))


def play(agent: str, **settings: Any) -> tuple[Record, Path]:
    """The record of an episode, and the frame that was judged in it."""
    told = {"command": LTRIS, "window": "LTris", "attempts": 1, **settings}
    report = evaluate("agents/window", agent=f"{FILE}:{agent}", limit=1, film=False, settings=told)
    (record,) = report.records()
    artifacts = Path(os.environ["PROCTOR_STORE"]) / "artifacts" / report.run.id
    return record, artifacts / "000000-0-1" / record.score.answer["frame"]


def test_success_is_read_and_then_seen(tmp_path: Path) -> None:
    """The page for a new game: found by what is written on it, and by how that looked."""
    record, frame = play("MenuPlayer", text="Start Game", look_every=300, timeout=300)
    assert (record.outcome, record.score.value) == ("completed", 1.0), record.score
    assert "Start Game" in record.score.answer["read"]

    Image.open(frame).crop((110, 215, 210, 240)).save(tmp_path / "start.png")
    wanted = {"image": str(tmp_path / "start.png"), "look_every": 0.1}
    record, _ = play("PatientMenuPlayer", **wanted, timeout=300)
    assert (record.outcome, record.score.value) == ("completed", 1.0), record.score
    assert record.score.answer["fit"] > 0.99

    # Who does nothing gets neither.
    record, _ = play("Idle", **wanted | {"text": "Start Game", "look_every": 300}, timeout=2)
    assert (record.outcome, record.score.value) == ("timeout", 0.0)
    assert "New Game" in record.score.answer["read"]
    assert record.score.answer["fit"] < SURE


@pytest.mark.parametrize(("agent", "timeout", "success"), [("Dropper", 300, True), ("Idle", 2, False)])
def test_an_evaluator_of_a_users_own(proctor: Callable[..., Any], agent: str, timeout: float, success: bool) -> None:
    task = f"--set env_name={LTRIS} --set window_name=LTris --set timeout={timeout} --set attempts=1"
    often = "--set check_env_interval_seconds=0.1 --no-film --limit 1"
    criteria = """--set 'success_criteria={"cells": 20}'"""
    done = proctor(*shlex.split(f"run {FILE}:Pile --agent {FILE}:{agent} {task} {often} {criteria}"))
    assert done.returncode == 0, done.stdout + done.stderr
    store = open_store()
    (run,) = store.runs()
    (record,) = store.records(run)
    assert record.score.answer["success"] is success, record.score
    assert record.outcome == ("completed" if success else "timeout")
    assert (record.score.answer["cells"] >= 20) is success
