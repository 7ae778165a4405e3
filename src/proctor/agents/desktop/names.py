"""The desktop under the names that agents and evaluators use: CALLABLES, LISTENERS, frames in base64."""

from __future__ import annotations

import base64
import io
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from typing import Any, Self

import numpy
from PIL import Image

from proctor.agents.constants import TIMES
from proctor.agents.desktop.interface import (
    Desktop,
    Stop,
    WindowInfo,
    WindowNotFoundError,
    make_active,
    window_titled,
)
from proctor.agents.desktop.vk import VK
from proctor.agents.recording import recording

MODULES = ("owa.env.desktop", "owa.env.gst")
STATE_INTERVAL = 1.0  # seconds between two reports of the listeners that tell a state
WHEN_ACTIVE_INTERVAL = 0.05
_MOUSE_BUTTONS = {"left": VK.LBUTTON, "middle": VK.MBUTTON, "right": VK.RBUTTON, "x1": VK.XBUTTON1, "x2": VK.XBUTTON2}


def activate_module(name: str) -> None:
    """Says which part of the desktop is needed. All of it is there from the start; an unknown name is an error."""
    if name not in MODULES:
        raise ValueError(f"there is no module {name!r}; there are: {', '.join(MODULES)}")


@cache
def desktop() -> Desktop:
    """The desktop of this process, opened when it is first needed."""
    from proctor.agents.desktop.x11 import XDesktop

    return XDesktop()


def _find(name: str) -> WindowInfo:
    return window_titled(desktop(), name)


def _press(key: int) -> None:
    desktop().key(int(key), True)
    recording.input("press", VK(key).name)


def _release(key: int) -> None:
    desktop().key(int(key), False)
    recording.input("release", VK(key).name)


def _type(text: str) -> None:
    desktop().type_text(text)
    recording.input("type", text)


def _press_repeat(key: int, press_time: float, initial_delay: float = 0.5, repeat_delay: float = 0.033) -> None:
    """Holds a key as a keyboard would report it: pressed again and again after a first delay."""
    begun = time.monotonic()
    due = begun
    _press(key)
    due += initial_delay
    while due < begun + press_time:
        time.sleep(max(0.0, due - time.monotonic()))
        _press(key)
        due += repeat_delay
    time.sleep(max(0.0, begun + press_time - time.monotonic()))
    _release(key)


def _release_all_keys() -> None:
    for key in desktop().keys_down():
        _release(key)


def _mouse_button(button: str) -> int:
    if button not in _MOUSE_BUTTONS:
        raise ValueError(f"there is no mouse button {button!r}; there are: {', '.join(_MOUSE_BUTTONS)}")
    return int(_MOUSE_BUTTONS[button])


def _mouse_press(button: str = "left") -> None:
    _press(_mouse_button(button))


def _mouse_release(button: str = "left") -> None:
    _release(_mouse_button(button))


def _click(button: str = "left", count: int = 1, press_time: float = TIMES.MOUSE_PRESS_DELAY) -> None:
    """Holds the button for so many seconds: a game that only looks now and then whether it is down sees it, too."""
    for number in range(count):
        if number:
            time.sleep(press_time)
        _mouse_press(button)
        try:
            time.sleep(press_time)
        finally:
            _mouse_release(button)


def release_everything() -> None:
    """Keys and mouse buttons, whoever holds them."""
    _release_all_keys()
    for button in desktop().buttons_down():
        _release(button)


def _move(x: int, y: int) -> None:
    desktop().move(int(x), int(y))
    recording.input("move", x=int(x), y=int(y))


def _scroll(dx: int, dy: int) -> None:
    desktop().scroll(int(dx), int(dy))
    recording.input("scroll", dx=int(dx), dy=int(dy))


def _mouse_state() -> dict[str, Any]:
    x, y, _ = desktop().pointer()
    return {"x": x, "y": y, "buttons": {VK(button) for button in desktop().buttons_down()}}


def _pid_by_title(name: str) -> int:
    pid = desktop().window_pid(_find(name))
    if pid is None:
        raise WindowNotFoundError(f"the window {name!r} does not say whose it is")
    return pid


def _is_active(name: str) -> bool:
    active = desktop().active_window()
    return active is not None and name in active.title


