"""The Ray actor that runs a worker on a node of the cluster."""

from __future__ import annotations

import asyncio
import os
import pickle
import socket
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from msgspec import Struct

from proctor import __version__
from proctor.core.errors import ModelError, ProctorError, UsageError
from proctor.distributed.cluster import import_ray, node_name

Item = TypeVar("Item")
Result = TypeVar("Result")

BATCH_SECONDS = 0.2  # results that arrive within this time are returned together


class Node(Struct, frozen=True):
    """A node that runs a worker."""

    name: str
    proctor: str
    """The version of Proctor that is installed on it."""


class Failure(Struct, frozen=True):
    error: Exception


class RemoteWorker(ABC, Generic[Item, Result]):
    """Processes items on a node. The actor creates it there."""

    max_concurrency: int
    """The number of items that it processes at once."""

    @abstractmethod
    async def open(self) -> Any:
        """Prepares the worker; the pool passes the result to `on_open`."""

    @abstractmethod
    async def process(self, item: Item) -> Result: ...

    @abstractmethod
    async def close(self) -> None: ...


class WorkerActor:
    """Receives items in batches and returns finished results in batches.

    One call carries many items, because a call costs as much as a small program.
    """

    def __init__(self, create: Callable[[], RemoteWorker[Any, Any]], folder: str) -> None:
        if os.path.isdir(folder):
            os.chdir(folder)  # relative paths mean the same here as in the driver
        self._create = create
        self._worker: RemoteWorker[Any, Any] | None = None
        self._waiting: deque[tuple[int, Any]] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._done: list[tuple[int, Any]] = []
        self._some_done, self._all_done = asyncio.Event(), asyncio.Event()

    async def node(self) -> Node:
        return Node(node_name(socket.gethostname(), import_ray().get_runtime_context().get_node_id()), __version__)

    async def open(self) -> Any:
        try:
            self._worker = self._create()
            return await self._worker.open()
        except Exception as error:
            return Failure(_portable(error))

    async def submit(self, items: Sequence[tuple[int, Any]]) -> None:
        assert self._worker is not None
        self._all_done.clear()
        self._waiting.extend(items)
        for _ in range(min(len(items), self._worker.max_concurrency - len(self._running))):
            self._running.add(asyncio.create_task(self._process(self._worker)))

    async def collect(self) -> list[tuple[int, Any]]:
        await self._some_done.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(BATCH_SECONDS):
                await self._all_done.wait()
        done, self._done = self._done, []
        self._some_done.clear()
        return done

    async def close(self) -> None:
        self._waiting.clear()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._worker is not None:
            await self._worker.close()

    async def _process(self, worker: RemoteWorker[Any, Any]) -> None:
        """Processes items until none is waiting."""
        while self._waiting:
            number, item = self._waiting.popleft()
            try:
                result = await worker.process(item)
            except Exception as error:
                result = Failure(_portable(error))
            self._done.append((number, result))
            self._some_done.set()
        task = asyncio.current_task()
        assert task is not None
        self._running.discard(task)
        if not self._running:
            self._all_done.set()


def _portable(error: Exception) -> Exception:
    """An error that keeps its text when it is pickled; replaces those that cannot be."""
    with suppress(Exception):
        if str(pickle.loads(pickle.dumps(error))) == str(error):
            return error
    kinds: tuple[type[Exception], ...] = (UsageError, ProctorError, ModelError)
    kind = next((kind for kind in kinds if isinstance(error, kind)), None)
    return kind(str(error)) if kind else RuntimeError(f"{type(error).__name__}: {error}")
