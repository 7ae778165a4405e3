"""The desktop under the names that agents and evaluators use: CALLABLES, LISTENERS, frames in base64."""

from __future__ import annotations

import base64
import io
import sys
import time
from collections.abc import Callable
from functools import cache, partial, wraps
from hashlib import blake2b
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy
from PIL import Image

from proctor.agents.constants import TIMES
from proctor.agents.desktop.interface import (
    Desktop,
    WindowNotFoundError,
    make_active,
    window_titled,
)
from proctor.agents.desktop.keys import parse_key
from proctor.agents.desktop.messages import PointerBallisticsConfig, WindowInfo
from proctor.agents.desktop.registry import Registry
from proctor.agents.desktop.states import MOUSE_BUTTONS, keyboard_state, mouse_state
from proctor.agents.desktop.vk import VK
from proctor.agents.runtime.recording import recording

MODULES = ("owa.env.desktop", "owa.env.gst", "owa.env.std")
WHEN_ACTIVE_INTERVAL = 0.05


def activate_module(name: str) -> ModuleType:
    """A module of the desktop, all of which is there from the start, or one of your own: it is imported, and its
    `activate()` called if it has one, so that it may add to the registries. Returns it.
    """
    if name in MODULES:
        return sys.modules[__package__]
    try:
        found = import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # it needs another that is missing
        raise ValueError(f"there is no module {name!r}; there are: {', '.join(MODULES)}, and your own") from None
    if callable(activate := getattr(found, "activate", None)):
        activate()
    return found


@cache
def desktop() -> Desktop:
    """The desktop of this process, opened when it is first needed."""
    from proctor.agents.desktop.x11 import XDesktop

    return XDesktop()


def _find(name: str) -> WindowInfo:
    return window_titled(desktop(), name)


def _press(key: str | int) -> None:
    found = parse_key(key)
    if isinstance(found, VK):
        desktop().key(int(found), True)
        recording.input("press", found.name)
    else:
        desktop().press_character(found)
        recording.input("press", found)


def _release(key: str | int) -> None:
    found = parse_key(key)
    if isinstance(found, VK):
        desktop().key(int(found), False)
        recording.input("release", found.name)
    else:
        desktop().release_character(found)
        recording.input("release", found)


def _type(text: str) -> None:
    desktop().type_text(text)
    recording.input("type", text)


def _press_repeat(key: str | int, press_time: float, initial_delay: float = 0.5, repeat_delay: float = 0.033) -> None:
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


def _mouse_button(button: Any) -> int:
    """By its name, or by a member of an enum with such names, as pynput has."""
    name = getattr(button, "name", button)
    if name not in MOUSE_BUTTONS:
        raise ValueError(f"there is no mouse button {name!r}; there are: {', '.join(MOUSE_BUTTONS)}")
    return int(MOUSE_BUTTONS[name])


def _mouse_press(button: Any = "left") -> None:
    _press(_mouse_button(button))


def _mouse_release(button: Any = "left") -> None:
    _release(_mouse_button(button))


def _click(button: Any = "left", count: int = 1, press_time: float = TIMES.MOUSE_PRESS_DELAY) -> None:
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


def _scroll(*amounts: int, x: int | None = None, y: int | None = None, dx: int = 0, dy: int = 0) -> None:
    """By `dx, dy` where the pointer is, or by `x, y, dx, dy`, which moves it there first."""
    if len(amounts) == 4:
        x, y, dx, dy = amounts
    elif len(amounts) == 2 and x is None and y is None:
        dx, dy = amounts
    elif len(amounts) == 2:
        raise TypeError("mouse.scroll takes x and y by name together with dx and dy")
    elif amounts:
        raise TypeError(f"mouse.scroll takes dx, dy or x, y, dx, dy, not {len(amounts)} numbers")
    if x is not None and y is not None:
        _move(x, y)
    desktop().scroll(int(dx), int(dy))
    recording.input("scroll", dx=int(dx), dy=int(dy))


def _keyboard_repeat_timing(*, return_seconds: bool = True) -> dict[str, Any]:
    raise OSError("the repetition of keys is a setting of Windows that X has not")


def _pid_by_title(name: str) -> int:
    pid = desktop().window_pid(_find(name))
    if pid is None:
        raise WindowNotFoundError(f"the window {name!r} does not say whose it is")
    return pid


def _is_active(name: str) -> bool:
    active = desktop().active_window()
    return active is not None and name in active.title


def _when_active(name: str, run: Callable[..., Any] | None = None, *args: Any, **kwargs: Any) -> Any:
    """A decorator: the function is called only while the window has the keyboard, else it gives None.

    With `run`: waits until the window has the keyboard, then runs it.
    """
    if run is None:
        return partial(_only_when_active, name)
    while not _is_active(name):
        time.sleep(WHEN_ACTIVE_INTERVAL)
    return run(*args, **kwargs)


def _only_when_active(name: str, run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    def run_when_active(*args: Any, **kwargs: Any) -> Any:
        return run(*args, **kwargs) if _is_active(name) else None

    return run_when_active


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


CALLABLES: Registry[Callable[..., Any]] = Registry(
    "CALLABLES",
    {
        "desktop/keyboard.press": _press,
        "desktop/keyboard.release": _release,
        "desktop/keyboard.type": _type,
        "desktop/keyboard.press_repeat": _press_repeat,
        "desktop/keyboard.get_state": lambda: keyboard_state(desktop()),
        "desktop/keyboard.release_all_keys": _release_all_keys,
        "desktop/keyboard.get_keyboard_repeat_timing": _keyboard_repeat_timing,
        "desktop/mouse.click": _click,
        "desktop/mouse.move": _move,
        "desktop/mouse.position": lambda: desktop().pointer()[:2],
        "desktop/mouse.press": _mouse_press,
        "desktop/mouse.release": _mouse_release,
        "desktop/mouse.scroll": _scroll,
        "desktop/mouse.get_state": lambda: mouse_state(desktop()),
        "desktop/mouse.get_pointer_ballistics_config": PointerBallisticsConfig,
        "desktop/window.get_active_window": lambda: desktop().active_window(),
        "desktop/window.get_window_by_title": _find,
        "desktop/window.get_pid_by_title": _pid_by_title,
        "desktop/window.is_active": _is_active,
        "desktop/window.make_active": lambda name: make_active(desktop(), name),
        "desktop/window.when_active": _when_active,
        "desktop/screen.capture": _capture,
        "std/time_ns": time.time_ns,
    },
)
