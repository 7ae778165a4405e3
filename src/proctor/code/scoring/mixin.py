"""The part of a code task that has methods of foreign code, which see what a model wrote, called in a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from proctor.code import foreign
from proctor.core.config import RunConfig
from proctor.sandbox.isolation import levels

if TYPE_CHECKING:
    from proctor.code.scoring.client import Scoring

READING = ("check_fn", "generation", "postprocess_generation", "read_chat")
"""Methods that make a generation of an output."""


class ScoringMixin:
    """Knows which methods of the task are called in a worker, and has that worker."""

    scoring_timeout: float = 60.0
    """Seconds that foreign code may take to score a generation, without the programs that metrics run for it."""
    ask_for_dataset: Callable[[], Any] | None = None
    """In a worker: asks the harness for the data set that the task is made of."""

    name: str
    _config: RunConfig
    _rows: Any
    _scoring: Scoring | None = None
    _in_worker = False

    def enter_worker(self) -> None:
        """This is the task of a worker: what it is asked to do, it does itself."""
        self._in_worker = True
        self.get_dataset = lambda: self._rows

    def uses_worker(self, *methods: str) -> bool:
        """Whether one of these methods is foreign code, and so is called in a worker."""
        if self._in_worker or not foreign.overrides(self, *methods):
            return False
        return bool(levels()) or not self._config.unsafe

    def scoring(self) -> Scoring:
        if self._scoring is None:
            from proctor.code.scoring.client import Scoring  # not for tasks of this package, which are most

            self._scoring = Scoring(self, self._config)  # type: ignore[arg-type]
        return self._scoring

    async def close(self) -> None:
        if self._scoring is not None:
            scoring, self._scoring = self._scoring, None
            await asyncio.to_thread(scoring.close)  # some call may wait for a program that this loop sees to
