"""A group of engines with a replica of the model each, on one device each."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from proctor.core.types import Prompt
from proctor.models.inference.job import Job

if TYPE_CHECKING:
    from proctor.models.inference.engine import EngineThread


class ReplicaGroup:
    def __init__(self, engines: Sequence[EngineThread]) -> None:
        self._engines = engines
        self._open_jobs = [0] * len(engines)
        self._lock = threading.Lock()

    @property
    def max_batch_size(self) -> int:
        """Completions that all replicas decode at once."""
        return sum(engine.max_batch_size for engine in self._engines)

    def submit(self, jobs: Iterable[Job]) -> None:
        """Send the jobs of one prompt to one engine, which prefills it once, and each prompt
        to the engine with the fewest open jobs."""
        by_prompt: dict[Prompt, list[Job]] = {}
        for job in jobs:
            by_prompt.setdefault(job.request.prompt, []).append(job)
        shares: list[list[Job]] = [[] for _ in self._engines]
        with self._lock:
            for group in by_prompt.values():
                index = self._open_jobs.index(min(self._open_jobs))
                self._open_jobs[index] += len(group)
                shares[index] += group
        for index, (engine, share) in enumerate(zip(self._engines, shares, strict=True)):
            for job in share:
                job.future.add_done_callback(lambda _, index=index: self._finish_job(index))  # type: ignore[misc]
            engine.submit(share)

    def close(self) -> None:
        for engine in self._engines:
            engine.close()

    def _finish_job(self, index: int) -> None:
        with self._lock:
            self._open_jobs[index] -= 1
