"""Agents as they are written for owa-core 0.6; only their imports are changed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from proctor.agents import Agent, Task
from proctor.agents.desktop import (
    CALLABLES,
    LISTENERS,
    RUNNABLES,
    VK,
    KeyboardEvent,
    Listener,
    Runnable,
    ScreenCaptured,
    activate_module,
    get_component,
)

BLUE, GREEN = 0, 1  # of rows that hold blue, green, red and alpha


class Watcher(Listener):
    """Tells the callback when a window has become the active one."""

    def on_configure(self, *, title: str) -> None:
        self.title = title

    def loop(self, *, stop_event: threading.Event, callback: Callable[[], Any]) -> None:
        while not stop_event.is_set():
            if CALLABLES["desktop/window.is_active"](self.title):
                callback()
                return
            stop_event.wait(0.01)


class Tapper(Runnable):
    """Presses a key by its name, again and again."""

    def on_configure(self, key: str) -> None:
        self.key = key

    def loop(self, *, stop_event: threading.Event) -> None:
        press, release = get_component("callables", "desktop", "keyboard.press"), CALLABLES["keyboard.release"]
        while not stop_event.is_set():
            press(self.key)
            stop_event.wait(0.05)
            release(self.key)
            stop_event.wait(0.02)


class Reactive(Agent):
    """Presses the arrow while the window is blue, and hears itself do so."""

    def __init__(self) -> None:
        super().__init__()
        activate_module("owa.env.desktop")
        activate_module("owa.env.gst")
        self.heard: list[dict[str, Any]] = []
        self.keyboard = LISTENERS["desktop/keyboard"]().configure(callback=self.on_key)
        self.keyboard.start()
        self.screen: Any = None
        self.colour = -1

    def on_key(self, event: KeyboardEvent) -> None:
        self.heard.append(event.model_dump(exclude={"timestamp"}))

    def on_frame(self, frame: ScreenCaptured, metrics: Any) -> None:
        assert frame.frame_arr is not None
        pixel = frame.frame_arr[120, 160]
        self.colour = GREEN if pixel[GREEN] > 100 > pixel[BLUE] else BLUE

    def _init_task_hook(self, task: Task) -> None:
        active = threading.Event()
        with Watcher().configure(callback=active.set, title=task.window_name).session:
            CALLABLES["window.make_active"](task.window_name)
            assert active.wait(30)
        self.screen = LISTENERS["screen"]().configure(
            callback=self.on_frame, fps=30, window_name=task.window_name, show_cursor=False
        )
        self.screen.start()
        self.press = CALLABLES["window.when_active"](task.window_name)(CALLABLES["desktop/keyboard.press"])

    def _play_env(self, task: Task) -> bool:
        if self.colour == BLUE:
            self.press(VK.RIGHT)
            time.sleep(0.02)
            assert VK.RIGHT in CALLABLES["keyboard.get_state"]().buttons
            CALLABLES["desktop/keyboard.release"](VK.RIGHT)
        time.sleep(0.01)
        return True

    def _finish_task_hook(self, task: Task) -> None:
        self.screen.stop()
        self.screen.join()
        assert not self.screen.is_alive()
        assert self.keyboard.is_alive()
        assert {"event_type": "press", "vk": VK.RIGHT} in self.heard


class Steady(Agent):
    """Leaves the pressing to a runnable, and looks on."""

    def __init__(self) -> None:
        super().__init__()
        self.capture: Any = RUNNABLES["gst/screen_capture"]()
        self.tapper = Tapper()

    def _init_task_hook(self, task: Task) -> None:
        CALLABLES["desktop/window.make_active"](task.window_name)
        self.capture.configure(fps=30, window_name=task.window_name).start()
        self.tapper.configure("right").start()

    def _play_env(self, task: Task) -> bool:
        assert self.capture.grab().shape == (320, 240)
        return True

    def _finish_task_hook(self, task: Task) -> None:
        for runnable in (self.tapper, self.capture):
            runnable.stop()
            runnable.join()
