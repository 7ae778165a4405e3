"""A crew of workers as its owner sees it: work goes out in chunks, and what is lost is done again."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic

from proctor import __version__
from proctor.core.errors import ProctorError, UsageError
from proctor.distributed.actor import Failure, Item, Labour, Node, Post, Result
from proctor.distributed.cluster import capacity, current, import_ray

logger = logging.getLogger(__name__)

MOST_LOSSES = 3  # of the worker that had it, until work is given up
SUSPICIOUS = 2  # so many losses, and it is done alone: it may be what ends the workers
STILLBORN = 3  # workers in a row that ended before they had begun, until the run does
PLACE_SECONDS = 180.0  # for the first worker to start on a node
SETTLE_SECONDS = 10.0  # for the others to join it before the work begins; those that come later are as welcome
FAREWELL_SECONDS = 30.0
AHEAD_SECONDS = 0.8  # of work that a worker has before it, so that it need not wait for the next


class LostError(Exception):
    """Every worker that had this work was lost."""


class _Job(Generic[Item, Result]):
    def __init__(self, number: int, item: Item) -> None:
        self.number, self.item = number, item
        self.losses = 0
        self.future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    @property
    def suspicious(self) -> bool:
        return self.losses >= SUSPICIOUS


class _Hand(Generic[Item, Result]):
    """The near end of a worker: what it has been given and has not handed over."""

    def __init__(self, actor: Any, node: Node, most: int, paced: bool) -> None:
        self._actor, self.node = actor, node
        self.jobs: dict[int, _Job[Item, Result]] = {}
        self._most, self._paced = most, paced
        self._limit = 2 if paced else most
        self._since = 0.0

    @property
    def room(self) -> int:
        """How many more it can be given."""
        alone = any(job.suspicious for job in self.jobs.values())
        return 0 if alone else self._limit - len(self.jobs)

    def give(self, jobs: Sequence[_Job[Item, Result]]) -> None:
        if not self.jobs:
            self._since = time.monotonic()
        self.jobs |= {job.number: job for job in jobs}
        self._actor.give.remote([(job.number, job.item) for job in jobs])

    async def take(self) -> list[tuple[_Job[Item, Result], Any]]:
        done = [(self.jobs.pop(number), result) for number, result in await self._actor.take.remote()]
        now = time.monotonic()
        if self._paced:  # little ahead of slow work: others may be free before
            self._limit = max(2, min(self._most, int(AHEAD_SECONDS * len(done) / max(now - self._since, 1e-6))))
        self._since = now
        return done


class ActorPool(Generic[Item, Result]):
    """Workers on the nodes of the cluster that has been joined. One that is lost is replaced, and its work done again.

    Each has at most ``most`` items at once; where it is ``paced``, only as many as take it a moment. What is known of a
    worker once it is open is told to ``welcome``, which may refuse it by an exception, or set ``most`` anew.
    """

    def __init__(
        self,
        make: Callable[[], Labour[Item, Result]],
        size: int,
        *,
        cpus: int,
        gpus: int = 0,
        most: int,
        paced: bool,
        welcome: Callable[[Node, Any], None],
    ) -> None:
        current().promised += size * cpus
        self.size = size
        self.most = most
        self._make, self._paced, self._welcome = make, paced, welcome
        self._ray = import_ray()
        self._actor_class = self._ray.remote(Post).options(
            num_cpus=cpus, num_gpus=gpus, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )
        self._hands: list[_Hand[Item, Result]] = []
        self._waiting: deque[_Job[Item, Result]] = deque()
        self._asked = 0
        self._dispatching = False
        self._places: set[asyncio.Task[None]] = set()
        self._all_there = asyncio.Event()
        self._someone_there = asyncio.Event()
        self._on_nodes = 0
        self._deserted = time.monotonic()  # since then, where no worker is on any node
        self._failure: BaseException | None = None

    async def open(self) -> None:
        self._places = {asyncio.create_task(self._fill_a_place()) for _ in range(self.size)}
        for place in self._places:
            place.add_done_callback(self._stop_if_failed)
        await self._someone_there.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                await self._all_there.wait()
        if self._failure is not None:
            await self.close()
            raise self._failure

    async def close(self) -> None:
        for place in self._places:
            place.cancel()
        await asyncio.gather(*self._places, return_exceptions=True)

    async def do(self, item: Item) -> Result:
        if self._failure is not None:
            raise self._failure
        self._asked += 1
        job = _Job[Item, Result](self._asked, item)
        self._waiting.append(job)
        self._dispatch_soon()
        return await job.future

    async def _fill_a_place(self) -> None:
        """One worker after another."""
        stillborn = 0
        while True:
            actor = self._actor_class.remote(self._make, os.getcwd())
            node = hand = None
            try:
                node = await self._placed(actor)
                self._on_nodes += 1
                hand = await self._opened(actor, node)
                stillborn = 0
                self._join(hand)
                while True:
                    for job, result in await hand.take():
                        _settle(job, result)
                    self._dispatch_soon()
            except self._ray.exceptions.RayError as error:
                if hand is not None:
                    self._mourn(hand, error)
                    continue
                stillborn += 1
                if stillborn >= STILLBORN:
                    raise ProctorError(
                        f"Workers end before they have begun: {_last_line(error)}. Every node needs Proctor, with the "
                        "extras that the run needs."
                    ) from None
            except asyncio.CancelledError:
                with suppress(TimeoutError, self._ray.exceptions.RayError):
                    async with asyncio.timeout(FAREWELL_SECONDS if hand else 0):
                        await actor.close.remote()
                raise
            finally:
                self._ray.kill(actor)
                if node is not None:
                    self._on_nodes -= 1
                    self._deserted = time.monotonic()

    async def _opened(self, actor: Any, node: Node) -> _Hand[Item, Result]:
        if node.proctor != __version__:
            raise UsageError(f"Node {node.name} has Proctor {node.proctor}, not {__version__}: install the same.")
        opened = await actor.open.remote()
        try:
            if isinstance(opened, Failure):
                raise opened.error
            self._welcome(node, opened)
        except ProctorError as error:
            raise type(error)(f"Node {node.name}: {error}") from None
        return _Hand(actor, node, self.most, self._paced)

    async def _placed(self, actor: Any) -> Node:
        """Waits for room on a node, as long as others are at work already."""
        answer: asyncio.Future[Node] = asyncio.ensure_future(_awaited(actor.node.remote()))
        try:
            while not answer.done():
                await asyncio.wait([answer], timeout=PLACE_SECONDS)
                alone = not self._on_nodes and time.monotonic() - self._deserted >= PLACE_SECONDS
                if alone and not answer.done():
                    has = capacity()
                    raise UsageError(
                        f"No node of the cluster had room for a worker within {PLACE_SECONDS:.0f} seconds: it has "
                        f"{has.cpus} CPUs and {has.gpus} GPUs, which may be in use."
                    )
            return await answer
        finally:
            answer.cancel()

    def _join(self, hand: _Hand[Item, Result]) -> None:
        self._hands.append(hand)
        self._someone_there.set()
        if len(self._hands) == self.size:
            self._all_there.set()
        self._dispatch_soon()

    def _mourn(self, hand: _Hand[Item, Result], error: Exception) -> None:
        """Nothing that it had is lost; and nothing done twice, because what it still says is not heard."""
        self._hands.remove(hand)
        lost = [job for job in hand.jobs.values() if not job.future.done()]
        logger.warning("note: a worker on node %s was lost; what it had (%d) is done again", hand.node.name, len(lost))
        for job in reversed(lost):
            job.losses += 1
            if job.losses < MOST_LOSSES:
                self._waiting.appendleft(job)
            else:
                why = f"{job.losses} workers were lost that had it, the last on node {hand.node.name}"
                job.future.set_exception(LostError(f"{why}: {_last_line(error)}"))
        self._dispatch_soon()

    def _stop_if_failed(self, place: asyncio.Task[None]) -> None:
        if place.cancelled() or (error := place.exception()) is None:
            return
        if self._failure is None:
            self._failure = error
        self._someone_there.set()
        self._all_there.set()
        for job in (*self._waiting, *(job for hand in self._hands for job in hand.jobs.values())):
            if not job.future.done():
                job.future.set_exception(self._failure)
        self._waiting.clear()

    def _dispatch_soon(self) -> None:
        """Once for all that is asked at the same moment."""
        if not self._dispatching:
            self._dispatching = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._dispatching = False
        free = sorted((hand for hand in self._hands if hand.room > 0), key=lambda hand: len(hand.jobs))
        for i, hand in enumerate(free):
            share = -(-len(self._waiting) // (len(free) - i))
            if jobs := self._draw(min(share, hand.room), idle=not hand.jobs):
                hand.give(jobs)

    def _draw(self, number: int, idle: bool) -> list[_Job[Item, Result]]:
        jobs: list[_Job[Item, Result]] = []
        while self._waiting and len(jobs) < number:
            job = self._waiting[0]
            if job.suspicious and not job.future.done():
                if idle and not jobs:
                    jobs.append(self._waiting.popleft())
                break
            self._waiting.popleft()
            if not job.future.done():  # else nobody waits for it any more
                jobs.append(job)
        return jobs


def _settle(job: _Job[Any, Any], result: Any) -> None:
    if job.future.done():
        return
    if isinstance(result, Failure):
        job.future.set_exception(result.error)
    else:
        job.future.set_result(result)


async def _awaited(reference: Any) -> Any:
    return await reference


def _last_line(error: Exception) -> str:
    """Where Ray says what it was; before that it says where."""
    return str(error).strip().rpartition("\n")[2].rstrip(".")
