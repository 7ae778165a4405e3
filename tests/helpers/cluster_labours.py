"""What the workers of a test's crew do on their nodes."""

from __future__ import annotations

import os
from typing import Any

from proctor.core.errors import MissingExtraError, UsageError
from proctor.distributed.actor import Labour


class Doubling(Labour[Any, Any]):
    """Doubles numbers; other items are orders to end, or to fail."""

    at_once = 1

    async def open(self) -> int:
        return os.getpid()

    async def do(self, item: Any) -> Any:
        if item == "end":
            os._exit(1)
        if item == "fail":
            raise MissingExtraError("This", "extra")
        return 2 * item

    async def close(self) -> None:
        pass


class Unfit(Doubling):
    async def open(self) -> int:
        raise UsageError("this cannot be done here.")
