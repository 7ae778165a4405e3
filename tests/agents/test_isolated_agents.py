"""Isolated agents: what they cannot see, touch or forge, and that they play as others do."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Command
from helpers import desktop_players
from helpers import isolated_players as players
from helpers.agent_sides import LocalSide
from helpers.agent_sides import evaluate as evaluate_by_servers
from helpers.paths import TESTS
from proctor import evaluate
from proctor.agents.runtime.hosting import isolation as isolation_module
from proctor.agents.runtime.hosting.recipe import Recipe
from proctor.core.errors import SandboxUnavailableError, UsageError
from proctor.sandbox.isolation import IsolationLevel, levels

FILE = players.__file__
GAMES = desktop_players.__file__
ISOLATED = "isolated: "


@pytest.fixture
def listener() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def played(evaluator: str, agent: str, **options: Any) -> tuple[Any, list[dict[str, Any]]]:
    settings = {"timeout": 10.0, "attempts": 1} | options.pop("settings", {})
    options = {"isolate_agent": True, "limit": 1} | options
    report = evaluate(f"{FILE}:{evaluator}", agent=f"{FILE}:{agent}", settings=settings, **options)
    return report, [json.loads(record.outputs[-1].text) for record in report.records()]


def in_a_window(agent: str, **options: Any) -> list[dict[str, Any]]:
    """Success is a green window."""
    settings = {"window_name": "Arrow Game", "timeout": 4.0, "attempts": 1, "success_criteria": {"presses": 3}}
    report = evaluate(
        f"{GAMES}:ArrowGame",
        agent=f"{FILE}:{agent}",
        settings=settings | options.pop("settings", {}),
        **{"limit": 1, "film": False, **options},
    )
    return [json.loads(record.outputs[-1].text) for record in report.records()]


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
def test_isolated_agent_cannot_forge_state(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, evaluator: str, agent: str, isolated: bool
) -> None:
    monkeypatch.setenv("FORGED_STATE", str(tmp_path / "state"))
    options = {"agent_env": ["FORGED_STATE"]} if isolated else {}
    _, attempts = played(evaluator, agent, isolate_agent=isolated, **options)
    assert attempts[0]["outcome"] == "completed"
    assert attempts[0]["metrics"]["success"] is not isolated  # a trusted agent may do all that the user may
    assert attempts[0]["held"].startswith(ISOLATED if isolated else "trusted")


@pytest.mark.slow
@pytest.mark.parametrize("isolated", [False, True])
def test_server_of_an_isolated_agent_holds_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, isolated: bool) -> None:
    monkeypatch.setenv("FORGED_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("DISPLAY", raising=False)
    told = {"FORGED_STATE": str(tmp_path / "state")}
    held = isolation_module.make_isolation(window=False, variables=told) if isolated else None
    with (
        LocalSide("agent", players.FileForger, isolation=held) as agent,
        LocalSide("evaluator", players.Scored) as evaluator,
    ):
        for _ in range(2):
            result = evaluate_by_servers(agent, evaluator)
            assert result.outcome == "completed", result.notes
            assert result.metrics["success"] is not isolated


@pytest.mark.parametrize(
    ("side", "options", "said"),
    [
        ("evaluator", ["--isolate-agent"], "are for an agent, and not for this evaluator"),
        ("agent", ["--agent-network"], "--agent-network: an agent that is not isolated has it anyway"),
        ("agent", ["--isolate-agent", "--agent-env", "NO_SUCH_NAME"], "NO_SUCH_NAME is not set"),
    ],
)
def test_server_refuses_options_that_do_not_fit(proctor: Command, side: str, options: list[str], said: str) -> None:
    done = proctor("serve", side, f"{FILE}:FileForger", *options)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.slow
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


@pytest.mark.slow
def test_overlay_of_a_trusted_agent_is_taken_for_the_game() -> None:
    """What isolation is for: X keeps no client from another's window."""
    assert in_a_window("Overlayer")[0]["metrics"]["success"] is True


def test_overlay_is_refused_and_named() -> None:
    attempts = in_a_window("Overlayer", isolate_agent=True)
    assert attempts[0]["outcome"] == "timeout", attempts
    assert attempts[0]["metrics"]["success"] is False
    assert "the display refused what the agent asked of it: " in attempts[0]["notes"]
    assert "CreateWindow" in attempts[0]["notes"]


