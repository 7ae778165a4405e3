"""An open sandbox for a whole module of tests, with its event loop."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from proctor.sandbox import Limits, Pool, Program, Verdict, best_level, run

T = TypeVar("T")
Judge = Callable[..., Verdict]
LIMITS = Limits(seconds=2.0, memory_mib=512)


class Room:
    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self.pool = self.wait(self._open())

    async def _open(self) -> Pool:
        pool = Pool(await best_level(), workers=2)
        await pool.open()
        return pool

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(coroutine)

    def judge(self, source: str, tests: str = "", limits: Limits = LIMITS, **more: Any) -> Verdict:
        program = Program(source=textwrap.dedent(source), tests=textwrap.dedent(tests), **more)
        return self.wait(self.pool.judge(program, limits))

    def run(
        self,
        programs: Sequence[Program],
        limits: Limits,
        judge: Callable[[Program, Verdict], Any],
    ) -> list[Any]:
        """As a `Runner` of the code family."""
        verdicts = self.wait(run(programs, limits, sandbox=self.pool))
        return [judge(program, verdict) for program, verdict in zip(programs, verdicts, strict=True)]

    def close(self) -> None:
        self.wait(self.pool.close())
        self._runner.close()
