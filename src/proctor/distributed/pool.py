"""A pool of actors on the cluster: sends work in chunks and repeats what a lost worker had."""

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
from proctor.distributed.actor import Failure, Item, Node, RemoteWorker, Result, WorkerActor
from proctor.distributed.cluster import capacity, current, import_ray

logger = logging.getLogger(__name__)

MAX_LOSSES = 3  # workers that a job may lose before it fails
LOSSES_BEFORE_ALONE = 2  # after so many a job runs alone: it may be what ends the workers
MAX_FAILED_STARTS = 3  # workers in a row that end before they open; then the run fails
START_SECONDS = 180.0  # timeout for the first worker to start on a node
SETTLE_SECONDS = 10.0  # how long the work waits for the other workers; later ones join in
CLOSE_SECONDS = 30.0
AHEAD_SECONDS = 0.8  # the work that a worker has queued, so that it never waits for more


class WorkerLostError(Exception):
    """Every worker that ran this job was lost."""


class _Job(Generic[Item, Result]):
    def __init__(self, number: int, item: Item) -> None:
        self.number, self.item = number, item
        self.losses = 0
        self.future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    @property
    def runs_alone(self) -> bool:
        return self.losses >= LOSSES_BEFORE_ALONE


class _WorkerHandle(Generic[Item, Result]):
    """The pool's side of a worker: the jobs that it has and has not finished."""

    def __init__(self, actor: Any, node: Node, max_jobs: int, paced: bool) -> None:
        self._actor, self.node = actor, node
        self.jobs: dict[int, _Job[Item, Result]] = {}
        self._max_jobs, self._paced = max_jobs, paced
        self._limit = 2 if paced else max_jobs
        self._since = 0.0

    @property
    def room(self) -> int:
        """How many more jobs it may have."""
        alone = any(job.runs_alone for job in self.jobs.values())
        return 0 if alone else self._limit - len(self.jobs)

    def submit(self, jobs: Sequence[_Job[Item, Result]]) -> None:
        if not self.jobs:
            self._since = time.monotonic()
        self.jobs |= {job.number: job for job in jobs}
        self._actor.submit.remote([(job.number, job.item) for job in jobs])

    async def collect(self) -> list[tuple[_Job[Item, Result], Any]]:
        done = [(self.jobs.pop(number), result) for number, result in await self._actor.collect.remote()]
        now = time.monotonic()
        if self._paced:  # queue little when jobs are slow: another worker may be free sooner
            self._limit = max(2, min(self._max_jobs, int(AHEAD_SECONDS * len(done) / max(now - self._since, 1e-6))))
        self._since = now
        return done


