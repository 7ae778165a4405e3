"""The desktop on real displays: keys, windows, pictures, listeners, films, and what can die."""

from __future__ import annotations

import json
import os
import queue
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("Xlib", reason="the extra desktop is not installed")
if shutil.which("Xvfb") is None:
    pytest.skip("Xvfb is not installed", allow_module_level=True)

from desktop_players import GAME
from proctor import evaluate
from proctor.agents.desktop import VK, DesktopError, KeyboardEvent, MouseEvent, WindowNotFoundError
from proctor.agents.desktop.display import VirtualDisplay
from proctor.agents.desktop.interface import window_titled
from proctor.agents.desktop.vk import BUTTONS, KEYSYMS, SIDES
from proctor.agents.desktop.x11 import XDesktop
from proctor.agents.vision_player import parse_strokes

FILE = str(Path(__file__).parent / "desktop_players.py")


def until(holds: Callable[[], Any]) -> None:
    """Waits for what must come. A program takes a key that comes back within two milliseconds for one that is held."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def open_desktop() -> Iterator[Callable[[], XDesktop]]:
    opened: list[tuple[XDesktop, VirtualDisplay]] = []

    def open_one() -> XDesktop:
        display = VirtualDisplay()
        display.start()
        opened.append((XDesktop(display.name), display))
        return opened[-1][0]

    yield open_one
    for desktop, display in opened:
        desktop.close()
        display.close()


@pytest.fixture
def desktop(open_desktop: Callable[[], XDesktop]) -> XDesktop:
    return open_desktop()


@pytest.fixture
def game(desktop: XDesktop) -> Iterator[subprocess.Popen[bytes]]:
    environment = os.environ | {"DISPLAY": desktop.name}
    with subprocess.Popen([sys.executable, "-c", GAME, "3"], env=environment) as process:
        until(lambda: [window.title for window in desktop.windows()] == ["Arrow Game"])
        yield process
        process.kill()


def test_every_key_arrives_as_itself(desktop: XDesktop):
    told: queue.Queue[KeyboardEvent] = queue.Queue()
    stop = desktop.listen(told.put, lambda event: None)
    for vk in KEYSYMS:
        for down in (True, False):
            desktop.key(vk, down)
            event = told.get(timeout=30)
            assert event.vk == SIDES.get(vk, vk), VK(vk).name
            assert event.event_type == ("press" if down else "release")
    stop()
    assert told.empty()
    assert desktop.keys_down() == set()


def test_every_button_and_the_wheel(desktop: XDesktop):
    told: queue.Queue[MouseEvent] = queue.Queue()
    desktop.move(10, 10)
    stop = desktop.listen(lambda event: None, told.put)
    names = []
    for vk in BUTTONS:
        desktop.key(vk, True)
        desktop.key(vk, False)
        events = [told.get(timeout=30), told.get(timeout=30)]
        assert [event.pressed for event in events] == [True, False]
        names.append(events[0].button)
    assert names == ["left", "middle", "right", "x1", "x2"]
    desktop.move(123, 45)
    moved = told.get(timeout=30)
    assert (moved.event_type, moved.x, moved.y) == ("move", 123, 45)
    assert desktop.pointer()[:2] == (123, 45)
    desktop.scroll(0, -2)
    assert [told.get(timeout=30).dy for _ in range(2)] == [-1, -1]
    stop()


def test_a_text_is_typed_with_its_capitals_and_its_signs(desktop: XDesktop, game: subprocess.Popen[bytes]):
    """Read back as keysyms by a second connection: what a program would be told."""
    told: queue.Queue[KeyboardEvent] = queue.Queue()
    stop = desktop.listen(told.put, lambda event: None)
    desktop.type_text("aB1 !")
    names = [VK(told.get(timeout=30).vk).name for _ in range(14)]
    stop()
    shifted = ["LSHIFT", "KEY_B", "KEY_B", "LSHIFT"]
    assert names == ["KEY_A"] * 2 + shifted + ["KEY_1"] * 2 + ["SPACE"] * 2 + ["LSHIFT", "KEY_1", "KEY_1", "LSHIFT"]


def test_no_key_is_lost_and_none_reaches_another_display(open_desktop: Callable[[], XDesktop]):
    """Ten thousand on two displays at once, from two processes."""
    desktops = [open_desktop(), open_desktop()]
    heard: list[list[int]] = [[], []]
    stops = [
        desktop.listen(lambda event, into=into: into.append(event.vk), lambda event: None)
        for desktop, into in zip(desktops, heard, strict=True)
    ]
    script = """
import sys
from proctor.agents.desktop.x11 import XDesktop
from proctor.agents.vision_player import parse_strokes
desktop = XDesktop(sys.argv[1])
for _ in range(5_000):
    desktop.key(int(sys.argv[2]), True)
    desktop.key(int(sys.argv[2]), False)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    keys = (VK.KEY_A, VK.RIGHT)
    pressing = [
        subprocess.Popen([sys.executable, "-c", script, desktop.name, str(int(key))], env=environment)
        for desktop, key in zip(desktops, keys, strict=True)
    ]
    assert [process.wait() for process in pressing] == [0, 0]
    for desktop, into, key in zip(desktops, heard, keys, strict=True):
        desktop.key(VK.F10, True)  # the last: when it is heard, all before it were
        desktop.key(VK.F10, False)
        until(lambda into=into: into.count(VK.F10) == 2)
        assert into == [key] * 10_000 + [VK.F10] * 2
    for stop in stops:
        stop()


