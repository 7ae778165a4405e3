"""Workers that tests run on the nodes of a cluster."""

from __future__ import annotations

import os
from typing import Any

from proctor.core.errors import MissingExtraError, UsageError
from proctor.distributed.actor import RemoteWorker


class Doubling(RemoteWorker[Any, Any]):
    """Doubles numbers; the item "end" kills the process, "fail" raises an error."""

    max_concurrency = 1

    async def open(self) -> int:
        return os.getpid()

    async def process(self, item: Any) -> Any:
        if item == "end":
            os._exit(1)
        if item == "fail":
            raise MissingExtraError("This", "extra")
        return 2 * item

    async def close(self) -> None:
        pass


class FailsToOpen(Doubling):
    async def open(self) -> int:
        raise UsageError("this node lacks a part.")