class ActorPool(Generic[Item, Result]):
    """Workers on the nodes of the joined cluster. A lost worker is replaced, and its jobs run again.

    Each worker has at most ``max_jobs`` at once; if ``paced``, only as many as it finishes
    within AHEAD_SECONDS. ``on_open`` receives what a worker's `open` returned; it may raise
    to reject the worker, or change ``max_jobs``.
    """

    def __init__(
        self,
        create: Callable[[], RemoteWorker[Item, Result]],
        size: int,
        *,
        cpus: int,
        gpus: int = 0,
        max_jobs: int,
        paced: bool,
        on_open: Callable[[Node, Any], None],
    ) -> None:
        current().reserved_cpus += size * cpus
        self.size = size
        self.max_jobs = max_jobs
        self._create, self._paced, self._on_open = create, paced, on_open
        self._ray = import_ray()
        self._actor_class = self._ray.remote(WorkerActor).options(
            num_cpus=cpus, num_gpus=gpus, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD"
        )
        self._handles: list[_WorkerHandle[Item, Result]] = []
        self._waiting: deque[_Job[Item, Result]] = deque()
        self._job_count = 0
        self._dispatching = False
        self._slots: set[asyncio.Task[None]] = set()
        self._all_ready = asyncio.Event()
        self._any_ready = asyncio.Event()
        self._placed = 0  # workers that have a node
        self._empty_since = time.monotonic()  # counts while no worker has a node
        self._failure: BaseException | None = None

    async def open(self) -> None:
        self._slots = {asyncio.create_task(self._run_slot()) for _ in range(self.size)}
        for slot in self._slots:
            slot.add_done_callback(self._stop_if_failed)
        await self._any_ready.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                await self._all_ready.wait()
        if self._failure is not None:
            await self.close()
            raise self._failure

    async def close(self) -> None:
        for slot in self._slots:
            slot.cancel()
        await asyncio.gather(*self._slots, return_exceptions=True)

    async def run(self, item: Item) -> Result:
        if self._failure is not None:
            raise self._failure
        self._job_count += 1
        job = _Job[Item, Result](self._job_count, item)
        self._waiting.append(job)
        self._dispatch_soon()
        return await job.future

    async def _run_slot(self) -> None:
        """Runs a worker, and starts another whenever one is lost."""
        failed_starts = 0
        while True:
            actor = self._actor_class.remote(self._create, os.getcwd())
            node = handle = None
            try:
                node = await self._wait_for_node(actor)
                self._placed += 1
                handle = await self._open_worker(actor, node)
                failed_starts = 0
                self._join(handle)
                while True:
                    for job, result in await handle.collect():
                        _settle(job, result)
                    self._dispatch_soon()
            except self._ray.exceptions.RayError as error:
                if handle is not None:
                    self._requeue_jobs(handle, error)
                    continue
                failed_starts += 1
                if failed_starts >= MAX_FAILED_STARTS:
                    raise ProctorError(
                        f"Workers exit before they start: {_last_line(error)}. Install Proctor on every node, with "
                        "the extras that the run needs."
                    ) from None
            except asyncio.CancelledError:
                with suppress(TimeoutError, self._ray.exceptions.RayError):
                    async with asyncio.timeout(CLOSE_SECONDS if handle else 0):
                        await actor.close.remote()
                raise
            finally:
                self._ray.kill(actor)
                if node is not None:
                    self._placed -= 1
                    self._empty_since = time.monotonic()

    async def _open_worker(self, actor: Any, node: Node) -> _WorkerHandle[Item, Result]:
        if node.proctor != __version__:
            raise UsageError(
                f"Node {node.name} has Proctor {node.proctor}, expected {__version__}: install the same version."
            )
        opened = await actor.open.remote()
        try:
            if isinstance(opened, Failure):
                raise opened.error
            self._on_open(node, opened)
        except ProctorError as error:
            raise type(error)(f"Node {node.name}: {error}") from None
        return _WorkerHandle(actor, node, self.max_jobs, self._paced)

    async def _wait_for_node(self, actor: Any) -> Node:
        """Waits for a free node; without limit while other workers have one."""
        answer: asyncio.Future[Node] = asyncio.ensure_future(_await_reference(actor.node.remote()))
        try:
            while not answer.done():
                await asyncio.wait([answer], timeout=START_SECONDS)
                timed_out = not self._placed and time.monotonic() - self._empty_since >= START_SECONDS
                if timed_out and not answer.done():
                    total = capacity()
                    raise UsageError(
                        f"No node of the cluster had room for a worker within {START_SECONDS:.0f} seconds: it has "
                        f"{total.cpus} CPUs and {total.gpus} GPUs, which may be in use."
                    )
            return await answer
        finally:
            answer.cancel()

    def _join(self, handle: _WorkerHandle[Item, Result]) -> None:
        self._handles.append(handle)
        self._any_ready.set()
        if len(self._handles) == self.size:
            self._all_ready.set()
        self._dispatch_soon()

    def _requeue_jobs(self, handle: _WorkerHandle[Item, Result], error: Exception) -> None:
        """Runs the jobs of a lost worker again. Its late results are ignored."""
        self._handles.remove(handle)
        lost = [job for job in handle.jobs.values() if not job.future.done()]
        logger.warning("note: a worker on node %s was lost; its jobs (%d) run again", handle.node.name, len(lost))
        for job in reversed(lost):
            job.losses += 1
            if job.losses < MAX_LOSSES:
                self._waiting.appendleft(job)
            else:
                why = f"{job.losses} workers were lost while they ran it, the last on node {handle.node.name}"
                job.future.set_exception(WorkerLostError(f"{why}: {_last_line(error)}"))
        self._dispatch_soon()

    def _stop_if_failed(self, slot: asyncio.Task[None]) -> None:
        if slot.cancelled() or (error := slot.exception()) is None:
            return
        if self._failure is None:
            self._failure = error
        self._any_ready.set()
        self._all_ready.set()
        for job in (*self._waiting, *(job for handle in self._handles for job in handle.jobs.values())):
            if not job.future.done():
                job.future.set_exception(self._failure)
        self._waiting.clear()

    def _dispatch_soon(self) -> None:
        """Dispatches once for all jobs that are added in one step of the event loop."""
        if not self._dispatching:
            self._dispatching = True
            asyncio.get_running_loop().call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._dispatching = False
        free = sorted((handle for handle in self._handles if handle.room > 0), key=lambda handle: len(handle.jobs))
        for i, handle in enumerate(free):
            share = -(-len(self._waiting) // (len(free) - i))
            if jobs := self._take_jobs(min(share, handle.room), idle=not handle.jobs):
                handle.submit(jobs)

    def _take_jobs(self, number: int, idle: bool) -> list[_Job[Item, Result]]:
        jobs: list[_Job[Item, Result]] = []
        while self._waiting and len(jobs) < number:
            job = self._waiting[0]
            if job.runs_alone and not job.future.done():
                if idle and not jobs:
                    jobs.append(self._waiting.popleft())
                break
            self._waiting.popleft()
            if not job.future.done():  # else its caller was cancelled
                jobs.append(job)
        return jobs


def _settle(job: _Job[Any, Any], result: Any) -> None:
    if job.future.done():
        return
    if isinstance(result, Failure):
        job.future.set_exception(result.error)
    else:
        job.future.set_result(result)


async def _await_reference(reference: Any) -> Any:
    return await reference


def _last_line(error: Exception) -> str:
    """Ray names the error in the last line, below the traceback."""
    return str(error).strip().rpartition("\n")[2].rstrip(".")
