"""A Ray cluster: joined for the time of a run, and crews of long-lived workers on it that are sent work in chunks."""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import shutil
import signal
import socket
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from typing import Any, Generic, TypeVar

from msgspec import Struct

from proctor import __version__
from proctor.errors import MissingExtraError, ModelError, ProctorError, UsageError

logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST_LOSSES = 3  # of the worker that had it, until work is given up
SUSPICIOUS = 2  # so many losses, and it is done alone: it may be what ends the workers
STILLBORN = 3  # workers in a row that ended before they had begun, until the run does
JOIN_SECONDS = 30.0  # for a cluster to answer at its address
PLACE_SECONDS = 60.0  # for the first worker to find its place on a node
SETTLE_SECONDS = 10.0  # for the others to join it before the work begins; those that come later are as welcome
FAREWELL_SECONDS = 10.0
HANDOVER_SECONDS = 0.2  # results that come this soon after one another are handed over together
AHEAD_SECONDS = 0.8  # of work that a worker has before it, so that it need not wait for the next
OBJECT_STORE_BYTES = 256 << 20


class LostError(Exception):
    """Every worker that had this work was lost."""


class Node(Struct, frozen=True):
    """Where a worker is."""

    name: str
    proctor: str
    """The version of this package there."""


class Capacity(Struct, frozen=True):
    cpus: int
    gpus: int
    largest: int
    """CPUs of the node that has the most."""


class _Failure(Struct, frozen=True):
    error: Exception


class _Cluster:
    """The cluster that this process has joined: one of its own, unless it was told or has joined one before."""

    def __init__(self, address: str | None, cpus: int) -> None:
        self._address, self._cpus = address, cpus
        self._folder: str | None = None
        self._is_joined = False
        self.joining: Future[None] = Future()
        self.leaving = threading.Event()
        self.left: Future[None] = Future()
        self.promised = 0  # CPUs of the crews

    def start(self) -> None:
        """In a thread, because it takes seconds; in one that stays, because Ray's processes end with it."""
        threading.Thread(target=self._live, name="proctor-cluster", daemon=True).start()

    def _live(self) -> None:
        try:
            self._join()
        except BaseException as error:
            self.joining.set_exception(error)
        else:
            self.joining.set_result(None)
            self.leaving.wait()
        finally:
            self._leave()
            self.left.set_result(None)

    def _join(self) -> None:
        ray = import_ray()
        if ray.is_initialized():
            return
        logging.getLogger("ray").setLevel(logging.ERROR)
        quiet = {"log_to_driver": False, "configure_logging": False, "logging_level": logging.ERROR}
        if self._address is not None:
            ray.init(self._address, **quiet)
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            self._folder = tempfile.mkdtemp(prefix="proctor-ray-")
            ray.init(
                "local",
                num_cpus=self._cpus,
                object_store_memory=OBJECT_STORE_BYTES,
                include_dashboard=False,
                _temp_dir=self._folder,
                _system_config={"worker_niceness": 0},  # programs and models get the time that they get locally
                **quiet,
            )
        self._is_joined = True

    def _leave(self) -> None:
        """Ends the cluster, if it was started here."""
        if self._is_joined:
            import_ray().shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


_current: _Cluster | None = None


@asynccontextmanager
async def joined(address: str | None, cpus: int) -> AsyncIterator[dict[str, Any]]:
    """A cluster for all crews that are made meanwhile; says what it consists of.

    Without an address it is one of our own, with so many CPUs, which ends with the block.
    """
    global _current
    import_ray()
    _current = cluster = _Cluster(address, cpus)
    in_main_thread = threading.current_thread() is threading.main_thread()
    at_sigterm = signal.getsignal(signal.SIGTERM)
    joining, left = asyncio.wrap_future(cluster.joining), asyncio.wrap_future(cluster.left)
    cluster.start()
    try:
        try:
            async with asyncio.timeout(None if address is None else JOIN_SECONDS):
                await asyncio.shield(joining)
        except (ConnectionError, TimeoutError, ValueError, RuntimeError) as error:
            if address is None:
                raise
            why = str(error).strip().partition("\n")[0] or f"nothing was heard for {JOIN_SECONDS:.0f} seconds"
            raise UsageError(f"ray_address: no cluster answers at {address!r}: {why}") from None
        if in_main_thread:
            signal.signal(signal.SIGTERM, at_sigterm)  # Ray has put one in its place that ends the process at once
        yield describe()
    finally:
        _current = None
        cluster.leaving.set()
        if address is None or joining.done():  # else Ray may go on for minutes, looking for what is not there
            await asyncio.wait([left])


def describe() -> dict[str, Any]:
    """The cluster as it is kept with a run."""
    ray = import_ray()
    nodes = {_node_name(node["NodeManagerHostname"], node["NodeID"]): node["Resources"] for node in _nodes()}
    shown = {name: {kind: int(has.get(kind, 0)) for kind in ("CPU", "GPU")} for name, has in sorted(nodes.items())}
    return {"ray": ray.__version__, "nodes": shown}


def capacity() -> Capacity:
    nodes = [node["Resources"] for node in _nodes()]
    cpus = [int(has.get("CPU", 0)) for has in nodes]
    return Capacity(sum(cpus), sum(int(has.get("GPU", 0)) for has in nodes), max(cpus, default=0))


def free_cpus() -> int:
    """Those that no crew of ours was promised."""
    if _current is None:
        raise RuntimeError("no cluster has been joined")
    return capacity().cpus - _current.promised


def _nodes() -> list[dict[str, Any]]:
    return [node for node in import_ray().nodes() if node["Alive"]]


def _node_name(host: str, identifier: str) -> str:
    return f"{host}/{identifier[:8]}"  # there may be several on one machine


def import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingExtraError("The engine ray", "ray") from None
    return ray


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
        return Node(_node_name(socket.gethostname(), import_ray().get_runtime_context().get_node_id()), __version__)

    async def open(self) -> Any:
        try:
            self._labour = self._make()
            return await self._labour.open()
        except Exception as error:
            return _Failure(_portable(error))

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
                result = _Failure(_portable(error))
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


class Crew(Generic[Item, Result]):
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
        if _current is None:
            raise RuntimeError("no cluster has been joined")
        _current.promised += size * cpus
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
            if isinstance(opened, _Failure):
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
    if isinstance(result, _Failure):
        job.future.set_exception(result.error)
    else:
        job.future.set_result(result)


async def _awaited(reference: Any) -> Any:
    return await reference


def _last_line(error: Exception) -> str:
    """Where Ray says what it was; before that it says where."""
    return str(error).strip().rpartition("\n")[2].rstrip(".")
