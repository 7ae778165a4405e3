"""`--agent human`: a person, here another process that presses keys on the display, plays a window and is scored."""

# ruff: noqa: E402 - where something is missing, the reason for the skip comes before the imports

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from helpers import needs
from helpers.paths import HELPERS

needs.module("Xlib", "desktop")
needs.module("pygame", "desktop")
needs.program("Xvfb", "xvfb")

from conftest import Command
from proctor.agents.candidate import AgentCandidate, open_agent
from proctor.agents.desktop.display import VirtualDisplay
from proctor.agents.human import HumanCandidate
from proctor.core.errors import UsageError
from proctor.store import open_store

FILE = HELPERS / "desktop_players.py"

# Presses the keys that it is told, one a line.
PERSON = """
import sys, time
from proctor.agents.desktop import VK
from proctor.agents.desktop.x11 import XDesktop
desktop = XDesktop(sys.argv[1])
for line in sys.stdin:
    what = line.strip()
    if what == "click":
        desktop.move(320, 240)
        desktop.key(VK.LBUTTON, True)
        desktop.key(VK.LBUTTON, False)
        desktop.scroll(0, -1)
    else:
        for down in (True, False):
            desktop.key(VK[what], down)
            time.sleep(0.02)
desktop.close()
"""


@pytest.fixture
def display(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """That of the user: no run may end it."""
    display = VirtualDisplay()
    display.start()
    for name, value in display.environment.items():
        monkeypatch.setenv(name, value)
    yield display.name
    assert display.is_alive
    display.close()


class Person:
    """Reads what the run asks for, and acts on the display."""

    def __init__(self, display: str, arguments: list[str], agent: str = "human:anna") -> None:
        settings = {"window_name": "Arrow", "timeout": 300, "success_criteria": {"presses": 5}, "attempts": 1}
        command = [sys.executable, "-m", "proctor", "run", f"{FILE}:ArrowGame", "--agent", agent, *arguments]
        command += [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
        self._run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._hands = subprocess.Popen(
            [sys.executable, "-c", PERSON, display],
            stdin=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self.said: list[str] = []

    def wait_for(self, words: str) -> None:
        assert self._run.stderr is not None
        for line in self._run.stderr:
            self.said.append(line)
            if words in line:
                return
        raise AssertionError("".join(self.said))

    def begin(self) -> None:
        self.do("SPACE")
        self.wait_for("your time is running")

    def do(self, *keys: str) -> None:
        assert self._hands.stdin is not None
        self._hands.stdin.write("".join(f"{key}\n" for key in keys))
        self._hands.stdin.flush()

    def interrupt(self) -> int:
        """As by Ctrl-C in the terminal; gives the exit status."""
        self._run.send_signal(signal.SIGINT)
        self._run.communicate(timeout=120)
        self._hands.communicate(timeout=60)
        return self._run.returncode

    def finish(self) -> str:
        """What the run printed."""
        out, rest = self._run.communicate(timeout=120)
        self.said.append(rest)
        self._hands.communicate(timeout=60)
        assert self._run.returncode == 0, "".join(self.said)
        return out


def episodes() -> list[Path]:
    return sorted(Path(os.environ["PROCTOR_STORE"]).glob("artifacts/*/0*"))


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def test_a_person_plays_is_scored_and_recorded(display: str, proctor: Command) -> None:
    person = Person(display, ["--limit", "1", "--no-film"])
    person.wait_for(f"Press SPACE on the display {display} to start")
    assert not [event for event in events(episodes()[0]) if event["event"] == "set_up"], "it began without the person"
    person.begin()
    person.do("click", *["RIGHT"] * 5)
    out = person.finish()
    assert "success        1.000" in out
    (folder,) = episodes()
    inputs = [event for event in events(folder) if event["event"] == "input"]
    pressed = [event["what"] for event in inputs if event["kind"] == "press"]
    assert pressed == ["LBUTTON", *["RIGHT"] * 5]
    assert [event["dy"] for event in inputs if event["kind"] == "scroll"] == [-1]
    assert any(event["kind"] == "move" and (event["x"], event["y"]) == (320, 240) for event in inputs)
    (over,) = (event for event in events(folder) if event["event"] == "agent_stopped")
    assert over["actions"] == 7
    assert "human:anna" in proctor("leaderboard").stdout


@pytest.mark.slow
def test_a_person_is_compared_with_an_agent(display: str, proctor: Command) -> None:
    needs.program("ffmpeg", "ffmpeg")
    needs.module("mcap", "owamcap")
    person = Person(display, ["--limit", "2", "--owamcap"], agent="human")
    for _ in range(2):
        person.wait_for("Press SPACE")
        person.begin()
        person.do(*["RIGHT"] * 5)
    person.finish()
    for folder in episodes():
        assert (folder / "episode.mcap").stat().st_size > 1000
        assert (folder / "film.mp4").stat().st_size > 1000
    settings = ["--set", "window_name=Arrow", "--set", "timeout=300", "--set", "attempts=1"]
    settings += ["--set", 'success_criteria={"presses": 5}']
    agent = ["--agent", f"{FILE}:Pressing", "--limit", "2", "--no-film"]
    done = proctor("run", f"{FILE}:ArrowGame", *agent, *settings)
    assert done.returncode == 0, done.stderr
    with closing(open_store(mode="read")) as store:
        runs = [run.id for run in store.runs()]
    compared = proctor("compare", *runs)
    assert compared.returncode == 0, compared.stderr
    assert "human" in compared.stdout


@pytest.mark.slow
def test_a_person_stops_with_f10(display: str) -> None:
    person = Person(display, ["--limit", "1", "--no-film"], agent="human")
    person.wait_for("Press SPACE")
    person.begin()
    person.do("RIGHT", "F10")
    out = person.finish()
    assert "stopped" in out, out
    (folder,) = episodes()
    (result,) = (event for event in events(folder) if event["event"] == "result")
    assert result["outcome"] == "stopped"


@pytest.mark.slow
def test_a_person_who_does_not_want_to_begin_stops_with_f10(display: str) -> None:
    person = Person(display, ["--limit", "1", "--no-film"], agent="human")
    person.wait_for("Press SPACE")
    person.do("F10")
    assert "stopped" in person.finish()


@pytest.mark.slow
def test_a_run_that_waits_for_a_person_can_be_interrupted(display: str) -> None:
    person = Person(display, ["--limit", "1", "--no-film"])
    person.wait_for("Press SPACE")
    assert person.interrupt() == 1
    with closing(open_store(mode="read")) as store:
        assert store.run("latest").status == "interrupted"
    assert not any(event["event"] == "result" for event in events(episodes()[0]))


# python-xlib leaves its socket to the garbage collector where there is no display.
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("arguments", "shown_on", "said"),
    [
        ([], "", "$DISPLAY names none"),
        ([], ":4099", "the display :4099 cannot be opened"),
        (["--display", "none"], ":4099", "--display none leaves none"),
        (["--display", "virtual:640x480"], ":4099", "nobody sees a virtual display"),
        (["--parallel", "2"], ":4099", "one person plays one episode at a time"),
        (["--agent", "human:"], ":4099", "expected human, or human:NAME"),
    ],
)
def test_what_a_person_cannot_play(
    monkeypatch: pytest.MonkeyPatch, proctor: Command, arguments: list[str], shown_on: str, said: str
) -> None:
    monkeypatch.setenv("DISPLAY", shown_on)
    agent = [] if "--agent" in arguments else ["--agent", "human"]
    done = proctor("run", f"{FILE}:ArrowGame", *agent, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_person_cannot_play_without_a_window(proctor: Command) -> None:
    done = proctor("run", "agents/catch", "--agent", "human", "--limit", "1")
    assert (done.returncode, "is stepped, without a window: --agent human plays" in done.stderr) == (2, True), (
        done.stderr
    )
    done = proctor("run", f"{FILE.parent / 'faulty_agents.py'}:Watching", "--agent", "human")
    assert (done.returncode, "has no window: --agent human plays in windows" in done.stderr) == (2, True), done.stderr


def test_people_have_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = open_agent("human:anna")
    assert isinstance(named, HumanCandidate)
    assert (named.name, named.identity()) == ("human:anna", {"agent": "human:anna"})
    with pytest.raises(UsageError, match="human:NAME"):
        open_agent("human:an na")
    (tmp_path / "human.py").write_text(FILE.read_text())
    assert isinstance(open_agent(f"{tmp_path}/human.py:Idle"), AgentCandidate)
