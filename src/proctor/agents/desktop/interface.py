"""What a desktop can do, whatever system it belongs to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy
from msgspec import Struct

from proctor.agents.outcome import EnvironmentCrashedError


class DesktopError(Exception):
    """There is no desktop here, or it cannot do this."""


class WindowNotFoundError(EnvironmentCrashedError):
    """There is no window with such a title."""


class KeyboardEvent(Struct, frozen=True):
    event_type: str  # "press" or "release"
    vk: int
    timestamp: int = 0  # nanoseconds since the epoch


class MouseEvent(Struct, frozen=True):
    event_type: str  # "move", "click" or "scroll"
    x: int
    y: int
    button: str | None = None
    pressed: bool | None = None
    dx: int | None = None
    dy: int | None = None
    timestamp: int = 0


class WindowInfo(Struct, frozen=True):
    title: str
    rect: tuple[int, int, int, int]  # left, top, right, bottom
    hWnd: int  # noqa: N815 - the name that it has everywhere

    @property
    def width(self) -> int:
        return self.rect[2] - self.rect[0]

    @property
    def height(self) -> int:
        return self.rect[3] - self.rect[1]


Stop = Callable[[], None]


class Desktop(Protocol):
    """One display with its keyboard, its mouse and its windows."""

    def key(self, vk: int, down: bool) -> None: ...

    def type_text(self, text: str) -> None: ...

    def keys_down(self) -> set[int]: ...

    def button(self, vk: int, down: bool) -> None: ...

    def move(self, x: int, y: int) -> None: ...

    def scroll(self, dx: int, dy: int) -> None: ...

    def pointer(self) -> tuple[int, int, set[int]]:
        """Where it is, and which buttons are down."""
        ...

    def windows(self) -> list[WindowInfo]:
        """Those that can be seen and have a title, the topmost first."""
        ...

    def hidden_windows(self) -> list[WindowInfo]:
        """Those that are minimised or lie on another of the user's desktops, and have a title."""
        ...

    def active_window(self) -> WindowInfo | None: ...

    def window_pid(self, window: WindowInfo) -> int | None: ...

    def activate(self, window: WindowInfo) -> None:
        """Shows it, raises it and gives it the keyboard: when this returns, keys go there."""
        ...

    def capture(self, window: WindowInfo | None = None) -> numpy.ndarray[Any, Any]:
        """What is to be seen now, as rows of blue, green, red and nothing."""
        ...

    def listen(self, keys: Callable[[KeyboardEvent], None], mouse: Callable[[MouseEvent], None]) -> Stop:
        """Tells of every key and every movement, whoever caused it, from a thread of its own, until it is stopped."""
        ...

    def close(self) -> None: ...


def window_titled(desktop: Desktop, part: str) -> WindowInfo:
    """The first window whose title contains it, of those that can be seen."""
    return _first(desktop.windows(), part)


def make_active(desktop: Desktop, part: str) -> None:
    """The first window whose title contains it, also if it is minimised."""
    shown = desktop.windows()
    fits = any(part in window.title for window in shown)
    desktop.activate(_first(shown if fits else shown + desktop.hidden_windows(), part))


def _first(found: list[WindowInfo], part: str) -> WindowInfo:
    for window in found:
        if part in window.title:
            return window
    titles = ", ".join(repr(window.title) for window in found) or "none"
    raise WindowNotFoundError(f"no window has {part!r} in its title; there are: {titles}")
