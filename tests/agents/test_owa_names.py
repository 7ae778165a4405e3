"""Agents written for owa-core, owa-env-desktop and owa-msgs 0.6 run here with other imports."""

# ruff: noqa: E402 - where something is missing, the reason for the skip comes before the imports

from __future__ import annotations

import io
import json
import math
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from helpers import needs
from helpers.paths import CHECKOUT, HELPERS

needs.module("Xlib", "desktop")
needs.module("pygame", "desktop")
needs.program("Xvfb", "xvfb")

from helpers.desktop_players import GAME
from proctor import evaluate
from proctor.agents.desktop import (
    CALLABLES,
    LISTENERS,
    MESSAGES,
    RUNNABLES,
    VK,
    DesktopError,
    KeyboardEvent,
    KeyboardState,
    Listener,
    MediaRef,
    MouseEvent,
    OWAMessage,
    PointerBallisticsConfig,
    RawMouseEvent,
    Runnable,
    ScreenCaptured,
    WindowInfo,
    activate_module,
    char_to_vk,
    get_component,
    list_components,
    names,
    vk_to_name,
)
from proctor.agents.desktop.display import VirtualDisplay
from proctor.agents.desktop.registry import Registry
from proctor.agents.desktop.x11 import XDesktop

THEIRS = CHECKOUT / ".venv-owa" / "bin" / "python"
GUIDE = CHECKOUT / "docs" / "desktop.md"


@pytest.fixture(scope="module")
def display() -> Iterator[VirtualDisplay]:
    display = VirtualDisplay()
    display.start()
    yield display
    display.close()


@pytest.fixture(autouse=True)
def desktop(display: VirtualDisplay, monkeypatch: pytest.MonkeyPatch) -> Iterator[XDesktop]:
    """The desktop of this process, as CALLABLES and LISTENERS find it."""
    for name, value in display.environment.items():
        monkeypatch.setenv(name, value)
    names.desktop.cache_clear()
    opened = names.desktop()
    assert isinstance(opened, XDesktop)
    yield opened
    opened.close()
    names.desktop.cache_clear()


@pytest.fixture
def game(display: VirtualDisplay, desktop: XDesktop) -> Iterator[WindowInfo]:
    with subprocess.Popen([sys.executable, "-c", GAME, "3"], env=display.environment) as process:
        until(lambda: [window.title for window in desktop.windows()] == ["Arrow Game"])
        yield desktop.windows()[0]
        process.kill()
        process.wait()
    until(lambda: not desktop.windows())


def until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def heard(listener: str, act: Callable[[], Any], events: int) -> list[Any]:
    """What a listener is told while something is done."""
    told: queue.Queue[Any] = queue.Queue()
    with LISTENERS[listener]().configure(callback=told.put).session as running:
        assert running.is_alive()
        act()
        found = [told.get(timeout=30) for _ in range(events)]
    assert not running.is_alive()
    return found


def keys_heard(act: Callable[[], Any], events: int) -> list[tuple[str, str]]:
    return [(VK(event.vk).name, event.event_type) for event in heard("keyboard", act, events)]


def test_every_name_is_in_the_guide_with_what_it_does_here() -> None:
    table = [line for line in GUIDE.read_text().splitlines() if line.startswith("| `")]
    for registry in (CALLABLES, LISTENERS, RUNNABLES, MESSAGES):
        for full in registry:
            assert any(line.startswith(f"| `{full}`") for line in table), full
            assert registry[full.partition("/")[2]] is registry[full]


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["Reactive", "Steady"])
def test_agents_written_for_theirs_play(agent: str) -> None:
    settings = {"window_name": "Arrow", "timeout": 300, "attempts": 1}
    game, players = (f"{HELPERS}/{file}.py" for file in ("desktop_players", "owa_players"))
    options: dict[str, Any] = {"settings": settings, "limit": 1, "film": False}
    (record,) = evaluate(f"{game}:ArrowGame", agent=f"{players}:{agent}", **options).records()
    assert record.score is not None
    assert (record.outcome, record.score.why) == ("completed", "the evaluator saw the end")


