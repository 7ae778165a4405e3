"""Catch: things fall, a paddle catches them. A small environment with nothing to install, for all three clocks."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from proctor.core.random import Stream, name_key

LEFT, STAY, RIGHT = 0, 1, 2
_KEY = name_key("catch")


class CatchActions:
    """Three actions, as a space of Gymnasium would show them."""

    n = 3

    def __init__(self) -> None:
        self.seed(0)

    def seed(self, seed: int) -> None:
        self._draws = Stream(_KEY, seed)

    def sample(self) -> int:
        return self._draws.below(self.n)


class Catch:
    """One thing after the other falls by a row at each step. Its observation: paddle, column and row of the thing."""

    action_names: ClassVar = ("left", "stay", "right")
    idle_action: ClassVar = STAY

    def __init__(self, width: int = 7, height: int = 8, things: int = 5) -> None:
        if not 2 <= width <= height:  # else some things could not be reached in time
            raise ValueError(f"a width of at least 2 and a height of at least the width, not {width} and {height}")
        if things < 1:
            raise ValueError(f"at least one thing must fall, not {things}")
        self.width, self.height, self.things = width, height, things
        self.action_space = CatchActions()

    def reset(self, *, seed: int | None = None) -> tuple[Any, dict[str, Any]]:
        self._columns = Stream(_KEY, 0 if seed is None else seed)
        self._paddle = self.width // 2
        self._fallen = self._caught = 0
        self._drop()
        return self._seen(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._paddle = min(max(self._paddle + action - STAY, 0), self.width - 1)
        self._row += 1
        reward, info = 0.0, {}
        if self._row == self.height - 1:
            reward = float(self._column == self._paddle)
            self._caught += int(reward)
            self._fallen += 1
            if self._fallen == self.things:
                info = {"is_success": self._caught == self.things}
            else:
                self._drop()
        return self._seen(), reward, bool(info), False, info

    def text(self, observation: Any) -> str:
        """The field as characters: o falls, = is the paddle."""
        paddle, column, row = map(int, observation)
        field = [["."] * self.width for _ in range(self.height)]
        field[row][column] = "o"
        field[-1][paddle] = "=" if (row, column) != (self.height - 1, paddle) else "*"
        return "\n".join("".join(line) for line in field)

    def _drop(self) -> None:
        self._column, self._row = self._columns.below(self.width), 0

    def _seen(self) -> Any:
        return np.array([self._paddle, self._column, self._row], np.int64)


class Catcher:
    """Plays perfectly: goes where the thing will land."""

    def act(self, observation: Any) -> int:
        paddle, column, _ = observation
        return LEFT if column < paddle else RIGHT if column > paddle else STAY
