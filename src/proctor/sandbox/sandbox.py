"""The interface of sandboxes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from proctor.sandbox.program import Limits, Program
from proctor.sandbox.verdict import Verdict


class Sandbox(ABC):
    """Judges programs, one per worker at a time; an asynchronous context manager."""

    level: str
    """Describes the isolation; stored with every run."""
    workers: int

    @property
    def slots(self) -> int:
        """The number of concurrent programs that keeps all workers busy."""
        return self.workers

    @abstractmethod
    async def open(self) -> None: ...

    @abstractmethod
    async def close(self) -> None:
        """Ends all processes and removes all files."""

    @abstractmethod
    async def judge(self, program: Program, limits: Limits) -> Verdict:
        """Judges one program. Never raises for what a program does."""

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
