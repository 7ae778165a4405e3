"""Agents for the game in its window."""

from __future__ import annotations

import time
from abc import abstractmethod

from proctor.agents.agent import Agent
from proctor.agents.desktop import CALLABLES, VK
from proctor.agents.games.hexagon.env import DIRECTIONS, HexagonActions
from proctor.agents.games.hexagon.options import TITLE
from proctor.agents.games.hexagon.rules import LEFT, RIGHT
from proctor.agents.games.hexagon.sight import HexagonVision
from proctor.agents.types import Task

LOOKS = 60  # in a second, at most: the game shows no more
_KEYS = {LEFT: VK.LEFT, RIGHT: VK.RIGHT}


class HexagonWindowAgent(Agent):
    """The base of both agents: at most one key is down."""

    def _init_task_hook(self, task: Task) -> None:
        self._window = task.window_name or TITLE
        CALLABLES["window.make_active"](self._window)
        self._held: VK | None = None
        self._due = time.monotonic()

    def _play_env(self, task: Task) -> bool:
        self._hold(_KEYS.get(self._direction()))
        self._due = max(self._due + 1 / LOOKS, time.monotonic())
        self.stop_event.wait(self._due - time.monotonic())
        return True  # the evaluator sees the end

    def _finish_task_hook(self, task: Task) -> None:
        self._hold(None)

    @abstractmethod
    def _direction(self) -> int:
        """Where to run now: one of the keys of _KEYS, or none."""

    def _hold(self, key: VK | None) -> None:
        if key == self._held:
            return
        if self._held is not None:
            CALLABLES["keyboard.release"](self._held)
        if key is not None:
            CALLABLES["keyboard.press"](key)
        self._held = key


class ReferenceAgent(HexagonWindowAgent):
    """Looks for the nearest gap and goes there."""

    def __init__(self) -> None:
        self._sight = HexagonVision()

    def _direction(self) -> int:
        # In whatever order the colours come: to its eyes they are bright or dark, coloured or white.
        return self._sight.direction(CALLABLES["screen.capture"](self._window))


class RandomWindowAgent(HexagonWindowAgent):
    """Any key or none, each as likely as the others, drawn anew as often as the other looks."""

    def _init_task_hook(self, task: Task) -> None:
        super()._init_task_hook(task)
        self._actions = HexagonActions()
        self._actions.seed(task.seed or 0)

    def _direction(self) -> int:
        return DIRECTIONS[self._actions.sample()]
