"""The clock of an episode: real time, without the time for which the environment is paused."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Literal, Protocol

ClockName = Literal["realtime", "paused"]


class Pausable(Protocol):
    async def pause(self) -> None: ...

    async def resume(self) -> None: ...


class Clock:
    """Runs from `start`. Given a pausable environment, an agent may pause it."""

    def __init__(self, env: Pausable | None = None, longest_thought: float = 0.0) -> None:
        self._env, self._longest_thought = env, longest_thought
        self._started = self._lost = 0.0
        self._paused_at: float | None = None
        self._over = False
        self._turned = asyncio.Event()  # the environment was paused or resumed
        self._changing = asyncio.Lock()
        self._fault: Exception | None = None  # of the environment, in pausing or resuming

    def start(self) -> None:
        """Starts at zero; earlier pauses do not count: an agent may begin to think before the start."""
        self._started, self._lost = time.monotonic(), 0.0
        if self._paused_at is not None:
            self._paused_at = self._started

    @property
    def can_pause(self) -> bool:
        return self._env is not None

    @property
    def elapsed(self) -> float:
        """Seconds for which the environment has run."""
        now = time.monotonic() if self._paused_at is None else self._paused_at
        return now - self._started - self._lost

    async def pause(self) -> None:
        """Pauses the environment until `resume`; does nothing if it cannot be paused."""
        async with self._changing:
            if self._env is None or self._over or self._paused_at is not None:
                return
            await self._turn(self._env.pause())
            self._paused_at = time.monotonic()
            self._turned.set()

    async def resume(self) -> None:
        async with self._changing:
            if self._env is None or self._over or self._paused_at is None:
                return
            self._lost += time.monotonic() - self._paused_at
            self._paused_at = None
            await self._turn(self._env.resume())
            self._turned.set()

    async def stop(self) -> None:
        """Pauses the environment for good: it is scored as the agent left it."""
        await self.pause()
        self._over = True

    async def _turn(self, turning: Coroutine[Any, Any, None]) -> None:
        """Keeps an error of the environment for `run_out`: the agent that paused it is not at fault."""
        try:
            await turning
        except Exception as error:
            self._fault = error

    async def run_out(self, seconds: float) -> str:
        """Returns when the environment has run for so many seconds, or with a reason when a pause is too long."""
        while True:
            if self._fault is not None:
                raise self._fault
            paused = self._paused_at
            if paused is None:
                left, why = seconds - self.elapsed, ""
            else:
                left = paused + self._longest_thought - time.monotonic()
                why = f"it thought for longer than {self._longest_thought:g} s"
            if left <= 0:
                return why
            self._turned.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._turned.wait(), left)
