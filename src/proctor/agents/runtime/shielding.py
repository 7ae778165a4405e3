"""Work that has to be completed even if whoever waits for it is cancelled."""

from __future__ import annotations

import asyncio
from typing import TypeVar

T = TypeVar("T")


async def run_to_completion(task: asyncio.Task[T]) -> T:
    """The result of the task. However often the caller is cancelled, the task runs to its end before that is raised."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from task.exception()
    return task.result()
