"""Agents for isolation.py: one acts on a display, one plays in steps."""

from __future__ import annotations

import time
from typing import Any


class IdleAgent:
    """An agent that does nothing: the role measures."""


class MeasuringRole:
    """A role that acts on the display of its process and measures each action."""

    def __init__(self, recipe: Any, host: Any) -> None:
        from proctor.agents.desktop.vk import VK
        from proctor.agents.desktop.x11 import XDesktop

        self._key = int(VK.SPACE)
        self._desktop = XDesktop()
        self._desktop.capture()

    def act(self, times: int) -> dict[str, list[float]]:
        """Milliseconds of a key press with release, and of a capture."""
        presses, captures = [], []
        for _ in range(times):
            begun = time.perf_counter()
            self._desktop.key(self._key, True)
            pressed = time.perf_counter()
            self._desktop.key(self._key, False)
            self._desktop.capture()
            captured = time.perf_counter()
            presses.append((pressed - begun) * 1e3)
            captures.append((captured - pressed) * 1e3)
        return {"press": presses, "release and picture": captures}


def idle_policy(observation: Any) -> int:
    return 1
