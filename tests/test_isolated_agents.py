"""Isolated agents: what they cannot see, touch or forge, and that they play as others do."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import isolated_players as players
from conftest import Command
from desktop_players import GAME
from proctor import evaluate
from proctor.agents.hosting import isolation as isolation_module
from proctor.errors import SandboxUnavailableError, UsageError
from proctor.sandbox.ladder import Level, rungs

FILE = players.__file__
ISOLATED = "isolated: "


@pytest.fixture(scope="session")
def game(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("game") / "game.py"
    path.write_text(GAME)
    return f"{sys.executable} {path} 3"


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def played(evaluator: str, agent: str, **options: Any) -> tuple[Any, list[dict[str, Any]]]:
    settings = {"timeout": 10.0, "attempts": 1} | options.pop("settings", {})
    options = {"isolate_agent": True, "limit": 1} | options
    report = evaluate(f"{FILE}:{evaluator}", agent=f"{FILE}:{agent}", settings=settings, **options)
    return report, [json.loads(record.outputs[-1].text) for record in report.records()]


def in_a_window(game: str, agent: str, **options: Any) -> tuple[Any, list[dict[str, Any]]]:
    settings = {"command": game, "window": "Arrow Game", "timeout": 4.0, "attempts": 1, "look_every": 0.2}
    criteria = {"image": options.pop("image")}
    report = evaluate(
        "agents/window",
        agent=f"{FILE}:{agent}",
        settings=settings | criteria | options.pop("settings", {}),
        **{"limit": 1, "film": False, **options},
    )
    return report, [json.loads(record.outputs[-1].text) for record in report.records()]


@pytest.fixture(scope="session")
def green(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the game shows when it is won: half of it green, and a part that is not, so that it can be matched."""
    from PIL import Image

    path = tmp_path_factory.mktemp("green") / "green.png"
    Image.new("RGB", (320, 240), (0, 200, 0)).save(path)
    return str(path)


def said(attempt: dict[str, Any]) -> dict[str, Any]:
    """What an agent told by raising it."""
    assert attempt["outcome"] == "agent_crash", attempt
    found: dict[str, Any] = json.loads(attempt["notes"].split("RuntimeError: ", 1)[1])
    return found


def test_isolated_agent_sees_nothing_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, listener: int
) -> None:
    monkeypatch.setenv("SOME_API_KEY", players.SECRET)
    places = {"store": os.environ["PROCTOR_STORE"], "home": str(Path.home()), "port": str(listener)}
    monkeypatch.setenv("SPIED_UPON", json.dumps(places))
    monkeypatch.setenv("FORGED_STATE", str(tmp_path / "state"))
    report, attempts = played("Scored", "Spy", agent_env=["SPIED_UPON"])
    seen = said(attempts[0])
    assert not seen["secret"]
    assert seen["commands"] == []
    assert seen["store"] == []
    assert seen["beside"] == ["isolated_players.py"]
    assert "home" in seen["temporary"]
    assert not seen["network"]
    assert attempts[0]["held"].startswith(ISOLATED)
    assert report.to_dict()["agent_held"] == attempts[0]["held"]
    assert f"agent          {ISOLATED}" in str(report)


@pytest.mark.parametrize(("evaluator", "agent"), [("Scored", "FileForger"), ("InMemory", "MemoryForger")])
@pytest.mark.parametrize("isolated", [pytest.param(False, marks=pytest.mark.slow), True])
def test_forged_state_is_no_success_when_isolated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, evaluator: str, agent: str, isolated: bool
) -> None:
    monkeypatch.setenv("FORGED_STATE", str(tmp_path / "state"))
    options = {"agent_env": ["FORGED_STATE"]} if isolated else {}
    _, attempts = played(evaluator, agent, isolate_agent=isolated, **options)
    assert attempts[0]["outcome"] == "completed"
    assert attempts[0]["metrics"]["success"] is not isolated  # a trusted agent may do all that the user may
    assert attempts[0]["held"].startswith(ISOLATED if isolated else "trusted")


def test_no_process_is_left_and_each_has_a_home_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FORGED_STATE", str(tmp_path / "state"))
    _, attempts = played("Scored", "Litterer", limit=2)
    assert [attempt["outcome"] for attempt in attempts] == ["agent_crash"] * 2
    assert all("killed by signal 9" in attempt["notes"] for attempt in attempts)


@pytest.mark.slow
def test_hanging_isolated_agent_is_ended_with_all_that_it_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FORGED_STATE", str(tmp_path / "state"))
    settings = {"timeout": 2.0, "success_criteria": {"hang": True}}
    _, attempts = played("Scored", "Litterer", settings=settings)
    assert attempts[0]["outcome"] == "agent_hang"


@pytest.mark.slow
def test_network_files_and_variables_are_what_the_user_allows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, listener: int
) -> None:
    monkeypatch.setenv("FORGED_STATE", str(tmp_path / "state"))
    (tmp_path / "weights").write_text("numbers")
    settings = {"success_criteria": {"port": listener, "file": str(tmp_path / "weights")}}
    without = said(played("Scored", "Asker", settings=settings)[1][0])
    with_all = said(
        played("Scored", "Asker", settings=settings, agent_network=True, agent_files=[str(tmp_path / "weights")])[1][0]
    )
    assert without == {"network": False, "file": "FileNotFoundError"}
    assert with_all == {"network": True, "file": "numbers"}


