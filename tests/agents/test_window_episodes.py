"""What one episode in a window must not leave for another, and what must be in its record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from test_desktop import hear, until

from helpers.paths import HELPERS
from proctor import evaluate
from proctor.agents.desktop.display import VirtualDisplay
from proctor.agents.desktop.frames import Frames, count_frames, watch_frames
from proctor.agents.desktop.vk import VK
from proctor.agents.desktop.x11 import XDesktop
from proctor.core.errors import UsageError

FILE = str(HELPERS / "window_players.py")
PRESSING_F10 = """
from proctor.agents.desktop.x11 import XDesktop
from proctor.agents.desktop.frames import Frames, count_frames, watch_frames
from proctor.agents.desktop.vk import VK
XDesktop().key(VK.F10, True)
"""
# Ends with status 0 where it starts for the first time, as it can tell by what it has left.
SAVING = """
import os, pathlib, sys
import pygame
saves = [pathlib.Path(os.environ[name]) / "save" for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")]
saves.append(pathlib.Path("~/.saved").expanduser())
is_first = not any(save.exists() for save in saves)
for save in saves:
    save.write_text("saved")
pygame.display.init()
screen = pygame.display.set_mode((320, 240))
pygame.display.set_caption("Saving")
pygame.display.flip()
while pygame.event.wait().type != pygame.KEYDOWN:
    pass
sys.exit(0 if is_first else 3)
"""


@pytest.fixture
def displays() -> Iterator[list[VirtualDisplay]]:
    opened = [VirtualDisplay(), VirtualDisplay()]
    for display in opened:
        display.start()
    yield opened
    for display in opened:
        display.close()


def test_key_of_another_run_does_not_reach_a_display(displays: list[VirtualDisplay]) -> None:
    """A program of one display tries to press F10 on the other, whose number it knows."""
    mine, other = displays
    desktop = XDesktop(mine.name, mine.authority)
    heard: list[int] = []
    stop = desktop.listen(partial(hear, heard), lambda event: None)
    environment = os.environ | other.environment | {"PYTHONPATH": os.pathsep.join(sys.path), "DISPLAY": mine.name}
    without = {name: value for name, value in environment.items() if name != "XAUTHORITY"}
    for given in (environment, without | {"HOME": "/nonexistent"}):
        done = subprocess.run(
            [sys.executable, "-c", PRESSING_F10], env=given, capture_output=True, text=True, check=False
        )
        assert "cannot be opened" in done.stderr
    desktop.key(VK.KEY_A, True)
    desktop.key(VK.KEY_A, False)
    until(lambda: len(heard) >= 2)
    stop()
    desktop.close()
    assert VK.F10 not in heard


def test_cookies_of_a_display_are_gone_with_it(displays: list[VirtualDisplay]) -> None:
    file = displays[0].authority
    assert file is not None
    assert file.stat().st_mode & 0o077 == 0
    displays[0].close()
    assert not file.parent.exists()


def play(evaluator: str, agent: str, timeout: float = 300.0, episodes: int = 1, **options: Any) -> Any:
    settings = {"window_name": "Arrow", "timeout": timeout} | options.pop("settings", {})
    return evaluate(
        f"{FILE}:{evaluator}", agent=f"{FILE}:{agent}", limit=episodes, film=False, settings=settings, **options
    )


def test_mouse_buttons_are_released_between_episodes() -> None:
    records = list(play("ArrowGame", "HoldingTheMouse", episodes=2).records())
    assert [record.outcome for record in records] == ["completed"] * 2, [record.score for record in records]


@pytest.mark.parametrize("clicks", [10, pytest.param(50, marks=pytest.mark.slow)])
def test_polling_game_sees_every_click(clicks: int) -> None:
    report = play("PollingGame", "Clicking", settings={"success_criteria": {"presses": clicks}})
    (record,) = report.records()
    assert record.score is not None
    assert (record.outcome, record.score.value) == ("completed", 1.0)
    attempt = json.loads(record.outputs[-1].text)
    assert clicks - 1 <= attempt["actions"] <= clicks + 2  # an evaluator looks ten times a second


def test_reaction_counts_to_the_press_of_an_agent_in_mid_step() -> None:
    report = play("ArrowGame", "Reacting", timeout=3.0)
    metrics = report.metrics
    assert metrics["reaction_p50_ms"].n >= 2
    assert metrics["reaction_p50_ms"].value < 300  # it holds the key for longer
    (record,) = report.records()
    assert record.score is not None
    assert record.score.answer["frames"] >= 1


@pytest.fixture
def saving(tmp_path: Path) -> dict[str, Any]:
    program = tmp_path / "saving.py"
    program.write_text(SAVING)
    return {"command": f"{sys.executable} {program}", "window": "Saving", "exit_code": 0, "timeout": 300.0}


def saved(settings: dict[str, Any], **options: Any) -> list[Any]:
    agent = str(HELPERS / "desktop_players.py:Pressing")
    report = evaluate("agents/window", agent=agent, settings=settings, film=False, **options)
    return [record.score.answer["exit_code"] for record in report.records() if record.score is not None]


def artifacts(name: str) -> list[Path]:
    return sorted(Path(os.environ["PROCTOR_STORE"]).glob(f"artifacts/*/0*/{name}"))


@pytest.mark.parametrize("parallel", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_programs_have_a_home_folder_for_each_episode(saving: dict[str, Any], parallel: int) -> None:
    assert saved(saving, limit=2, parallel=parallel) == [0, 0]
    assert not artifacts("*home*")
    assert not Path("~/.saved").expanduser().exists()


@pytest.mark.slow
def test_home_folder_can_be_given_and_kept(saving: dict[str, Any], tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings").write_text("loud")
    assert saved(saving | {"home": str(home), "keep_home": True}, limit=1) == [0]
    (kept,) = artifacts("home")
    assert (kept / "settings").read_text() == "loud"
    assert (kept / "save").read_text() == "saved"
    assert not (home / "save").exists()
    assert saved(saving | {"home": str(kept)}, limit=1) == [3]


def test_home_folder_that_is_not_there_is_refused(saving: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        saved(saving | {"home": "nowhere"}, limit=1)


JUNK = ["what is this?", "I cannot see the image, sorry.", "LEFT or RIGHT", ""]
GOOD = [
    "LEFT: 0.2",
    "<think>LEFT is blocked</think>\nI will press **RIGHT** for 0.1 s",
    "SHIFT+A",
    "RIGHT RIGHT RIGHT RIGHT",
]


def test_turns_of_a_model_are_in_the_record(serve: Callable[..., Any]) -> None:
    """Also those whose reply nobody could read."""
    most: set[int] = set()

    def reply(body: dict[str, Any], number: int) -> str:
        most.add(body.get("max_tokens") or body.get("max_completion_tokens") or 0)
        replies = JUNK + GOOD
        return replies[number] if number < len(replies) else "RIGHT"

    settings = {"window_name": "Arrow", "timeout": 120.0, "task_description": "Make it green.", "attempts": 1}
    report = evaluate(
        f"{FILE}:ArrowGame", "openai/eyes", base_url=serve(reply).url, limit=1, settings=settings, film=False
    )
    (record,) = report.records()
    assert record.score is not None
    assert (record.outcome, record.score.value) == ("completed", 1.0)
    assert min(most) >= 8192  # room to think
    turns = json.loads(record.outputs[-1].text)["turns"]
    replied = [turn for turn in turns if turn["reply"] is not None]
    assert [turn["reply"] for turn in replied[:8]] == JUNK + GOOD
    assert [turn["readable"] for turn in replied[:8]] == [False] * 4 + [True] * 4
    pressed = [[(press["keys"], press["seconds"]) for press in turn["pressed"]] for turn in replied]
    assert pressed[:4] == [[]] * 4
    assert [keys for keys, _ in pressed[4]] == [["LEFT"]]
    assert pressed[4][0][1] == pytest.approx(0.2, abs=0.15)
    assert [keys for keys, _ in pressed[6]] == [["SHIFT", "KEY_A"]]
    assert report.metrics["unreadable"].value == 4
    assert report.metrics["replies"].value == len(replied)
    assert all("Make it green" in turn["prompt"] and turn["usage"]["output_tokens"] for turn in replied)
    (folder,) = {path.parent for path in artifacts("frame-*.png")}
    assert all((folder / turn["frame"]).read_bytes().startswith(b"\x89PNG") for turn in turns)
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert [event["read"] for event in events if event["event"] == "reply"][:5] == ["unreadable"] * 4 + ["LEFT:0.2"]


STEADY = [round(1_000 + number * 1_000 / 60) for number in range(300)]


@pytest.mark.parametrize(
    ("changes", "still", "frames"),
    [
        (STEADY, [], Frames(300, 0)),
        ([now + piece for now in STEADY for piece in (0, 1, 3)], [], Frames(300, 0)),  # drawn in pieces
        (STEADY[:100] + STEADY[101:], [], Frames(299, 1)),
        ([now + 500 * (now > 3_000) for now in STEADY], [(3_001.0, 3_501.0)], Frames(300, 0)),  # it stood still
        ([now + 500 * (now > 3_000) for now in STEADY], [], Frames(300, 1)),
        ([1_000, 1_500, 1_510], [], Frames(3, None)),  # too few to tell
        ([1_000 + number**2 for number in range(60)], [], Frames(58, None)),  # drawn when something changes
        ([], [], Frames(0, None)),
    ],
)
def test_late_frames(changes: list[int], still: list[tuple[float, float]], frames: Frames) -> None:
    assert count_frames(changes, 0.0, 1e6, still) == frames


@pytest.mark.parametrize("lost", [0, pytest.param(5, marks=pytest.mark.slow)])
def test_frames_of_a_display_are_counted(displays: list[VirtualDisplay], lost: int) -> None:
    """Each of them, whoever draws it."""
    display, _ = displays
    watch = watch_frames(display.name, display.authority)
    assert watch is not None
    program = f"import sys; sys.argv = ['', '60', '{lost}']\n{DRAWING}"
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | display.environment, check=True)
    assert done.returncode == 0
    changes = watch.close()
    assert changes is not None
    shown = count_frames(changes, changes[0], changes[-1])
    # The window that appears and goes is a change, too; on a busy machine so are parts of frames.
    assert 58 <= shown.shown <= 90


DRAWING = """
import time
import pygame
pygame.display.init()
screen = pygame.display.set_mode((320, 240))
for number in range(int(sys.argv[1])):
    screen.fill((number, 0, 0))
    pygame.display.flip()
    time.sleep(0.02 + 0.1 * (number < int(sys.argv[2])))
"""
