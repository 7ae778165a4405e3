"""AgentClient for a person who plays on the display."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from proctor.agents.runtime.agent_client import AgentStartError
from proctor.agents.runtime.clock import Clock
from proctor.agents.runtime.evaluator_client import EnvironmentGoneError
from proctor.agents.runtime.recording import EventRecorder
from proctor.agents.types import AgentEnding, Task
from proctor.core.types import Sample, Usage

if TYPE_CHECKING:
    from proctor.agents.desktop.interface import Stop
    from proctor.agents.desktop.messages import KeyboardEvent, MouseEvent
    from proctor.agents.desktop.x11 import XDesktop

MOVES_APART = 0.01  # seconds between two movements of the mouse that are written to the event log
BUTTONS = {"left": "LBUTTON", "middle": "MBUTTON", "right": "RBUTTON", "x1": "XBUTTON1", "x2": "XBUTTON2"}


class HumanClient:
    """Listens on the display: key and mouse events of the person are the actions."""

    folder: Path | None = None
    clock = Clock()  # never paused: a person thinks while the game runs
    usage = Usage()

    ended_at: float | None = None

    def __init__(self, display: str, authority: Path | None = None) -> None:
        self._display, self._authority = display, authority
        self._desktop: XDesktop | None = None
        self._stop_listening: Stop | None = None
        self._recording = EventRecorder()
        self._actions = 0
        self._moved = 0.0
        self._gone = asyncio.Event()  # the display
        self.sample: Sample

    @property
    def has_acted(self) -> bool:
        return self._actions > 0

    async def prepare(self) -> None:
        """Returns when the person has pressed and released the space bar, or pressed F10."""
        from proctor.agents.desktop.interface import DesktopError
        from proctor.agents.desktop.x11 import XDesktop

        try:
            self._desktop = self._desktop or XDesktop(self._display, self._authority)
        except DesktopError as error:
            raise AgentStartError(str(error)) from error
        await self._wait_until_ready(self._desktop)

    async def _wait_until_ready(self, desktop: XDesktop) -> None:
        from proctor.agents.desktop.vk import VK

        loop, ready = asyncio.get_running_loop(), asyncio.Event()

        def on_key(event: KeyboardEvent) -> None:
            pressed = event.event_type == "press"
            if (event.vk == VK.SPACE and not pressed) or (event.vk == VK.F10 and pressed):
                loop.call_soon_threadsafe(ready.set)

        stop = await asyncio.to_thread(desktop.listen, on_key, lambda event: None)
        try:
            _print_message(self._invitation())
            await ready.wait()
        finally:
            stop()

    def _invitation(self) -> str:
        task = self.sample.metadata["task"]
        what = f"episode {self.sample.index + 1}, at most {task['timeout']:g} s. {task['task_description']}"
        return f"{what.rstrip()} Press SPACE on the display {self._display} to start; F10 stops the episode."

    async def start(self, task: Task) -> None:
        assert self._desktop is not None
        self._recording.begin(str(self.folder or ""))
        self._actions, self._gone = 0, asyncio.Event()
        loop = asyncio.get_running_loop()

        def ended() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._gone.set)

        self._stop_listening = await asyncio.to_thread(self._desktop.listen, self._on_key, self._on_mouse, None, ended)
        _print_message("your time is running.")

    def _on_key(self, event: KeyboardEvent) -> None:
        from proctor.agents.desktop.vk import VK

        if event.vk == VK.F10:  # handled by the referee
            return
        self._actions += event.event_type == "press"
        self._recording.input(event.event_type, VK(event.vk).name)

    def _on_mouse(self, event: MouseEvent) -> None:
        now = time.monotonic()
        if event.event_type == "move":
            if now - self._moved >= MOVES_APART:
                self._moved = now
                self._recording.input("move", x=event.x, y=event.y)
            return
        self._actions += event.event_type == "scroll" or bool(event.pressed)
        if event.event_type == "scroll":
            self._recording.input("scroll", x=event.x, y=event.y, dx=event.dx, dy=event.dy)
        else:
            what = BUTTONS.get(event.button or "", "unknown")
            self._recording.input("press" if event.pressed else "release", what, x=event.x, y=event.y)

    async def ending(self) -> AgentEnding:
        """A person ends only if the display is gone."""
        await self._gone.wait()
        raise EnvironmentGoneError("the display is gone")

    async def stop(self) -> AgentEnding:
        gone = self._gone.is_set()
        await self._end_listening()
        if gone:
            return await self.ending()
        return AgentEnding(actions=self._actions)

    async def _end_listening(self) -> None:
        stop, self._stop_listening = self._stop_listening, None
        if stop is not None:
            await asyncio.to_thread(stop)

    async def settle(self) -> None:
        await self._end_listening()
        self._recording.begin("")  # the log of the episode is complete

    async def close(self) -> None:
        await self.settle()
        if self._desktop is not None:
            self._desktop.close()
            self._desktop = None


def _print_message(message: str) -> None:
    print(f"human: {message}", file=sys.stderr, flush=True)
