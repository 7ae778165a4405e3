"""Side, the base of what a server serves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any

from fastapi import FastAPI

from proctor.agents.types import Refusal

REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Refusal, "description": "Not now, or not like this"},
    401: {"model": Refusal, "description": "Without the token"},
    413: {"model": Refusal, "description": "Too large"},
    422: {"model": Refusal, "description": "Not what the schema says"},
}


class StartupError(Exception):
    """The side could not be started."""


class Side(ABC):
    """An agent or an evaluator behind a server."""

    title: str
    largest_body: int = 1024 * 1024  # of a request, in bytes

    def __init__(self, token: str, allowed_hosts: Collection[str]) -> None:
        self.token, self.allowed_hosts = token, frozenset(map(str.lower, allowed_hosts))
        self.environment: dict[str, str] = {}  # of the process that it serves, besides ours

    @abstractmethod
    def add_routes(self, app: FastAPI) -> None: ...

    @abstractmethod
    async def open(self) -> None:
        """Starts the side; raises StartupError if it cannot."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    def stop_task(self) -> None:
        """Ends the current task, if there is one."""
