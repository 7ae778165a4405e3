"""The desktop on real displays: keys, windows, pictures, listeners, films, and what can die."""

# ruff: noqa: E402 - where something is missing, the reason for the skip comes before the imports

from __future__ import annotations

import json
import os
import queue
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from helpers import needs
from helpers.paths import HELPERS

needs.module("Xlib", "desktop")
needs.module("pygame", "desktop")
needs.program("Xvfb", "xvfb")

from Xlib import X, Xatom
from Xlib.display import Display
from Xlib.protocol import event

from conftest import Command, Serve
from helpers.desktop_players import GAME, NOTEPAD
from helpers.videos import frames
from proctor import evaluate
from proctor.agents.desktop import VK, DesktopError, KeyboardEvent, MouseEvent, WindowNotFoundError
from proctor.agents.desktop.authority import authority_of
from proctor.agents.desktop.display import VirtualDisplay, parse_size
from proctor.agents.desktop.interface import make_active, window_titled
from proctor.agents.desktop.messages import WindowInfo
from proctor.agents.desktop.video import VideoRecorder
from proctor.agents.desktop.vk import BUTTONS, KEYSYMS, SIDES
from proctor.agents.desktop.x11 import XDesktop
from proctor.agents.runtime.recording import KEYS, EventRecorder
from proctor.core.errors import UsageError

FILE = str(HELPERS / "desktop_players.py")


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
        opened.append((XDesktop(display.name, display.authority), display))
        return opened[-1][0]

    yield open_one
    for desktop, display in opened:
        desktop.close()
        display.close()


@pytest.fixture(scope="module")
def display() -> Iterator[VirtualDisplay]:
    """For the tests that need any display."""
    display = VirtualDisplay()
    display.start()
    yield display
    display.close()


@pytest.fixture
def desktop(
    request: pytest.FixtureRequest, display: VirtualDisplay, open_desktop: Callable[[], XDesktop]
) -> Iterator[XDesktop]:
    callspec = getattr(request.node, "callspec", None)
    if callspec is not None and callspec.params.get("manager", "no manager") != "no manager":
        yield open_desktop()  # what a window manager says of itself stays on its display when it is gone
        return
    desktop = XDesktop(display.name, display.authority)
    yield desktop
    desktop.close()


@pytest.fixture(params=["no manager", pytest.param("openbox", marks=pytest.mark.slow)])
def manager(
    request: pytest.FixtureRequest, desktop: XDesktop, tmp_path: Path
) -> Iterator[subprocess.Popen[bytes] | None]:
    """The desktop with a window manager, and without."""
    if request.param == "no manager":
        yield None
        return
    needs.program(request.param, request.param)
    environment = os.environ | desktop.environment | {"HOME": str(tmp_path)}  # without the user's own settings
    display = opened(desktop)
    with subprocess.Popen([request.param, "--sm-disable"], env=environment) as process:
        until(lambda: said_of_all(display, "_NET_SUPPORTING_WM_CHECK"))
        yield process
        process.kill()
    display.close()


def opened(desktop: XDesktop) -> Display:
    """Another connection to the same display."""
    with authority_of(desktop.authority):
        return Display(desktop.name)


def said_of_all(display: Any, name: str) -> list[int]:
    """What a window manager says on the root window."""
    found = display.screen().root.get_full_property(display.intern_atom(name), X.AnyPropertyType)
    return list(found.value) if found else []


