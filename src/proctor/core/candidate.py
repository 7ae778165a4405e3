"""The contract of whoever sits an exam."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable
from typing import Any

from proctor.core.types import Sample


class Candidate(ABC):
    name: str
    # Requests that it answers at once, whatever --concurrency says. Final once prepared.
    slots: int = 1
    batches_requests: bool = False  # answers requests that arrive together faster than one by one

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:  # noqa: B027
        """Called once before the first sample: load weights, reach the server, look the exam over."""

    def identity(self) -> dict[str, str]:
        """All that could change an answer besides the request: file hash, server, endpoint."""
        return {"model": self.name}

    def provenance(self) -> dict[str, Any]:
        """Facts that it measured while it ran, for the provenance of the run."""
        return {}

    async def close(self) -> None:  # noqa: B027
        """Called once at the end."""
