"""`with thinking():` around what an agent has to think about: by the clock `paused`, the world waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Turn = Callable[[bool], None]


class Thinking:
    """The one of this process. Who hosts an agent says how the world is stopped; else it goes on."""

    def __init__(self) -> None:
        self._turn: Turn | None = None
        self._depth = 0

    def begin(self, turn: Turn | None) -> None:
        """An episode; `turn` stops the world, or lets it go on, and returns when that is done."""
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
