"""`with thinking():` pauses the environment while an agent thinks, with the clock `paused`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Turn = Callable[[bool], None]


class Thinking:
    """Pauses the environment through the host of the agent; without a host it does nothing."""

    def __init__(self) -> None:
        self._turn: Turn | None = None
        self._depth = 0

    def begin(self, turn: Turn | None) -> None:
        """Begins an episode; `turn` pauses or resumes the environment and returns when that is done."""
        self._turn, self._depth = turn, 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self._depth += 1
        if self._turn is not None and self._depth == 1:
            self._turn(True)
        try:
            yield
        finally:
            self._depth -= 1
            if self._turn is not None and self._depth == 0:
                self._turn(False)


thinking = Thinking()
