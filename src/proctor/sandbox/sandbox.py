"""The interface that every sandbox fulfils."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from proctor.sandbox.program import Limits, Program
from proctor.sandbox.verdict import Verdict


class Sandbox(ABC):
    """Judges programs, as many at once as it has workers; opened and closed as an asynchronous context."""

    level: str
    """What holds a program here; stored with every run."""
    workers: int

    @property
    def slots(self) -> int:
        """How many programs at once keep all workers busy."""
        return self.workers

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def close(self) -> None:
        """Ends every process and leaves nothing behind."""

    @abstractmethod
    async def judge(self, program: Program, limits: Limits) -> Verdict:
        """Never raises for what a program does. Waits while all workers are busy."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