def tell_manager(desktop: XDesktop, window: int, name: str, *data: str | int) -> None:
    """As programs ask a window manager for something."""
    display = opened(desktop)
    values = [display.intern_atom(value) if isinstance(value, str) else value for value in data]
    target = display.create_resource_object("window", window)
    message = event.ClientMessage(
        window=target, client_type=display.intern_atom(name), data=(32, (values + [0] * 5)[:5])
    )
    display.screen().root.send_event(message, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
    display.sync()
    display.close()


@pytest.fixture
def notepads(desktop: XDesktop, manager: Any, tmp_path: Path) -> Iterator[dict[str, Path]]:
    """Two windows, one behind the other, and where they write down their keys."""
    environment = os.environ | desktop.environment
    files = {title: tmp_path / f"{colour}.txt" for title, colour in (("First", "red"), ("Second", "green"))}
    programs = [
        subprocess.Popen([sys.executable, "-c", NOTEPAD, title, file.stem, str(file)], env=environment)
        for title, file in files.items()
    ]
    until(lambda: {window.title for window in desktop.windows()} == set(files))
    yield files
    for program in programs:
        program.kill()
        program.wait()
    until(lambda: not desktop.windows())


def written(desktop: XDesktop, notepads: dict[str, Path], keys: str) -> dict[str, str]:
    """What the windows got after each key was pressed in the first and in the second of them, in turn."""
    before = {title: len(file.read_text()) for title, file in notepads.items()}
    for character in keys:
        for title in notepads:
            make_active(desktop, title)
            for down in (True, False):
                desktop.key(VK[f"KEY_{character.upper()}"], down)
    until(lambda: all(len(file.read_text()) >= before[title] + len(keys) for title, file in notepads.items()))
    return {title: file.read_text()[before[title] :] for title, file in notepads.items()}


@pytest.fixture
def game(desktop: XDesktop) -> Iterator[subprocess.Popen[bytes]]:
    environment = os.environ | desktop.environment
    with subprocess.Popen([sys.executable, "-c", GAME, "3"], env=environment) as process:
        until(lambda: [window.title for window in desktop.windows()] == ["Arrow Game"])
        yield process
        process.kill()
        process.wait()
        until(lambda: not desktop.windows())


def test_every_key_arrives_as_itself(desktop: XDesktop) -> None:
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


def test_who_asks_for_a_key_waits_for_the_connection(desktop: XDesktop) -> None:
    """A listener asks from a thread of its own, while another presses keys."""
    spare = desktop._keys._spare_codes()[-1]  # one of which nothing is known
    asking = threading.Thread(target=desktop._keys.vk, args=(spare,))
    with desktop._lock:
        asking.start()
        asking.join(0.2)
        assert asking.is_alive()
    asking.join()


def test_video_shows_the_held_keys(tmp_path: Path) -> None:
    player, evaluator = EventRecorder(), EventRecorder()
    player.begin(str(tmp_path))
    evaluator.begin(str(tmp_path), by_agent=False)
    player.input("press", "LEFT")
    evaluator.input("press", "SPACE")
    evaluator.input("release", "SPACE")
    player.input("type", "text")
    assert (tmp_path / KEYS).read_text() == "LEFT"
    assert (tmp_path / "events.jsonl").read_text().count("SPACE") == 2
    player.begin("")
    evaluator.begin("")


def test_every_button_and_the_wheel(desktop: XDesktop) -> None:
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


def test_a_listener_hears_what_a_program_has_grabbed(desktop: XDesktop) -> None:
    """Games grab the mouse, some of them the keyboard: F10 must reach the referee, and the log must be complete."""
    keys: queue.Queue[KeyboardEvent] = queue.Queue()
    mouse: queue.Queue[MouseEvent] = queue.Queue()
    stop = desktop.listen(keys.put, mouse.put)
    game = opened(desktop)
    root = game.screen().root
    held = (X.GrabModeAsync, X.GrabModeAsync)
    assert root.grab_keyboard(False, *held, X.CurrentTime) == X.GrabSuccess
    assert root.grab_pointer(False, X.ButtonPressMask, *held, X.NONE, X.NONE, X.CurrentTime) == X.GrabSuccess
    desktop.key(VK.F10, True)
    desktop.key(VK.F10, False)
    desktop.scroll(0, -1)
    assert [keys.get(timeout=30).vk for _ in range(2)] == [VK.F10, VK.F10]
    assert mouse.get(timeout=30).dy == -1
    game.close()
    stop()


def test_a_text_is_typed_with_its_capitals_and_its_signs(desktop: XDesktop, game: subprocess.Popen[bytes]) -> None:
    """Read back as keysyms by a second connection: what a program would be told."""
    told: queue.Queue[KeyboardEvent] = queue.Queue()
    stop = desktop.listen(told.put, lambda event: None)
    desktop.type_text("aB1 !")
    names = [VK(told.get(timeout=30).vk).name for _ in range(14)]
    stop()
    shifted = ["LSHIFT", "KEY_B", "KEY_B", "LSHIFT"]
    assert names == ["KEY_A"] * 2 + shifted + ["KEY_1"] * 2 + ["SPACE"] * 2 + ["LSHIFT", "KEY_1", "KEY_1", "LSHIFT"]


@pytest.mark.parametrize("presses", [250, pytest.param(5_000, marks=pytest.mark.slow)])
def test_no_key_is_lost_and_none_reaches_another_display(open_desktop: Callable[[], XDesktop], presses: int) -> None:
    """On two displays at once, from two processes."""
    desktops = [open_desktop(), open_desktop()]
    heard: list[list[int]] = [[], []]
    stops = [
        desktop.listen(partial(hear, into), lambda event: None) for desktop, into in zip(desktops, heard, strict=True)
    ]
    script = """
import sys
from proctor.agents.desktop.x11 import XDesktop
desktop = XDesktop(sys.argv[1])
for _ in range(int(sys.argv[3])):
    desktop.key(int(sys.argv[2]), True)
    desktop.key(int(sys.argv[2]), False)
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    keys = (VK.KEY_A, VK.RIGHT)
    pressing = [
        subprocess.Popen(
            [sys.executable, "-c", script, desktop.name, str(int(key)), str(presses)],
            env=environment | desktop.environment,
        )
        for desktop, key in zip(desktops, keys, strict=True)
    ]
    assert [process.wait() for process in pressing] == [0, 0]
    for desktop, into, key in zip(desktops, heard, keys, strict=True):
        desktop.key(VK.F10, True)  # the last: when it is heard, all before it were
        desktop.key(VK.F10, False)
        until(partial(has_heard, into, VK.F10))
        assert into == [key] * (2 * presses) + [VK.F10] * 2
    for stop in stops:
        stop()


def hear(into: list[int], event: KeyboardEvent) -> None:
    into.append(event.vk)


def has_heard(heard: list[int], key: int) -> bool:
    """Pressed and released."""
    return heard.count(key) == 2


def shows(desktop: XDesktop, window: WindowInfo, colour: tuple[int, int, int], at: tuple[int, int]) -> bool:
    """Whether it has this colour, as blue, green and red, in this row and column."""
    return tuple(desktop.capture(window)[at][:3]) == colour


def test_windows_are_found_focused_and_seen(desktop: XDesktop, manager: Any, game: subprocess.Popen[bytes]) -> None:
    window = window_titled(desktop, "Arrow")
    assert (window.title, window.width, window.height) == ("Arrow Game", 320, 240)
    desktop.activate(window)
    active = desktop.active_window()
    assert active is not None
    assert active.hWnd == window.hWnd
    until(lambda: shows(desktop, window, (200, 0, 0), (120, 160)))

    def press_and_look() -> bool:
        desktop.key(VK.RIGHT, True)
        desktop.key(VK.RIGHT, False)
        return shows(desktop, window, (0, 200, 0), (120, 160))

    until(press_and_look)
    assert desktop.capture(window).shape == (240, 320, 4)
    assert desktop.capture().shape == (480, 640, 4)


def test_keys_go_to_the_window_that_was_made_active(desktop: XDesktop, notepads: dict[str, Path]) -> None:
    """Thirty times each, in turn; the last has covered the other, and is the one to be seen."""
    keys = "abcdefghijklmnopqrstuvwxyzabcd"
    assert written(desktop, notepads, keys) == dict.fromkeys(notepads, keys)
    for title, colour in (("First", (0, 0, 255)), ("Second", (0, 255, 0))):
        make_active(desktop, title)
        until(partial(shows, desktop, window_titled(desktop, title), colour, (75, 100)))


def active_title(desktop: XDesktop) -> str:
    window = desktop.active_window()
    return window.title if window else ""


def test_a_window_with_the_keyboard_that_is_covered_is_raised(desktop: XDesktop, notepads: dict[str, Path]) -> None:
    make_active(desktop, "First")
    second = opened(desktop)
    second.create_resource_object("window", window_titled(desktop, "Second").hWnd).configure(stack_mode=X.Above)
    second.sync()
    second.close()
    until(lambda: desktop.windows()[0].title == "Second")
    assert active_title(desktop) == "First"
    make_active(desktop, "First")
    assert desktop.windows()[0].title == "First"
    assert written(desktop, notepads, "xyz") == dict.fromkeys(notepads, "xyz")


@pytest.mark.slow
@pytest.mark.parametrize("manager", ["openbox"], indirect=True)
@pytest.mark.parametrize(
    ("asked", "data"),
    [("WM_CHANGE_STATE", (3,)), ("_NET_WM_DESKTOP", (1, 2))],
    ids=["minimised", "on another desktop"],
)
def test_a_window_that_is_put_away_comes_back(
    desktop: XDesktop, notepads: dict[str, Path], asked: str, data: tuple[int, ...]
) -> None:
    tell_manager(desktop, window_titled(desktop, "First").hWnd, asked, *data)
    until(lambda: [window.title for window in desktop.windows()] == ["Second"])
    with pytest.raises(WindowNotFoundError):
        window_titled(desktop, "First")  # there is nothing to be seen of it
    make_active(desktop, "First")
    assert active_title(desktop) == "First"
    until(lambda: any(window.title == "First" and window.width == 200 for window in desktop.windows()))
    assert written(desktop, notepads, "xyz") == dict.fromkeys(notepads, "xyz")


@pytest.mark.slow
@pytest.mark.parametrize("manager", ["openbox"], indirect=True)
def test_a_window_that_stays_on_top_keeps_no_keys_to_itself(desktop: XDesktop, notepads: dict[str, Path]) -> None:
    window = window_titled(desktop, "First").hWnd
    tell_manager(desktop, window, "_NET_WM_STATE", 1, "_NET_WM_STATE_ABOVE", 0, 2)
    display = opened(desktop)
    until(lambda: said_of_all(display, "_NET_CLIENT_LIST_STACKING")[-1] == window)
    display.close()
    assert written(desktop, notepads, "xyz") == dict.fromkeys(notepads, "xyz")
    assert desktop.windows()[0].title == "First"


@pytest.mark.slow
@pytest.mark.parametrize("manager", ["openbox"], indirect=True)
def test_keys_find_their_window_when_the_manager_is_gone(
    desktop: XDesktop, notepads: dict[str, Path], manager: subprocess.Popen[bytes]
) -> None:
    manager.kill()
    manager.wait()
    assert written(desktop, notepads, "xyz") == dict.fromkeys(notepads, "xyz")


def test_a_window_that_is_not_there_is_named(desktop: XDesktop, game: subprocess.Popen[bytes]) -> None:
    with pytest.raises(WindowNotFoundError, match="'Arrow Game'"):
        window_titled(desktop, "Super Hexagon")


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_display() -> None:  # python-xlib leaves its socket to the garbage collector then
    with pytest.raises(DesktopError, match="cannot be opened"):
        XDesktop(":4242")


def test_a_desktop_whose_display_is_gone_is_closed() -> None:
    display = VirtualDisplay()
    display.start()
    desktop = XDesktop(display.name, display.authority)
    desktop.capture()
    stop = desktop.listen(lambda event: None, lambda event: None)
    display.close()
    stop()
    desktop.close()  # and the fixture of all tests looks for what it has left open


def exam(
    agent: str, episodes: int = 1, timeout: float = 300.0, attempts: int = 2, film: bool = False, **options: Any
) -> list[Any]:
    settings = {"window_name": "Arrow", "timeout": timeout, "attempts": attempts}
    players: dict[str, Any] = {"agent": f"{FILE}:{agent}", "limit": episodes, "film": film}
    return list(evaluate(f"{FILE}:ArrowGame", settings=settings, **players, **options).records())


@pytest.mark.parametrize("episodes", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_won_game_has_a_video(episodes: int) -> None:
    needs.program("ffmpeg", "ffmpeg")
    records = exam("Pressing", episodes=episodes, parallel=episodes, film=True)
    assert [record.outcome for record in records] == ["completed"] * episodes
    assert [record.score.value for record in records] == [1.0] * episodes
    folders = sorted(Path(os.environ["PROCTOR_STORE"]).glob("artifacts/*/0*"))
    assert len(folders) == episodes
    for folder in folders:
        assert frames(folder / "film.mp4") > 0
        events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        inputs = [(event["kind"], event["what"]) for event in events if event["event"] == "input"]
        assert inputs[:2] == [("press", "RIGHT"), ("release", "RIGHT")]
        assert len(inputs) >= 10


@pytest.mark.slow
def test_user_display_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    needs.program("ffmpeg", "ffmpeg")
    display = VirtualDisplay((701, 503))
    display.start()
    monkeypatch.setenv("XAUTHORITY", display.environment["XAUTHORITY"])
    try:
        (record,) = exam("Pressing", display=display.name, film=True)
        assert display.is_alive
    finally:
        display.close()
    assert (record.outcome, record.score.value, record.score.why) == ("completed", 1.0, "the evaluator saw the end")
    (film,) = Path(os.environ["PROCTOR_STORE"]).glob("artifacts/*/0*/film.mp4")
    assert frames(film) > 0


FILMING = """
import sys, time
from pathlib import Path
from proctor.agents.desktop.display import VirtualDisplay
from proctor.agents.desktop.video import VideoRecorder
display = VirtualDisplay()
display.start()
film = VideoRecorder(display.name, display.size, Path(sys.argv[1]), display.authority)
print("filming", flush=True)
time.sleep(1000)
"""


def test_recorder_ends_when_its_process_is_killed(tmp_path: Path) -> None:
    needs.program("ffmpeg", "ffmpeg")
    folder = tmp_path / "film"
    folder.mkdir()

    def filming() -> bool:
        for link in Path("/proc").glob("[0-9]*/cwd"):
            with suppress(OSError):
                if link.readlink() == folder:
                    return True
        return False

    with subprocess.Popen([sys.executable, "-c", FILMING, str(folder)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        until(filming)
        process.kill()
    until(lambda: not filming())


GONE = "no window has 'Arrow'"


@pytest.mark.parametrize(
    ("agent", "outcome", "why"),
    [
        pytest.param("Closing", "env_crash", ("ended with status 0", GONE), marks=pytest.mark.slow),
        pytest.param("Crashing", "env_crash", ("ended with status -6", GONE), marks=pytest.mark.slow),
        pytest.param("KillingTheGame", "env_crash", ("ended with status -9", GONE), marks=pytest.mark.slow),
        pytest.param("Mistyping", "agent_crash", ("no window has 'Arow'",), marks=pytest.mark.slow),
        pytest.param("Claiming", "agent_crash", ("all is lost",), marks=pytest.mark.slow),
        pytest.param("PressingF10", "stopped", ("",), marks=pytest.mark.slow),
        ("DeafToF10", "stopped", ("stopped by hand",)),
    ],
)
def test_what_can_go_wrong_on_a_display(agent: str, outcome: str, why: tuple[str, ...]) -> None:
    episodes = 1 if agent == "DeafToF10" else 2  # also in the one after it
    records = exam(agent, episodes=episodes)
    assert len(records) == episodes
    for record in records:
        assert record.outcome == outcome, record.score.why
        assert any(said in record.score.why for said in why), record.score.why
        assert len(record.outputs) == 1, "whoever loses a game does not get another"


@pytest.mark.slow
def test_video_that_breaks_off_is_reported() -> None:
    needs.program("ffmpeg", "ffmpeg")
    (record,) = exam("KillingTheFilm", film=True)
    assert record.outcome == "completed"
    assert "the film broke off" in record.score.why


def test_a_recorder_that_writes_nothing_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr("proctor.agents.desktop.video.STARTING", 0.0)
    recording = VideoRecorder(":0", (64, 64), tmp_path)
    assert recording.close() == "the video lacks its beginning: ffmpeg wrote nothing in the first 0 s"


def test_one_keyboard_is_for_one_agent() -> None:
    with pytest.raises(UsageError, match="one keyboard"):
        exam("Pressing", parallel=2, display=":7")


@pytest.mark.parametrize("name", ["agents/hexagon", "agents/window"])
def test_task_in_a_window_needs_a_display(name: str) -> None:
    settings = {"command": "true", "window": "x", "text": "y"} if name == "agents/window" else {}
    with pytest.raises(UsageError, match="--display none"):
        evaluate(name, agent=f"{FILE}:Idle", display="none", limit=1, settings=settings)


def test_a_game_that_is_lost_in_play_is_a_failure_if_faults_fail() -> None:
    settings = {"window_name": "Arrow", "timeout": 300.0}
    report = evaluate(f"{FILE}:ArrowGame", agent=f"{FILE}:Crashing", limit=1, settings=settings, film=False)
    assert report.metrics["success"].n == 0
    assert report.metrics["success_if_faults_fail"].value == 0.0


def test_game_that_is_quit_counts_as_played(tmp_path: Path) -> None:
    (tmp_path / "game.py").write_text(GAME)
    command = shlex.join([sys.executable, str(tmp_path / "game.py"), "5"])
    settings = {"command": command, "window": "Arrow", "image": "none.png", "timeout": 300.0, "look_every": 300.0}
    report = evaluate("agents/window", agent=f"{FILE}:Closing", limit=1, settings=settings, film=False)
    (record,) = report.records()
    assert record.score is not None
    assert (record.outcome, record.score.value) == ("completed", 0.0), record.score.why
    assert record.score.answer["exit_code"] == 0


@pytest.mark.slow
def test_a_window_of_the_agents_own_is_no_success() -> None:
    """It has the title of the game's, and is above it."""
    (record,) = exam("Forging", display="virtual:1280x720")
    assert (record.outcome, record.score.value) == ("completed", 0.0), record.score.why


def test_a_window_says_nothing_but_the_server_knows_whose_it_is(desktop: XDesktop) -> None:
    """Nor can it lie: what it says is asked for only where the server does not know."""
    connection = opened(desktop)
    window = connection.screen().root.create_window(0, 0, 10, 10, 0, X.CopyFromParent)
    window.set_wm_name("Mine")
    window.change_property(connection.intern_atom("_NET_WM_PID"), Xatom.CARDINAL, 32, [1])
    window.map()
    connection.sync()
    assert desktop.window_pid(window_titled(desktop, "Mine")) == os.getpid()
    connection.close()


PLAY = [
    "run",
    "agents/hexagon",
    "--agent",
    "proctor.agents.games.hexagon.window_players:RandomWindowAgent",
    "--limit",
    "1",
]


@pytest.mark.parametrize(
    ("missing", "arguments", "said"),
    [
        ("Xlib", PLAY, "a task in a window needs the extra 'desktop'"),
        ("mss", PLAY, "a task in a window needs the extra 'desktop'"),
        ("pygame", PLAY, "this game needs the extra 'desktop'"),
        ("Xvfb", [*PLAY, "--no-film"], "a virtual display needs Xvfb, which was not found: apt-get install xvfb"),
        ("ffmpeg", PLAY, "a film needs ffmpeg, which was not found: apt-get install ffmpeg; or leave it out"),
        (
            "faketime",
            [*PLAY, "--no-film", "--set", "clock=paused"],
            "the clock `paused` needs faketime, which was not found: apt-get install faketime; or use",
        ),
        (
            "rapidocr",
            shlex.split(f"run agents/window --agent {FILE}:Idle --command true --window Any --set text=Won"),
            "reading text from frames needs the extra 'desktop'",
        ),
    ],
)
def test_what_is_missing_is_said_once_and_before_the_first_episode(
    proctor: Command, monkeypatch: pytest.MonkeyPatch, missing: str, arguments: list[str], said: str
) -> None:
    found = shutil.which
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.setattr(shutil, "which", lambda name, *more: None if name == missing else found(name, *more))
    done = proctor(*arguments)
    assert done.returncode == 2, done.stderr
    assert f"proctor: {said}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("size", ["99999x99999", "8193x480", "640x15", "640x0", "9" * 5000 + "x9"], ids=len)
def test_a_size_that_no_display_has(size: str) -> None:
    with pytest.raises(UsageError, match="width and height must be 16 to 8192"):
        parse_size(f"virtual:{size}")


@pytest.mark.parametrize("text", ["virtual:", "virtual:640", "virtual:-1x5", "virtually:640x480", "virtual:٦٤٠x480"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(UsageError, match="expected virtual:WIDTHxHEIGHT"):
        parse_size(text)


def test_sizes() -> None:
    assert [parse_size(text) for text in ("virtual", "virtual:16x8192")] == [(640, 480), (16, 8192)]


def test_a_display_that_is_killed(tmp_path: Path) -> None:
    """The first display dies in the middle, which the agent may have caused; the next episode has another."""
    first, second = exam("KillingTheDisplay", episodes=2, timeout=1.0)
    assert [output.finish for output in first.outputs] == ["env_crash"], first.outputs
    assert "the display died" in first.score.why
    assert json.loads(first.outputs[0].text)["by_agent"]
    assert [output.finish for output in second.outputs] == ["timeout"], second.outputs
    assert second.score.value == 0.0


@pytest.mark.slow
def test_connections_that_an_agent_cut_are_there_again_in_the_next_episode() -> None:
    first, second = exam("CuttingConnections", episodes=2)
    assert json.loads(first.outputs[0].text)["by_agent"], first.score.why
    assert second.outcome == "completed", second.score.why


@pytest.mark.parametrize(
    ("agent", "outcome"),
    [("ClosingAtTheEnd", "completed"), pytest.param("MistypingAtTheEnd", "agent_crash", marks=pytest.mark.slow)],
)
def test_a_game_that_closes_its_window_at_its_end(agent: str, outcome: str) -> None:
    """The agent does not find the window any more: that is the game's doing. Its own typing error is not."""
    settings = {"window_name": "Arrow", "timeout": 300.0}
    report = evaluate(f"{FILE}:ClosingGame", agent=f"{FILE}:{agent}", limit=1, settings=settings, film=False)
    (record,) = report.records()
    assert record.score is not None
    assert record.outcome == outcome, record.score.why
    assert len(record.outputs) == 1


def test_vision_model_plays(serve: Serve) -> None:
    """It is shown the window and presses what it answers."""

    def look(body: dict[str, Any], number: int) -> str:
        text, picture = body["messages"][0]["content"]
        assert "Make it green" in text["text"]
        assert picture["image_url"]["url"].startswith("data:image/png;base64,")
        return "I see a blue window.\nright" if number else "what is this?"

    server = serve(look)
    settings = {"window_name": "Arrow", "timeout": 300.0, "task_description": "Make it green."}
    report = evaluate(f"{FILE}:ArrowGame", "openai/eyes", base_url=server.url, limit=1, settings=settings, film=False)
    (record,) = report.records()
    assert record.outcome == "completed", record.score
    assert record.score is not None
    assert record.score.value == 1.0
    assert record.usage.output_tokens > 0


def test_model_that_never_answers_is_a_fault(serve: Serve) -> None:
    """Its server may be broken; to press nothing would be a score."""

    async def reply(body: dict[str, Any], number: int) -> str:
        await server.gate.wait()
        return "NONE"

    server = serve(reply)
    settings = {"window_name": "Arrow", "timeout": 1.0}
    report = evaluate(f"{FILE}:ArrowGame", "openai/eyes", base_url=server.url, limit=1, settings=settings, film=False)
    (record,) = report.records()
    assert record.outcome == "agent_hang", record.score
    assert record.score is not None
    assert record.score.value is None


def test_new_writes_an_agent(proctor: Command, tmp_path: Path) -> None:
    done = proctor("new", "agent", "my-player")
    assert done.returncode == 0, done.stderr
    assert "proctor run agents/hexagon --agent my_player.py:MyPlayer" in done.stdout
    for name in ("my_player.py", "test_my_player.py"):
        compile((tmp_path / name).read_text(), name, "exec")


@pytest.mark.slow
def test_the_agent_that_new_writes_plays(proctor: Command, tmp_path: Path) -> None:
    assert proctor("new", "agent", "my-player").returncode == 0
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "test_my_player.py"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