def test_windows_are_found_focused_and_seen(desktop: XDesktop, game: subprocess.Popen[bytes]):
    window = window_titled(desktop, "Arrow")
    assert (window.title, window.width, window.height) == ("Arrow Game", 320, 240)
    desktop.activate(window)
    active = desktop.active_window()
    assert active is not None
    assert active.hWnd == window.hWnd
    until(lambda: tuple(desktop.capture(window)[120, 160][:3]) == (200, 0, 0))  # blue, green, red

    def press() -> None:
        desktop.key(VK.RIGHT, True)
        desktop.key(VK.RIGHT, False)

    until(lambda: press() or tuple(desktop.capture(window)[120, 160][:3]) == (0, 200, 0))
    assert desktop.capture(window).shape == (240, 320, 4)
    assert desktop.capture().shape == (480, 640, 4)


def test_a_window_that_is_not_there_is_named(desktop: XDesktop, game: subprocess.Popen[bytes]):
    with pytest.raises(WindowNotFoundError, match="'Arrow Game'"):
        window_titled(desktop, "Super Hexagon")


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_display():  # python-xlib forgets its socket then
    with pytest.raises(DesktopError, match="cannot be opened"):
        XDesktop(":4242")


def exam(agent: str, episodes: int = 2, timeout: float = 20.0, **options: Any) -> list[Any]:
    settings = {"window_name": "Arrow", "timeout": timeout}
    report = evaluate(f"{FILE}:ArrowGame", agent=f"{FILE}:{agent}", limit=episodes, settings=settings, **options)
    return list(report.records())


def test_a_game_is_won_and_filmed():
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg is not installed")
    records = exam("Pressing", parallel=2)
    assert [record.outcome for record in records] == ["completed"] * 2
    assert [record.score.value for record in records] == [1.0] * 2
    folders = sorted(Path(os.environ["PROCTOR_STORE"]).glob("artifacts/*/0*"))
    assert len(folders) == 2
    for folder in folders:
        assert frames(folder / "film.mp4") > 0
        events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        inputs = [(event["kind"], event["what"]) for event in events if event["event"] == "input"]
        assert inputs[:2] == [("press", "RIGHT"), ("release", "RIGHT")]
        assert len(inputs) >= 10


def frames(film: Path) -> int:
    entries = ["-show_entries", "stream=nb_read_frames", "-of", "csv=p=0", str(film)]
    done = subprocess.run(
        ["ffprobe", "-v", "error", "-count_frames", *entries], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.parametrize(
    ("agent", "outcome", "why"),
    [
        ("Closing", "env_crash", ("the program ended with status 0", "no window has 'Arrow'")),
        ("Crashing", "env_crash", ("the program ended with status -6", "no window has 'Arrow'")),
        ("PressingF10", "stopped", ("",)),
        ("DeafToF10", "stopped", ("stopped by hand",)),
        ("KillingTheFilm", "completed", ("the film broke off",)),
    ],
)
def test_what_can_go_wrong_on_a_display(agent: str, outcome: str, why: tuple[str, ...]):
    for record in exam(agent):
        assert record.outcome == outcome
        assert any(said in record.score.why for said in why)


def test_a_display_that_is_killed(tmp_path: Path):
    """The first display dies in the middle; the episode is tried again on another."""
    (record,) = exam("KillingTheDisplay", episodes=1, timeout=3.0)
    assert [output.finish for output in record.outputs] == ["env_crash", "timeout"]
    assert record.score.value == 0.0


def test_a_model_that_sees_plays(serve: Callable[[Any], Any]):
    """It is shown the window and presses what it answers."""

    def look(body: dict[str, Any], number: int) -> str:
        text, picture = body["messages"][0]["content"]
        assert "Make it green" in text["text"]
        assert picture["image_url"]["url"].startswith("data:image/png;base64,")
        return "I see a blue window.\nright" if number else "what is this?"

    server = serve(look)
    settings = {"window_name": "Arrow", "timeout": 30.0, "task_description": "Make it green."}
    report = evaluate(f"{FILE}:ArrowGame", "openai/eyes", base_url=server.url, limit=1, settings=settings)
    (record,) = report.records()
    assert record.outcome == "completed", record.score
    assert record.score.value == 1.0
    assert record.usage.output_tokens > 0


@pytest.mark.parametrize(
    ("text", "strokes"),
    [
        ("RIGHT", [(39, 0.1)]),
        ("Let me think.\nleft:0.5 space", [(37, 0.5), (32, 0.1)]),
        ("NONE", []),
        ("a 1", [(65, 0.1), (49, 0.1)]),
        ("RIGHT:99", [(39, 5.0)]),
        ("", None),
        ("...", None),
    ],
)
def test_what_a_model_answers(text: str, strokes: list[tuple[int, float]] | None):
    assert parse_strokes(text) == strokes


def test_new_writes_an_agent_that_plays(proctor: Callable[..., Any], tmp_path: Path):
    done = proctor("new", "agent", "my-player")
    assert done.returncode == 0, done.stderr
    assert "proctor run agents/hexagon --agent my_player.py:MyPlayer" in done.stdout
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_my_player.py"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