LISTING = """
import json
import math
from owa.core import MESSAGES, list_components
from owa.env.desktop.constants import VK
keys = {name: int(key) for name, key in VK.__members__.items()}
messages = {
    "KeyboardEvent": {"event_type": "press", "vk": 65, "timestamp": 7},
    "KeyboardState": {"buttons": [65]},
    "MouseEvent": {"event_type": "click", "x": 1, "y": 2, "button": "left", "pressed": True},
    "MouseState": {"x": 1, "y": 2, "buttons": ["left"]},
    "PointerBallisticsConfig": {},
    "RawMouseEvent": {"last_x": 1, "last_y": -1, "button_flags": 1024, "button_data": 120},
    "ScreenCaptured": {"utc_ns": 5, "media_ref": {"uri": "film.mp4", "pts_ns": 3}},
    "WindowInfo": {"title": "Game", "rect": [0, 0, 4, 3], "hWnd": 9},
}
told = {name: MESSAGES[f"desktop/{name}"](**fields).model_dump(mode="json") for name, fields in messages.items()}
names = {"components": list_components(), "keys": keys, "messages": list(MESSAGES)}
print(json.dumps(names | {"given": messages, "told": told}))
"""


@pytest.mark.slow
def test_there_is_no_name_key_or_message_of_theirs_that_is_not_here() -> None:
    if not THEIRS.exists():
        pytest.skip("owa-core is not installed: make .venv/owa")
    done = subprocess.run([THEIRS, "-c", LISTING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout)
    assert {kind: set(names) for kind, names in theirs["components"].items()} == {
        kind: set(names) for kind, names in list_components().items()
    }
    assert theirs["keys"] == {name: int(key) for name, key in VK.__members__.items()}
    assert set(theirs["messages"]) == set(MESSAGES)
    for name, fields in theirs["given"].items():
        assert MESSAGES[name](**fields).model_dump(mode="json") == theirs["told"][name], name


def test_registries_are_asked_as_theirs_are() -> None:
    assert CALLABLES["desktop/keyboard.press"] is CALLABLES["keyboard.press"]
    assert "desktop/keyboard.press" in CALLABLES
    assert "keyboard.press" in CALLABLES
    assert "keyboard.none" not in CALLABLES
    assert CALLABLES.get("keyboard.none") is None
    with pytest.raises(KeyError, match=r"CALLABLES has no 'keyboard\.none'"):
        CALLABLES["keyboard.none"]
    assert get_component("callables", namespace="desktop", name="mouse.move") is CALLABLES["mouse.move"]
    assert set(get_component("listeners", namespace="std")) == {"tick"}
    assert set(get_component("runnables")) == set(RUNNABLES)
    assert list_components("callables", namespace="std") == {"callables": ["std/time_ns"]}
    assert set(list_components()) == {"callables", "listeners", "runnables"}
    with pytest.raises(ValueError, match="no components 'gadgets'"):
        list_components("gadgets")
    for module in ("owa.env.desktop", "owa.env.gst", "owa.env.std"):
        activate_module(module)


def test_names_of_users_own_are_added() -> None:
    registry: Registry[int] = Registry("NUMBERS", {"desktop/one": 1})
    registry["mine/two"] = 2
    registry["one"] = 10
    assert dict(registry.data) == {"desktop/one": 10, "mine/two": 2}
    del registry["one"]
    assert list(registry) == ["mine/two"]
    registry["mine/e"] = "math:e"  # type: ignore[assignment]
    assert registry["mine/e"] == math.e


def test_module_of_a_users_own_registers_its_components(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_parts.py").write_text(
        "from proctor.agents.desktop import CALLABLES\n"
        "@CALLABLES.register('own/double')\ndef double(x):\n    return 2 * x\n"
    )
    (tmp_path / "own_plugin.py").write_text("def activate():\n    import own_parts\n")
    (tmp_path / "own_broken.py").write_text("import own_missing\n")
    try:
        assert activate_module("own_plugin") is sys.modules["own_plugin"]
        assert CALLABLES["own/double"](21) == 42
        with pytest.raises(ModuleNotFoundError, match="own_missing"):
            activate_module("own_broken")
        with pytest.raises(ValueError, match=r"no module 'owa\.env\.elsewhere'"):
            activate_module("owa.env.elsewhere")
    finally:
        CALLABLES.data.pop("own/double", None)
        for name in ("own_plugin", "own_parts", "own_broken"):
            sys.modules.pop(name, None)


def test_former_names_are_known() -> None:
    assert CALLABLES["clock.time_ns"] is CALLABLES["std/time_ns"]
    assert LISTENERS["clock/tick"] is LISTENERS["std/tick"]


@pytest.mark.parametrize(
    ("key", "name"),
    [(VK.RIGHT, "RIGHT"), (39, "RIGHT"), ("a", "KEY_A"), ("7", "KEY_7"), (" ", "SPACE"), ("enter", "RETURN"),
     ("esc", "ESCAPE"), ("page_up", "PRIOR"), ("f5", "F5"), ("ctrl_r", "RCONTROL"), (";", "OEM_1")],
)  # fmt: skip
def test_keys_are_pressed_by_code_by_character_and_by_name(key: str | int, name: str) -> None:
    def stroke() -> None:
        CALLABLES["desktop/keyboard.press"](key)
        CALLABLES["keyboard.release"](key)

    assert keys_heard(stroke, 2) == [(name, "press"), (name, "release")]


def test_a_capital_is_pressed_with_shift_and_stays_down() -> None:
    shifted = [("LSHIFT", "press"), ("KEY_A", "press"), ("LSHIFT", "release")]
    assert keys_heard(lambda: CALLABLES["keyboard.press"]("A"), 3) == shifted
    assert CALLABLES["keyboard.get_state"]().buttons == {VK.KEY_A}
    CALLABLES["keyboard.release"]("A")
    with pytest.raises(ValueError, match="there is no key 'nothing'"):
        CALLABLES["keyboard.press"]("nothing")


def test_states_have_buttons() -> None:
    for key in (VK.LSHIFT, VK.RIGHT):
        CALLABLES["keyboard.press"](key)
    CALLABLES["mouse.press"]("left")
    state = CALLABLES["desktop/keyboard.get_state"]()
    assert isinstance(state, KeyboardState)
    assert state.buttons == {VK.LSHIFT, VK.SHIFT, VK.RIGHT, VK.LBUTTON}
    assert VK.RIGHT in state
    assert CALLABLES["mouse.get_state"]().buttons == {"left"}
    (told,) = heard("keyboard_state", lambda: None, 1)
    assert told.buttons == state.buttons
    (place,) = heard("desktop/mouse_state", lambda: None, 1)
    assert (place.x, place.y) == CALLABLES["mouse.position"]()
    CALLABLES["keyboard.release_all_keys"]()
    CALLABLES["mouse.release"]("left")
    assert CALLABLES["keyboard.get_state"]().buttons == set()
    assert CALLABLES["mouse.get_state"]().buttons == set()


def test_text_and_repeated_keys() -> None:
    typed = keys_heard(lambda: CALLABLES["keyboard.type"]("ab"), 4)
    assert [name for name, _ in typed] == ["KEY_A", "KEY_A", "KEY_B", "KEY_B"]
    held = keys_heard(lambda: CALLABLES["keyboard.press_repeat"]("a", 0.05, 0.02, 0.01), 2)
    assert held[0] == ("KEY_A", "press")


def test_the_mouse_moves_clicks_and_scrolls() -> None:
    def act() -> None:
        CALLABLES["mouse.move"](20, 30)
        CALLABLES["mouse.click"]("right", 1)
        CALLABLES["mouse.scroll"](40, 50, 0, -1)
        CALLABLES["mouse.scroll"](1, 0)

    events = heard("mouse", act, 6)
    assert [event.event_type for event in events] == ["move", "click", "click", "move", "scroll", "scroll"]
    assert [(event.button, event.pressed) for event in events[1:3]] == [("right", True), ("right", False)]
    assert (events[4].x, events[4].y) == (40, 50)  # where the pointer was when the event was read
    assert [(event.dx, event.dy) for event in events[4:]] == [(0, -1), (1, 0)]
    with pytest.raises(TypeError, match="not 3 numbers"):
        CALLABLES["mouse.scroll"](1, 2, 3)
    with pytest.raises(ValueError, match="no mouse button 'side'"):
        CALLABLES["mouse.press"]("side")


def test_raw_movements_are_relative() -> None:
    CALLABLES["mouse.move"](100, 100)

    def act() -> None:
        CALLABLES["mouse.move"](107, 90)
        CALLABLES["mouse.click"]("middle")
        CALLABLES["mouse.scroll"](0, -2)

    moved, down, up, *turned = heard("raw_mouse", act, 5)
    flags = RawMouseEvent.ButtonFlags
    assert (moved.dx, moved.dy, moved.button_flags) == (7, -10, flags.RI_MOUSE_NOP)
    assert [down.button_flags, up.button_flags] == [flags.RI_MOUSE_MIDDLE_BUTTON_DOWN, flags.RI_MOUSE_MIDDLE_BUTTON_UP]
    assert [(event.button_flags, event.button_data) for event in turned] == [(flags.RI_MOUSE_WHEEL, 65536 - 120)] * 2


def test_settings_of_windows() -> None:
    assert CALLABLES["mouse.get_pointer_ballistics_config"]() == PointerBallisticsConfig()
    with pytest.raises(OSError, match="setting of Windows"):
        CALLABLES["keyboard.get_keyboard_repeat_timing"](return_seconds=False)
    for recorder in (LISTENERS["omnimodal.appsink_recorder"], RUNNABLES["omnimodal.subprocess_recorder"]):
        with pytest.raises(DesktopError, match="GStreamer's recorders are not here"):
            recorder()


def test_windows_by_a_part_of_their_title(game: WindowInfo) -> None:
    with pytest.raises(ValueError, match="no window has 'Nothing'"):  # as theirs
        CALLABLES["window.get_window_by_title"]("Nothing")
    assert CALLABLES["window.get_window_by_title"]("Arrow") == game
    CALLABLES["desktop/window.make_active"]("Arrow")
    assert CALLABLES["window.get_active_window"]() == game
    assert CALLABLES["window.is_active"]("Arrow")
    assert CALLABLES["window.get_pid_by_title"]("Arrow") > 0
    (active,) = heard("window", lambda: None, 1)
    assert active.model_dump() == {"title": "Arrow Game", "rect": game.rect, "hWnd": game.hWnd}
    assert (active.width, active.height) == (320, 240)

    @CALLABLES["window.when_active"]("Arrow")  # type: ignore[untyped-decorator]
    def double(number: int) -> int:
        return 2 * number

    assert double(number=21) == 42
    assert CALLABLES["window.when_active"]("Nothing")(double)(21) is None
    assert CALLABLES["window.when_active"]("Arrow", double, 4) == 8
    assert CALLABLES["screen.capture"]().shape == (480, 640, 3)


def test_frames_come_by_themselves_or_when_they_are_wanted(game: WindowInfo, tmp_path: Path) -> None:
    CALLABLES["window.make_active"]("Arrow")
    CALLABLES["mouse.move"](game.rect[0] + 5, game.rect[1] + 5)
    blue = [200, 0, 0, 255]
    plain = LISTENERS["screen"]().configure(
        callback=(frames := queue.Queue[ScreenCaptured]()).put, fps=50, window_name="Arrow", show_cursor=False
    )
    with plain.session:
        until(lambda: frames.get(timeout=30).load_frame_array()[120, 160].tolist() == blue)
        frame = frames.get(timeout=30)
    assert frame.shape == frame.source_shape == (320, 240)
    assert frame.utc_ns is not None
    assert (frame.load_frame_array() == blue).all()
    capture = RUNNABLES["gst/screen_capture"]().configure(fps=50, window_name="Arrow")
    with capture.session as running:
        pointed, later = running.grab(), running.grab()
    assert later.utc_ns > pointed.utc_ns
    assert not (pointed.frame_arr[:40, :40] == blue).all(), "the pointer is not there"
    frame.embed_as_data_uri()
    read = MESSAGES["ScreenCaptured"].model_validate_json(frame.model_dump_json())
    assert isinstance(read, ScreenCaptured)
    assert (read.to_rgb_array() == [0, 0, 200]).all()


def test_a_screen_listener_measures_itself() -> None:
    told: queue.Queue[Any] = queue.Queue()

    def on_frame(frame: ScreenCaptured, metrics: Any) -> None:
        told.put((metrics.fps, metrics.latency))

    with LISTENERS["gst/screen"]().configure(callback=on_frame, fps=100).session:
        figures = [told.get(timeout=30) for _ in range(3)]
    assert figures[0][0] == 0
    assert all(fps > 0 and latency > 0 for fps, latency in figures[1:])
    with pytest.raises(DesktopError, match="not a monitor"):
        LISTENERS["screen"]().configure(callback=print, monitor_idx=1)


def test_time() -> None:
    ticks: queue.Queue[int] = queue.Queue()
    with (
        LISTENERS["std/tick"]().configure(callback=lambda: ticks.put(CALLABLES["std/time_ns"]()), interval=0.01).session
    ):
        first, second = ticks.get(timeout=30), ticks.get(timeout=30)
    assert first < second


def test_listeners_and_runnables_of_users_own() -> None:
    class Counter(Runnable):
        def on_configure(self, start: int) -> None:
            self.count = start

        def loop(self, *, stop_event: threading.Event) -> None:
            self.count += 1
            stop_event.wait()

    class Echo(Listener):
        def on_configure(self, *, word: str) -> None:
            self.word = word

        def loop(self, stop_event: threading.Event, callback: Callable[[str], None]) -> None:
            callback(self.word)
            stop_event.wait()

    with Counter().configure(41).session as counter:
        until(lambda: counter.count == 42)
    words: list[str] = []
    session = Echo().configure(callback=words.append, word="yes").session
    with session:
        until(lambda: words == ["yes"])
        assert session.is_alive()
    assert not session.is_alive()
    with pytest.raises(RuntimeError, match="call configure"):
        Counter().start()
    with pytest.raises(AttributeError, match="no callback"):
        Echo().get_callback()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_listener_whose_callback_raises_is_not_alive() -> None:
    def fail(event: KeyboardEvent) -> None:
        raise ValueError(event.vk)

    listener = LISTENERS["keyboard"]().configure(callback=fail)
    with listener.session:
        CALLABLES["keyboard.press"]("a")
        CALLABLES["keyboard.release"]("a")
        listener.join(30)
        assert not listener.is_alive()


def test_messages_are_theirs() -> None:
    event = KeyboardEvent(event_type="press", vk=65)
    assert event.model_dump() == {"event_type": "press", "vk": 65, "timestamp": None}
    buffer = io.BytesIO()
    event.serialize(buffer)
    assert buffer.getvalue() == b'{"event_type":"press","vk":65}'
    assert MESSAGES["desktop/KeyboardEvent"].deserialize(io.BytesIO(buffer.getvalue())) == event
    assert event.get_schema()["required"] == ["event_type", "vk"]
    for wrong in ({"event_type": "hold", "vk": 1}, {"event_type": "press", "vk": 1, "key": "a"}):
        with pytest.raises(ValueError, match="validation error"):
            KeyboardEvent.model_validate(wrong)
    assert MouseEvent(event_type="move", x=1, y=2).model_dump(exclude_none=True) == {
        "event_type": "move",
        "x": 1,
        "y": 2,
    }
    assert "MouseSpeed" in PointerBallisticsConfig().model_dump(by_alias=True)
    with pytest.raises(ValueError, match="frame_arr or media_ref"):
        ScreenCaptured()
    with pytest.raises(NotImplementedError):
        _ = RawMouseEvent(last_x=1, last_y=1, us_flags=RawMouseEvent.UsFlags.MOUSE_MOVE_ABSOLUTE).dx
    with pytest.raises(ValueError, match="button_flags must be 0 to 0xFFF"):
        RawMouseEvent(last_x=0, last_y=0, button_flags=RawMouseEvent.ButtonFlags(0x1000))

    class Score(OWAMessage):
        _type = "game/Score"
        score: int

    assert Score.verify_type()
    assert (char_to_vk("a"), vk_to_name(65), vk_to_name(7)) == (65, "KEY_A", "Unknown")


def test_references_to_pictures(tmp_path: Path) -> None:
    reference = MediaRef(uri="frame.png")
    assert reference.is_relative_path
    assert not reference.is_video
    there = ScreenCaptured(media_ref=reference).resolve_relative_path(str(tmp_path / "episode.mcap"))
    assert there.media_ref == MediaRef(uri=f"{tmp_path}/frame.png")
    Image.new("RGB", (4, 3), "red").save(tmp_path / "frame.png")
    assert there.load_frame_array()[2, 3].tolist() == [0, 0, 255, 255]
    assert there.shape == (4, 3)
    assert MediaRef(uri=(tmp_path / "frame.png").as_uri()).to_pil_image().size == (4, 3)
    with pytest.raises(DesktopError, match="not from https"):
        MediaRef(uri="https://host.example/frame.png").to_rgb_array()
    assert MediaRef(uri="https://host.example/frame.png").is_remote
