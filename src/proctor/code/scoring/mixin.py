"""Runs foreign methods of a code task, which process outputs, in a scoring worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from proctor.code import foreign
from proctor.core.config import RunConfig
from proctor.sandbox.isolation import levels

if TYPE_CHECKING:
    from proctor.code.scoring.client import Scoring

READING_METHODS = ("check_fn", "generation", "postprocess_generation", "read_chat")
"""Methods that turn an output into a generation."""


class ScoringMixin:
    """Decides which methods of the task run in a worker, and owns its pool."""

    scoring_timeout: float = 60.0
    """Seconds for foreign code to score a generation, without its programs."""
    ask_for_dataset: Callable[[], Any] | None = None
    """In a worker: requests the data set of the task from the harness."""

    name: str
    _config: RunConfig
    _rows: Any
    _scoring: Scoring | None = None
    _in_worker = False

    def enter_worker(self) -> None:
        """Marks the task of a worker, which runs its methods itself."""
        self._in_worker = True
        self.get_dataset = lambda: self._rows

    def uses_worker(self, *methods: str) -> bool:
        """Whether one of these methods is foreign code and so runs in a worker."""
        if self._in_worker or not foreign.overrides(self, *methods):
            return False
        return bool(levels()) or not self._config.unsafe

    def scoring(self) -> Scoring:
        if self._scoring is None:
            from proctor.code.scoring.client import Scoring  # lazy: few tasks need it

            self._scoring = Scoring(self, self._config)  # type: ignore[arg-type]
        return self._scoring

    async def close(self) -> None:
        if self._scoring is not None:
            scoring, self._scoring = self._scoring, None
            await asyncio.to_thread(scoring.close)  # a call may wait for a program on this loop