def test_overlay_is_refused_and_named(game: str, green: str) -> None:
    _, attempts = in_a_window(game, "Overlayer", image=green, isolate_agent=True)
    assert attempts[0]["outcome"] == "timeout", attempts
    assert attempts[0]["metrics"]["success"] is False
    assert "the display refused what the agent asked of it: " in attempts[0]["notes"]
    assert "CreateWindow" in attempts[0]["notes"]


def test_isolated_agent_plays_in_a_window(game: str, green: str) -> None:
    _, attempts = in_a_window(game, "RightArrow", image=green, isolate_agent=True)
    assert attempts[0]["outcome"] == "completed", attempts
    assert attempts[0]["metrics"]["success"] is True
    assert "refused" not in attempts[0]["notes"]
    log = next(Path(os.environ["PROCTOR_STORE"]).glob("artifacts/*/000000-0-1/events.jsonl"))
    events = [json.loads(line) for line in log.read_text().splitlines()]
    kinds = [(event["kind"], event["what"]) for event in events if event["event"] == "input"]
    assert kinds[:2] == [("press", "RIGHT"), ("release", "RIGHT")]
    assert any(event["event"] == "frame" for event in events)


@pytest.mark.parametrize("clock", ["step", pytest.param("realtime", marks=pytest.mark.slow), "paused"])
def test_isolated_agent_plays_in_a_stepped_environment(clock: str) -> None:
    settings = {"clock": clock, "fps": 100.0, "max_steps": 20}
    episodes = {
        isolated: evaluate("agents/catch", agent="random", isolate_agent=isolated, settings=settings, limit=2)
        for isolated in (False, True)
    }
    endings = {
        isolated: [json.loads(record.outputs[-1].text) for record in report.records()]
        for isolated, report in episodes.items()
    }
    assert [ending["outcome"] for ending in endings[True]] == ["completed"] * 2
    assert all(ending["held"].startswith(ISOLATED) for ending in endings[True])
    assert [ending["held"] for ending in endings[False]] == ["trusted"] * 2
    if clock == "step":
        assert [ending["trace"] for ending in endings[True]] == [ending["trace"] for ending in endings[False]]


@pytest.mark.parametrize(
    ("agent", "outcome", "why"),
    [
        ("Lever", "completed", ""),
        pytest.param("WorldForger", "completed", "", marks=pytest.mark.slow),
        pytest.param("Sleeper", "agent_hang", "in one call of the agent", marks=pytest.mark.slow),
        pytest.param("Dying", "agent_crash", "the agent's process has ended", marks=pytest.mark.slow),
        pytest.param("Odd", "agent_crash", "nonsense", marks=pytest.mark.slow),
    ],
)
def test_isolated_agent_cannot_reach_its_stepped_environment(agent: str, outcome: str, why: str) -> None:
    settings = {"max_steps": 20, "timeout": 3.0 if outcome == "agent_hang" else 30.0}
    report = evaluate("agents/catch", agent=f"{FILE}:{agent}", isolate_agent=True, settings=settings, limit=1)
    ending = json.loads(next(iter(report.records())).outputs[-1].text)
    assert ending["outcome"] == outcome, ending
    assert why in ending["why"]
    assert ending["reward"] < 100


def test_only_known_levels_hold_an_agent(monkeypatch: pytest.MonkeyPatch, game: str, green: str) -> None:
    def only_landlock() -> list[Level]:
        return [level for level in rungs() if level.name == "confined"]

    monkeypatch.setattr("proctor.sandbox.isolated.rungs", only_landlock)
    with pytest.raises(SandboxUnavailableError, match=r"--isolate-agent: this machine cannot hold it \(confined: "):
        in_a_window(game, "RightArrow", image=green, isolate_agent=True)


@pytest.mark.slow
@pytest.mark.parametrize("which", range(3))
def test_every_level_holds_an_agent_of_an_ordinary_user(command: Command, tmp_path: Path, which: int) -> None:
    """Each level alone, in a process of an ordinary user."""
    levels = [level for level in rungs() if level.safe]
    if which >= len(levels):
        pytest.skip("this machine has fewer levels")
    script = Path(__file__).parent / "isolated_driver.py"
    said = command.as_ordinary_user([sys.executable, str(script), str(which)])
    assert json.loads(said)["seen"] == {"secret": False, "store": [], "network": False}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agent_network": True}, "agent_network: .* say --isolate-agent"),
        ({"isolate_agent": True, "agent": "http://127.0.0.1:1"}, "isolate_agent: an agent on another machine"),
        ({"isolate_agent": True, "display": ":0"}, "could reach every window of yours"),
        ({"isolate_agent": True, "agent_files": ["/no/such/file"]}, "agent_files: there is no /no/such/file"),
        ({"isolate_agent": True, "agent_env": ["NO_SUCH_VARIABLE"]}, "agent_env: .* NO_SUCH_VARIABLE is not set"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str, game: str) -> None:
    settings = {"command": game, "window": "Arrow Game", "exit_code": 0}
    agent = {"agent": f"{FILE}:RightArrow"}
    with pytest.raises(UsageError, match=message):
        evaluate("agents/window", settings=settings, **{"limit": 1, **agent, **options})


def test_room_shows_the_agents_file_and_none_of_its_neighbours() -> None:
    found = isolation_module._source_of(isolation_module.Recipe(FILE, "Spy"))
    assert found == [str(Path(FILE).resolve())]
