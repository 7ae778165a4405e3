"""A worker where it is, on a node of the cluster."""

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

HANDOVER_SECONDS = 0.2  # results that come this soon after one another are handed over together


class Node(Struct, frozen=True):
    """Where a worker is."""

    name: str
    proctor: str
    """The version of this package there."""


class Failure(Struct, frozen=True):
    error: Exception


class Labour(ABC, Generic[Item, Result]):
    """What a worker does, on its node. It is made there."""

    at_once: int
    """How many items it works at together."""

    @abstractmethod
    async def open(self) -> Any:
        """What the crew's owner is to know about it."""

    @abstractmethod
    async def do(self, item: Item) -> Result: ...

    @abstractmethod
    async def close(self) -> None: ...


class Post:
    """The far end of a worker, as a Ray actor: takes items as they come, and hands over what is done.

    One call for many items, because a call costs as much as a small program.
    """

    def __init__(self, make: Callable[[], Labour[Any, Any]], folder: str) -> None:
        if os.path.isdir(folder):
            os.chdir(folder)  # so that a path means what it means to whoever wrote it
        self._make = make
        self._labour: Labour[Any, Any] | None = None
        self._waiting: deque[tuple[int, Any]] = deque()
        self._at_work: set[asyncio.Task[None]] = set()
        self._done: list[tuple[int, Any]] = []
        self._some, self._all = asyncio.Event(), asyncio.Event()

    async def node(self) -> Node:
        return Node(node_name(socket.gethostname(), import_ray().get_runtime_context().get_node_id()), __version__)

    async def open(self) -> Any:
        try:
            self._labour = self._make()
            return await self._labour.open()
        except Exception as error:
            return Failure(_portable(error))

    async def give(self, items: Sequence[tuple[int, Any]]) -> None:
        assert self._labour is not None
        self._all.clear()
        self._waiting.extend(items)
        for _ in range(min(len(items), self._labour.at_once - len(self._at_work))):
            self._at_work.add(asyncio.create_task(self._work(self._labour)))

    async def take(self) -> list[tuple[int, Any]]:
        await self._some.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(HANDOVER_SECONDS):
                await self._all.wait()
        done, self._done = self._done, []
        self._some.clear()
        return done

    async def close(self) -> None:
        self._waiting.clear()
        for task in self._at_work:
            task.cancel()
        await asyncio.gather(*self._at_work, return_exceptions=True)
        if self._labour is not None:
            await self._labour.close()

    async def _work(self, labour: Labour[Any, Any]) -> None:
        """Until there is nothing left to begin."""
        while self._waiting:
            number, item = self._waiting.popleft()
            try:
                result = await labour.do(item)
            except Exception as error:
                result = Failure(_portable(error))
            self._done.append((number, result))
            self._some.set()
        task = asyncio.current_task()
        assert task is not None
        self._at_work.discard(task)
        if not self._at_work:
            self._all.set()


def _portable(error: Exception) -> Exception:
    """One that arrives elsewhere with the same text: some cannot be sent as they are."""
    with suppress(Exception):
        if str(pickle.loads(pickle.dumps(error))) == str(error):
            return error
    kinds: tuple[type[Exception], ...] = (UsageError, ProctorError, ModelError)
    kind = next((kind for kind in kinds if isinstance(error, kind)), None)
    return kind(str(error)) if kind else RuntimeError(f"{type(error).__name__}: {error}")
