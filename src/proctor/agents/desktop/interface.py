"""What a desktop can do, whatever system it belongs to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, Protocol

import numpy

from proctor.agents.desktop.messages import KeyboardEvent, MouseEvent, RawMouseEvent, WindowInfo
from proctor.agents.outcome import EnvironmentCrashedError


class DesktopError(Exception):
    """There is no desktop here, or it cannot do this."""


class WindowNotFoundError(EnvironmentCrashedError, ValueError):
    """There is no window with such a title."""


Stop = Callable[[], None]


class Cursor(NamedTuple):
    """The image of the pointer: rows of blue, green, red and alpha, and where its corner is on the display."""

    image: numpy.ndarray[Any, Any]
    left: int
    top: int


class Desktop(Protocol):
    """One display with its keyboard, its mouse and its windows."""

    def key(self, vk: int, down: bool) -> None: ...

    def type_text(self, text: str) -> None: ...

    def keys_down(self) -> set[int]: ...

    def press_character(self, character: str) -> None:
        """Presses its key, and shift for that moment if it needs it."""
        ...

    def release_character(self, character: str) -> None: ...

    def button(self, vk: int, down: bool) -> None: ...

    def move(self, x: int, y: int) -> None: ...

    def scroll(self, dx: int, dy: int) -> None: ...

    def pointer(self) -> tuple[int, int, set[int]]:
        """Where it is, and which of the left, middle and right button are down."""
        ...

    def buttons_down(self) -> set[int]:
        """All that are."""
        ...

    def windows(self) -> list[WindowInfo]:
        """Those that can be seen and have a title, the topmost first."""
        ...

    def hidden_windows(self) -> list[WindowInfo]:
        """Those that are minimised or lie on another of the user's desktops, and have a title."""
        ...

    def active_window(self) -> WindowInfo | None: ...

    def window_pid(self, window: WindowInfo) -> int | None:
        """Whose it is, if that is known."""
        ...

    def activate(self, window: WindowInfo) -> None:
        """Shows it, raises it and gives it the keyboard: when this returns, keys go there."""
        ...

    def capture(self, window: WindowInfo | None = None) -> numpy.ndarray[Any, Any]:
        """What is to be seen now, as rows of blue, green, red and nothing."""
        ...

    def cursor(self) -> Cursor | None:
        """The image of the pointer."""
        ...

    def listen(
        self,
        keys: Callable[[KeyboardEvent], None],
        mouse: Callable[[MouseEvent], None],
        raw: Callable[[RawMouseEvent], None] | None = None,
        ended: Callable[[], None] = lambda: None,
    ) -> Stop:
        """Tells of every key and every movement, whoever caused it, from a thread of its own, until it is stopped.

        `ended` is called when that thread ends: stopped, by an error of a callback, or with the display.
        """
        ...

    def close(self) -> None: ...


Accepts = Callable[[WindowInfo], bool]


def _any(window: WindowInfo) -> bool:
    return True


def window_titled(desktop: Desktop, part: str, accepts: Accepts = _any) -> WindowInfo:
    """The first window whose title contains it, of those that can be seen and are accepted."""
    shown = desktop.windows()
    return _first(shown, part, accepts) or _missing(shown, part)


def answers(desktop: Desktop) -> bool:
    """Whether its connection is still there: whoever may open a display may end the connections of others."""
    try:
        desktop.windows()
    except Exception:
        return False
    return True


def has_window(desktop: Desktop, part: str) -> bool:
    """Whether any window has it in its title, seen or not."""
    return any(part in window.title for window in desktop.windows() + desktop.hidden_windows())


def make_active(desktop: Desktop, part: str, accepts: Accepts = _any) -> None:
    """The first window that is accepted and whose title contains it, also if it is minimised."""
    shown = desktop.windows()
    found = _first(shown, part, accepts)
    if found is None:
        hidden = desktop.hidden_windows()
        found = _first(hidden, part, accepts) or _missing(shown + hidden, part)
    desktop.activate(found)


def _first(windows: list[WindowInfo], part: str, accepts: Accepts) -> WindowInfo | None:
    return next((window for window in windows if part in window.title and accepts(window)), None)


def _missing(windows: list[WindowInfo], part: str) -> NoReturn:
    titles = ", ".join(repr(window.title) for window in windows) or "none"
    whose = " of the program" if any(part in window.title for window in windows) else ""  # others have one
    raise WindowNotFoundError(f"no window{whose} has {part!r} in its title; there are: {titles}")
