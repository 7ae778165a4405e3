"""Engines that share the work, each with a copy of the model on a device of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from proctor.core.types import Prompt
from proctor.models.inference.job import Job

if TYPE_CHECKING:
    from proctor.models.inference.engine import EngineThread


class ReplicaGroup:
    def __init__(self, workers: Sequence[EngineThread]) -> None:
        self._workers = workers
        self._open = [0] * len(workers)  # jobs that each has not answered
        self._lock = threading.Lock()

    @property
    def most(self) -> int:
        """Completions that they make at once, all together."""
        return sum(worker.most for worker in self._workers)

    def submit(self, jobs: Iterable[Job]) -> None:
        """Jobs of one prompt go to the same worker, who reads it once; the next prompt to who has the least to do."""
        of_prompt: dict[Prompt, list[Job]] = {}
        for job in jobs:
            of_prompt.setdefault(job.request.prompt, []).append(job)
        shares: list[list[Job]] = [[] for _ in self._workers]
        with self._lock:
            for together in of_prompt.values():
                least = self._open.index(min(self._open))
                self._open[least] += len(together)
                shares[least] += together
        for number, (worker, share) in enumerate(zip(self._workers, shares, strict=True)):
            for job in share:
                job.future.add_done_callback(lambda _, number=number: self._answered(number))  # type: ignore[misc]
            worker.submit(share)

    def close(self) -> None:
        for worker in self._workers:
            worker.close()

    def _answered(self, number: int) -> None:
        with self._lock:
            self._open[number] -= 1
