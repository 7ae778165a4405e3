"""An open sandbox for a whole module of tests, with its event loop."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from proctor.code import execution
from proctor.sandbox import Limits, Pool, Program, Verdict, best_level, run
from proctor.sandbox.worker import SandboxWorker

T = TypeVar("T")
Judge = Callable[..., Verdict]
LIMITS = Limits(seconds=2.0, memory_mib=512)


def start_runner() -> asyncio.Runner:
    """Its only other thread runs from the start, so that no test seems to leave it behind."""
    runner = asyncio.Runner()
    runner.get_loop().set_default_executor(ThreadPoolExecutor(1))
    runner.run(asyncio.to_thread(int))
    return runner


class SandboxSession:
    def __init__(self) -> None:
        self._runner = start_runner()
        self.pool = self.wait(self._open())
        self._first = set(self._take_workers())
        self._put_back(self._first)

    async def _open(self) -> Pool:
        pool = Pool(await best_level(), workers=2)
        await pool.open()
        return pool

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)

    def judge(self, source: str, tests: str = "", limits: Limits = LIMITS, **more: Any) -> Verdict:
        program = Program(source=textwrap.dedent(source), tests=textwrap.dedent(tests), **more)
        (verdict,) = self.judge_all([program], limits)
        return verdict

    def judge_all(self, programs: Sequence[Program], limits: Limits) -> list[Verdict]:
        try:
            return self.wait(run(programs, limits, sandbox=self.pool))
        finally:
            self.wait(self._end_new_workers())

    def run(
        self, programs: Sequence[Program], limits: Limits, judge: execution.Judge = execution.trial_of
    ) -> list[execution.Trial]:
        """As a `Runner` of the code family."""
        verdicts = self.judge_all(programs, limits)
        return [judge(program, verdict) for program, verdict in zip(programs, verdicts, strict=True)]

    def close(self) -> None:
        self.wait(self.pool.close())
        self._runner.close()

    async def _end_new_workers(self) -> None:
        """The pool replaces a worker that does not see the folders of a language: no test leaves its replacement."""
        workers = self._take_workers()
        for worker in workers:
            if worker and worker not in self._first:
                await worker.close()
        self._put_back(worker for worker in workers if worker in self._first)

    def _take_workers(self) -> list[SandboxWorker | None]:
        return [self.pool._idle.get_nowait() for _ in range(self.pool._idle.qsize())]

    def _put_back(self, workers: Iterable[SandboxWorker | None]) -> None:
        """In place of those that have ended others are started when they are needed."""
        running = list(workers)
        for worker in [*[None] * (self.pool.workers - len(running)), *running]:
            self.pool._idle.put_nowait(worker)