def test_isolated_agent_plays_in_a_window() -> None:
    attempts = in_a_window("RightArrow", isolate_agent=True)
    assert attempts[0]["outcome"] == "completed", attempts
    assert attempts[0]["metrics"]["success"] is True
    assert "refused" not in attempts[0]["notes"]
    log = next(Path(os.environ["PROCTOR_STORE"]).glob("artifacts/*/000000-0-1/events.jsonl"))
    events = [json.loads(line) for line in log.read_text().splitlines()]
    kinds = [(event["kind"], event["what"]) for event in events if event["event"] == "input"]
    assert kinds[:2] == [("press", "RIGHT"), ("release", "RIGHT")]
    assert any(event["event"] == "frame" for event in events)


def test_isolated_agent_cannot_void_its_episode(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FORGED_STATE", str(tmp_path / "state"))
    _, attempts = played("Scored", "Liar")
    assert attempts[0]["outcome"] == "completed"
    assert attempts[0]["metrics"]["success"] is False
    log = next(Path(os.environ["PROCTOR_STORE"]).glob("artifacts/*/000000-0-1/events.jsonl"))
    assert len(log.read_bytes()) < 10_000


@pytest.mark.slow
def test_isolated_agent_does_not_press_the_stop_key() -> None:
    attempts = in_a_window("Quitter", isolate_agent=True)
    assert attempts[0]["outcome"] == "timeout"
    assert "XTEST 2" in attempts[0]["notes"]


@pytest.mark.parametrize(
    "clock", ["step", pytest.param("realtime", marks=pytest.mark.slow), pytest.param("paused", marks=pytest.mark.slow)]
)
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
        pytest.param("Lever", "completed", "", marks=pytest.mark.slow),
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


def test_only_known_levels_hold_an_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_landlock() -> list[IsolationLevel]:
        return [level for level in levels() if level.name == "confined"]

    monkeypatch.setattr("proctor.sandbox.isolated.levels", only_landlock)
    with pytest.raises(SandboxUnavailableError, match=r"--isolate-agent: this machine cannot isolate it \(confined: "):
        in_a_window("RightArrow", isolate_agent=True)


@pytest.mark.slow
@pytest.mark.parametrize("user", ["this user", "ordinary user"])
@pytest.mark.parametrize("which", range(3))
def test_every_level_holds_an_agent(which: int, user: str) -> None:
    """Each level alone, as root and as an ordinary user."""
    safe_levels = [level for level in levels() if level.safe]
    if which >= len(safe_levels):
        pytest.skip("this machine has fewer levels")
    command = [sys.executable, "-m", "helpers.isolated_driver", str(which)]
    if user == "ordinary user":
        if os.getuid() != 0:
            pytest.skip("this user is an ordinary one already")
        command = [sys.executable, "-m", "helpers.ordinary_user", *command]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300, env=environment, cwd="/")
    if "this Python lies in a folder that other users cannot enter" in ended.stderr:
        pytest.skip("the level needs a Python that every user may read")
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout.splitlines()[-1])
    assert told["held"].startswith(f"{ISOLATED}{safe_levels[which].name}")
    seen = json.loads(told["said"].split("RuntimeError: ", 1)[1])
    assert not seen["secret"]
    assert not seen["network"]
    assert seen["commands"] == []
    assert seen["store"] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agent_network": True}, "agent_network: .* add --isolate-agent"),
        ({"isolate_agent": True, "agent": "http://127.0.0.1:1"}, "isolate_agent: does not apply to a remote agent"),
        ({"isolate_agent": True, "display": ":0"}, "could reach every window of yours"),
        ({"isolate_agent": True, "agent_files": ["/no/such/file"]}, "agent_files: there is no /no/such/file"),
        ({"isolate_agent": True, "agent_env": ["NO_SUCH_VARIABLE"]}, "agent_env: .* NO_SUCH_VARIABLE is not set"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    settings = {"command": "true", "window": "Arrow Game", "exit_code": 0}
    agent = {"agent": f"{FILE}:RightArrow"}
    with pytest.raises(UsageError, match=message):
        evaluate("agents/window", settings=settings, **{"limit": 1, **agent, **options})


def test_sandbox_shows_the_agent_file_alone() -> None:
    found = isolation_module._source_of(Recipe(FILE, "Spy"))
    assert found == [str(Path(FILE).resolve())]
