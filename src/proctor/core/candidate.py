"""The contract of a candidate: a model or an agent that answers samples."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterable
from typing import Any

from proctor.core.types import Sample


class Candidate(ABC):
    name: str
    # The requests that it processes at once, also if --concurrency allows more.
    # Final after `prepare`.
    slots: int = 1
    batches_requests: bool = False  # faster if requests arrive together than one by one

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:  # noqa: B027
        """Called once before the first sample: loads weights, contacts the server, reads samples."""

    def identity(self) -> dict[str, str]:
        """Everything besides the request that could change an answer: file hash, server, endpoint."""
        return {"model": self.name}

    def provenance(self) -> dict[str, Any]:
        """Facts about the session for the provenance of the run."""
        return {}

    async def close(self) -> None:  # noqa: B027
        """Called once at the end."""
