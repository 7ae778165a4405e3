"""What holds for agents, held together: walls and limits, players far away and what is recorded of them."""

# ruff: noqa: E402 - where something is missing, the reason for the skip comes before the imports

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from helpers import needs

needs.module("Xlib", "desktop")
needs.module("mcap", "owamcap")
needs.program("Xvfb", "xvfb")
needs.program("ffmpeg", "ffmpeg")

from test_isolated_agents import ISOLATED
from test_owamcap import read

from helpers import combined_players, desktop_players
from helpers import isolated_players as players
from helpers.agent_sides import TOKEN, LocalSide
from proctor import evaluate
from proctor.agents.desktop import VK

FILE = combined_players.__file__
OVER = "used more than 0.3 GiB of memory"


def played_isolated(monkeypatch: pytest.MonkeyPatch, folder: Path, agent: str, **settings: Any) -> list[dict[str, Any]]:
    monkeypatch.setenv("FORGED_STATE", str(folder / "state"))
    task = f"{players.__file__}:Scored"
    report = evaluate(task, agent=f"{FILE}:{agent}", isolate_agent=True, limit=1, settings=settings)
    (record,) = report.records()
    return [json.loads(output.text) for output in record.outputs]


def test_isolated_agent_that_blames_the_environment_gets_no_other_attempt(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (attempt,) = played_isolated(monkeypatch, tmp_path, "Blaming", attempts=3)
    assert (attempt["outcome"], attempt["by_agent"]) == ("agent_crash", False)
    assert "the game has gone away" in attempt["notes"]
    assert attempt["held"].startswith(ISOLATED)


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["Bloating", "BloatingChild", "BloatingFile"])
def test_memory_of_an_isolated_agent_has_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, agent: str) -> None:
    (attempt,) = played_isolated(monkeypatch, tmp_path, agent, memory=0.3)
    assert attempt["outcome"] == "agent_crash"
    assert OVER in attempt["notes"]


@pytest.mark.slow
def test_memory_of_an_isolated_agent_in_a_stepped_environment_has_a_limit() -> None:
    agent = f"{FILE}:BloatingMind"
    (record,) = evaluate("agents/catch", agent=agent, isolate_agent=True, limit=1, settings={"memory": 0.3}).records()
    ending = json.loads(record.outputs[-1].text)
    assert ending["outcome"] == "agent_crash"
    assert OVER in ending["why"]


def in_a_window(agent: str, **options: Any) -> tuple[dict[str, Any], Path]:
    """The attempt, and its folder."""
    settings = {"window_name": "Arrow Game", "timeout": 20.0, "success_criteria": {"presses": 3}}
    task = f"{desktop_players.__file__}:ArrowGame"
    (record,) = evaluate(task, agent=agent, settings=settings, limit=1, owamcap=True, **options).records()
    (folder,) = Path(os.environ["PROCTOR_STORE"]).glob("artifacts/*/0*")
    return json.loads(record.outputs[-1].text), folder


def check_recorded(attempt: dict[str, Any], folder: Path) -> None:
    """What was pressed stands in the log and in the recording, and the video has a frame for each that it names."""
    assert (attempt["outcome"], attempt["metrics"]["success"]) == ("completed", True), attempt
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    pressed = [line["what"] for line in lines if line["event"] == "input" and line["kind"] == "press"]
    topics = read(folder / "episode.mcap")
    keys = [VK(event.vk).name for _, event in topics["keyboard"] if event.event_type == "press"]
    assert keys == pressed
    assert "RIGHT" in pressed
    assert topics["screen"][0][1].media_ref.uri == "film.mp4"
    assert attempt["metrics"]["frames"] > 0


@pytest.mark.slow
def test_agent_on_another_machine_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_TOKEN", TOKEN)
    with LocalSide("player", players.FarRightArrow) as side:
        attempt, folder = in_a_window(side.url)
    check_recorded(attempt, folder)
    assert attempt["held"] == f"remote: {side.url}"


@pytest.mark.slow
def test_isolated_agent_is_recorded() -> None:
    attempt, folder = in_a_window(f"{players.__file__}:RightArrow", isolate_agent=True)
    check_recorded(attempt, folder)
    assert attempt["held"].startswith(ISOLATED)
    assert "reaction" in attempt["lags"]
