"""LISTENERS and RUNNABLES: what tells an agent of input, windows, frames and time as they come."""

from __future__ import annotations

import inspect
import threading
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn

import numpy

from proctor.agents.desktop.interface import Cursor, DesktopError, Stop, window_titled
from proctor.agents.desktop.messages import KeyboardEvent, MouseEvent, RawMouseEvent, WindowInfo
from proctor.agents.desktop.names import CALLABLES, desktop
from proctor.agents.desktop.registry import Components, Registry
from proctor.agents.desktop.runnable import Listener, Runnable
from proctor.agents.desktop.screen import Frame, ScreenCaptured
from proctor.agents.desktop.states import keyboard_state, mouse_state

STATE_INTERVAL = 1.0  # seconds between two reports of the listeners that tell a state
GRABBING = 1.0  # seconds in which a frame must come
REMEMBERED = 100  # frames over which the metrics of a screen listener are taken


class InputListener(Listener):
    """Told by the display: when `start` returns, nothing is missed from then on."""

    _stop_listening: Stop | None = None

    def start(self) -> None:
        self._ended = threading.Event()
        self._stop_listening = desktop().listen(
            self._on_key, self._on_mouse, self._on_raw if self._wants_raw else None, self._ended.set
        )
        super().start()

    def stop(self) -> None:
        super().stop()
        if self._stop_listening is not None:
            self._stop_listening()

    def loop(self) -> None:
        """Alive for as long as it is told of anything: until it is stopped, or the display is gone."""
        self._ended.wait()

    _wants_raw = False

    def _on_key(self, event: KeyboardEvent) -> None: ...

    def _on_mouse(self, event: MouseEvent) -> None: ...

    def _on_raw(self, event: RawMouseEvent) -> None: ...


class KeyboardListener(InputListener):
    """Every key, whoever presses it: a KeyboardEvent each."""

    def _on_key(self, event: KeyboardEvent) -> None:
        self.callback(event)


class MouseListener(InputListener):
    """Every movement, button and turn of the wheel: a MouseEvent each."""

    def _on_mouse(self, event: MouseEvent) -> None:
        self.callback(event)


class RawMouseListener(InputListener):
    """The same as the mouse reports it, before acceleration and beyond the edges: a RawMouseEvent each."""

    _wants_raw = True

    def _on_raw(self, event: RawMouseEvent) -> None:
        self.callback(event)


class StateListener(Listener):
    """Tells a state every second."""

    @abstractmethod
    def _state(self) -> Any: ...

    def loop(self, *, stop_event: threading.Event, callback: Callable[[Any], None]) -> None:
        while not stop_event.is_set():
            callback(self._state())
            stop_event.wait(STATE_INTERVAL)


class KeyboardStateListener(StateListener):
    def _state(self) -> Any:
        return keyboard_state(desktop())


class MouseStateListener(StateListener):
    def _state(self) -> Any:
        return mouse_state(desktop())


class WindowListener(StateListener):
    """The window that has the keyboard; None while none has it."""

    def _state(self) -> Any:
        return desktop().active_window()


class TickListener(Listener):
    """Calls back every `interval` seconds, without arguments."""

    interval = 1.0

    def on_configure(self, *, interval: float = 1.0) -> None:
        self.interval = interval

    def loop(self, *, stop_event: threading.Event, callback: Callable[[], None]) -> None:
        due = time.monotonic()
        while not stop_event.is_set():
            callback()
            due = max(due + self.interval, time.monotonic())
            stop_event.wait(due - time.monotonic())


class ScreenMetrics:
    """Of the frames that came last."""

    def __init__(self) -> None:
        self._times: deque[int] = deque(maxlen=REMEMBERED)
        self._latencies: deque[int] = deque(maxlen=REMEMBERED)

    def append(self, timestamp_ns: int, latency_ns: int) -> None:
        self._times.append(timestamp_ns)
        self._latencies.append(latency_ns)

    @property
    def fps(self) -> float:
        if len(self._times) < 2 or self._times[-1] == self._times[0]:
            return 0.0
        return (len(self._times) - 1) / (self._times[-1] - self._times[0]) * 1e9

    @property
    def latency(self) -> float:
        """Seconds that it took to capture a frame."""
        return sum(self._latencies) / len(self._latencies) / 1e9 if self._latencies else 0.0