def _when_active(name: str, run: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Waits until the window has the keyboard, then runs it."""
    while not _is_active(name):
        time.sleep(WHEN_ACTIVE_INTERVAL)
    return run(*args, **kwargs)


def _capture(window_name: str | None = None) -> numpy.ndarray[Any, Any]:
    """What is to be seen, as rows of blue, green and red."""
    return _seen(_find(window_name) if window_name else None)


def _seen(window: WindowInfo | None) -> numpy.ndarray[Any, Any]:
    frame = desktop().capture(window)
    recording.frame(fingerprint(frame))
    return frame[:, :, :3]


def fingerprint(frame: numpy.ndarray[Any, Any]) -> str:
    """Of every eighth point of every eighth line: a few microseconds, and enough to tell two frames apart."""
    return blake2b(frame[::8, ::8].tobytes(), digest_size=8).hexdigest()


def get_current_frame(window_name: str) -> numpy.ndarray[Any, Any]:
    """What the window shows now, as rows of red, green and blue."""
    return frame_of(_find(window_name))


def frame_of(window: WindowInfo) -> numpy.ndarray[Any, Any]:
    """The same, of a window that was found already."""
    return _seen(window)[:, :, ::-1]


def get_current_frame_base64(window_name: str) -> str:
    """What the window shows now, as PNG in base64."""
    return base64.b64encode(png(get_current_frame(window_name))).decode()


def png(frame: numpy.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(numpy.ascontiguousarray(frame)).save(file, "PNG", compress_level=1)
    return file.getvalue()


CALLABLES: dict[str, Callable[..., Any]] = {
    "keyboard.press": _press,
    "keyboard.release": _release,
    "keyboard.type": _type,
    "keyboard.press_repeat": _press_repeat,
    "keyboard.get_state": lambda: {VK(key) for key in desktop().keys_down()},
    "keyboard.release_all_keys": _release_all_keys,
    "mouse.click": _click,
    "mouse.move": _move,
    "mouse.position": lambda: desktop().pointer()[:2],
    "mouse.press": _mouse_press,
    "mouse.release": _mouse_release,
    "mouse.scroll": _scroll,
    "mouse.get_state": _mouse_state,
    "window.get_active_window": lambda: desktop().active_window(),
    "window.get_window_by_title": _find,
    "window.get_pid_by_title": _pid_by_title,
    "window.is_active": _is_active,
    "window.make_active": lambda name: make_active(desktop(), name),
    "window.when_active": _when_active,
    "screen.capture": _capture,
}


class Listener(ABC):
    """Tells a callback what happens, from a thread of its own: configure, start, stop, join."""

    def __init__(self) -> None:
        self._callback: Callable[[Any], None] = lambda event: None
        self._stop: Stop | None = None
        self._stopped = threading.Event()

    def configure(self, callback: Callable[[Any], None]) -> Self:
        self._callback = callback
        return self

    def start(self) -> Self:
        self._stopped.clear()
        self._stop = self._begin()
        return self

    def stop(self) -> None:
        self._stopped.set()
        if self._stop is not None:
            self._stop()
            self._stop = None

    def join(self, timeout: float | None = None) -> None:
        """Until it is stopped."""
        self._stopped.wait(timeout)

    @abstractmethod
    def _begin(self) -> Stop:
        """Goes to work; gives what ends it."""


class KeyboardListener(Listener):
    """Every key, whoever presses it: a KeyboardEvent each."""

    def _begin(self) -> Stop:
        return desktop().listen(self._callback, lambda event: None)


class MouseListener(Listener):
    """Every movement, button and turn of the wheel: a MouseEvent each."""

    def _begin(self) -> Stop:
        return desktop().listen(lambda event: None, self._callback)


class StateListener(Listener):
    """Tells a state again and again."""

    @abstractmethod
    def _state(self) -> Any: ...

    def _begin(self) -> Stop:
        threading.Thread(target=self._report, daemon=True, name="proctor-state").start()
        return lambda: None

    def _report(self) -> None:
        while True:
            self._callback(self._state())
            if self._stopped.wait(STATE_INTERVAL):
                return


class KeyboardStateListener(StateListener):
    def _state(self) -> Any:
        return CALLABLES["keyboard.get_state"]()


class MouseStateListener(StateListener):
    def _state(self) -> Any:
        return _mouse_state()


class WindowListener(StateListener):
    """The window that has the keyboard."""

    def _state(self) -> Any:
        return desktop().active_window()


LISTENERS: dict[str, type[Listener]] = {
    "keyboard": KeyboardListener,
    "mouse": MouseListener,
    "keyboard_state": KeyboardStateListener,
    "mouse_state": MouseStateListener,
    "window": WindowListener,
}