class ScreenListener(Listener):
    """Frames of the screen or of a window: a ScreenCaptured each, and ScreenMetrics if the callback takes two."""

    def on_configure(
        self,
        *,
        show_cursor: bool = True,
        fps: float = 60,
        window_name: str | None = None,
        monitor_idx: int | None = None,
        additional_properties: dict[str, Any] | None = None,
    ) -> None:
        if monitor_idx or additional_properties:
            raise DesktopError("a screen listener has the whole display or a window, not a monitor or GStreamer's own")
        if fps <= 0:
            raise ValueError(f"fps must be more than 0, not {fps:g}")
        self._show_cursor, self._interval, self._window_name = show_cursor, 1 / fps, window_name

    def loop(self, *, stop_event: threading.Event, callback: Callable[..., Any]) -> None:
        metrics, due = ScreenMetrics(), time.monotonic()
        takes_metrics = len(inspect.signature(callback).parameters) > 1
        while not stop_event.is_set():
            begun = time.time_ns()
            frame = ScreenCaptured(utc_ns=begun, frame_arr=self._frame())
            frame.source_shape = frame.shape
            metrics.append(begun, time.time_ns() - begun)
            callback(frame, metrics) if takes_metrics else callback(frame)
            due = max(due + self._interval, time.monotonic())
            stop_event.wait(due - time.monotonic())

    def _frame(self) -> Frame:
        window = window_titled(desktop(), self._window_name) if self._window_name else None
        frame = desktop().capture(window).copy()
        frame[:, :, 3] = 255
        cursor = desktop().cursor() if self._show_cursor else None
        if cursor is not None:
            _draw(cursor, frame, window)
        return frame


def _draw(cursor: Cursor, frame: Frame, window: WindowInfo | None) -> None:
    """Where it covers the frame; its colours are multiplied by alpha already."""
    left, top = cursor.left, cursor.top
    if window is not None:
        left, top = left - window.rect[0], top - window.rect[1]
    first_row, first_column = max(0, -top), max(0, -left)
    image = cursor.image[first_row : max(0, frame.shape[0] - top), first_column : max(0, frame.shape[1] - left)]
    if not image.size:
        return
    row, column = top + first_row, left + first_column
    below = frame[row : row + image.shape[0], column : column + image.shape[1], :3]
    rest = 255 - image[:, :, 3:].astype(numpy.uint16)
    below[:] = numpy.minimum(255, image[:, :, :3] + below * rest // 255)


class ScreenCapture(ScreenListener):
    """Frames to be had when they are wanted: `grab` waits for one that was not given out before."""

    def configure(self, *args: Any, **kwargs: Any) -> Any:
        self._fresh: deque[ScreenCaptured] = deque(maxlen=1)
        self._has_come = threading.Event()
        return super().configure(*args, callback=self._keep, **kwargs)

    def _keep(self, frame: ScreenCaptured) -> None:
        self._fresh.append(frame)
        self._has_come.set()

    def grab(self) -> ScreenCaptured:
        if not self._has_come.wait(GRABBING):
            raise TimeoutError(f"no frame came within {GRABBING:g} s")
        self._has_come.clear()
        return self._fresh[0]


def _not_here(*args: Any, **kwargs: Any) -> NoReturn:
    raise DesktopError("GStreamer's recorders are not here: episodes are recorded by the referee, see --owamcap")


class AppsinkRecorder(Listener):
    """Of GStreamer."""

    __init__ = _not_here

    def loop(self) -> None: ...


class SubprocessRecorder(Runnable):
    """Of GStreamer."""

    __init__ = _not_here

    def loop(self) -> None: ...


LISTENERS: Registry[type[Listener]] = Registry(
    "LISTENERS",
    {
        "desktop/keyboard": KeyboardListener,
        "desktop/mouse": MouseListener,
        "desktop/raw_mouse": RawMouseListener,
        "desktop/keyboard_state": KeyboardStateListener,
        "desktop/mouse_state": MouseStateListener,
        "desktop/window": WindowListener,
        "gst/screen": ScreenListener,
        "gst/omnimodal.appsink_recorder": AppsinkRecorder,
        "std/tick": TickListener,
    },
)
RUNNABLES: Registry[type[Runnable]] = Registry(
    "RUNNABLES",
    {"gst/screen_capture": ScreenCapture, "gst/omnimodal.subprocess_recorder": SubprocessRecorder},
)
_components = Components(callables=CALLABLES, listeners=LISTENERS, runnables=RUNNABLES)
get_component, list_components = _components.get_component, _components.list_components
