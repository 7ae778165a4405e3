"""An adaptive limit on the concurrent requests to a server, shared by all models that use it."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections import deque

from proctor.core.errors import TransientModelError

logger = logging.getLogger(__name__)

START_SLOTS, MAX_SLOTS = 16, 256  # unless --concurrency sets both
GROWTH = 1.5  # per window, until the server first pushes back
SLOW_GROWTH = 1.05  # the same afterwards, by at least one slot
CUT = 0.75  # the share of slots that remains after a pushback
WINDOW = 16  # answers per window, at least; and at least one per slot
MEASURABLE_GROWTH = 1.25  # growth of slots whose effect on throughput exceeds the noise
MIN_GAIN = 0.2  # growth of throughput that is required, as a share of the growth of slots
MAX_SLACK = 0.1  # share of answers after which no request waited; above it, the limit is not the bottleneck
CEILING_WINDOWS = 10  # windows after which a ceiling is tried again
MIN_PAUSE = 0.5  # seconds
LOGGED_PAUSE = 10.0  # seconds; longer pauses are logged
MAX_JITTER = 1.0  # seconds over which requests resume after a pause


class ServerLimit:
    """Request slots of one server. Their number grows while growth increases throughput.

    It is cut when the server pushes back: when it rejects a request as one too many (429, 503,
    529) or times out. The number that was too many becomes a ceiling, which is not tried again
    for a while, so that the limit stays close to what the server takes instead of oscillating.
    Several event loops may share a limit.
    """

    def __init__(self, name: str, start: int, max_slots: int) -> None:
        self.name = name
        self.slots = start
        self.max_slots = max_slots
        self.pushbacks = 0
        self._in_flight = 0
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()
        self._lock = threading.Lock()
        self._ceiling = float("inf")  # slots that were too many
        self._windows_at_ceiling = 0
        self._cut_at = float("-inf")
        self._base: tuple[int, float] | None = None  # fewer slots, and their answers per second
        self._paused_until = float("-inf")
        self._open_window()

    def slot(self) -> Slot:
        """A context that waits for a slot and the end of a pause, and observes the request."""
        return Slot(self)

    async def _acquire(self) -> float:
        """Returns the time at which the request starts."""
        await self._enter()
        try:
            while (wait := self._paused_until - (now := _now())) > 0:  # noqa: ASYNC110 - a pause, not a signal
                # With jitter, or the server would have to push back again.
                await asyncio.sleep(wait + random.uniform(0, min(wait, MAX_JITTER)))
        except BaseException:
            self._leave()
            raise
        return now

    def _release(self, started: float, error: BaseException | None) -> None:
        try:
            if error is None:
                self._count_answer()
            elif isinstance(error, TransientModelError) and (error.overloaded or error.retry_after is not None):
                self._push_back(started)
        finally:
            self._leave()

    # -- slots --------------------------------------------------------------------------------

    async def _enter(self) -> None:
        with self._lock:
            if self._in_flight < self.slots and not self._waiting:
                self._in_flight += 1
                return
            loop = asyncio.get_running_loop()
            granted: asyncio.Future[None] = loop.create_future()
            self._waiting.append((loop, granted))
            self._grant_slots()  # those ahead may belong to a closed event loop
        try:
            await granted
        except asyncio.CancelledError:
            with self._lock:
                if (loop, granted) in self._waiting:
                    self._waiting.remove((loop, granted))
                    raise
            self._leave()  # the slot was granted at the same moment
            raise

    def _leave(self) -> None:
        with self._lock:
            self._in_flight -= 1
            self._slack += not self._waiting
            self._grant_slots()

    def _grant_slots(self) -> None:
        while self._waiting and self._in_flight < self.slots:
            loop, granted = self._waiting.popleft()
            if loop.is_closed():
                continue
            self._in_flight += 1
            if loop is asyncio.get_running_loop():
                _grant(granted)
            else:
                loop.call_soon_threadsafe(_grant, granted)

    # -- their number -------------------------------------------------------------------------

    def _open_window(self) -> None:
        """A window starts with as many uncounted answers as there are slots, to warm up."""
        self._answers = self._slack = 0
        self._warm_at = 0.0

    def _count_answer(self) -> None:
        with self._lock:
            self._answers += 1
            counted = self._answers - self.slots
            if counted == 0:
                self._warm_at, self._slack = _now(), 0
            elif counted >= max(WINDOW, self.slots):
                rate = counted / max(1e-9, _now() - self._warm_at)
                self._adjust(rate, self._slack > MAX_SLACK * counted)
                self._open_window()
                self._grant_slots()

    def _adjust(self, rate: float, idle: bool) -> None:
        """Change the number of slots at the end of a window."""
        if idle:
            self._base = None
            return
        now = (self.slots, rate)
        if self._base is None:
            self._base = now
        elif self.slots >= MEASURABLE_GROWTH * self._base[0]:
            if _is_worthwhile(self._base, now):
                self._base = now
            else:
                self.slots = self._base[0]
                self._ceiling, self._windows_at_ceiling = self.slots + 1, 0
                return
        if self.slots + 1 < self._ceiling:
            factor = SLOW_GROWTH if self.pushbacks else GROWTH
            grown = max(self.slots + 1, int(self.slots * factor))
            self.slots = int(min(grown, self.max_slots, self._ceiling - 1))
        else:
            self._windows_at_ceiling += 1
            if self._windows_at_ceiling >= CEILING_WINDOWS:
                self._ceiling = float("inf")

    def _push_back(self, started: float) -> None:
        with self._lock:
            self.pushbacks += 1
            if started <= self._cut_at:
                return  # the requests that were in flight together count as one sign
            concurrent = min(self.slots, self._in_flight)
            self._ceiling, self._windows_at_ceiling = max(2, concurrent), 0
            self.slots = max(1, int(concurrent * CUT))
            self._base = None
            self._cut_at = _now()
            self._open_window()

    # -- pauses -------------------------------------------------------------------------------

    def pause(self, seconds: float) -> None:
        """Hold back all requests, because the server asked to wait."""
        seconds = max(seconds, MIN_PAUSE)
        if seconds >= LOGGED_PAUSE and _now() > self._paused_until:
            logger.warning("%s asks to wait %.0f s (rate limit)", self.name, seconds)
        self._paused_until = max(self._paused_until, _now() + seconds)


class Slot:
    """The context of one request; a class, because a generator would take twice as long."""

    __slots__ = ("_limit", "_started")

    def __init__(self, limit: ServerLimit) -> None:
        self._limit = limit

    async def __aenter__(self) -> None:
        self._started = await self._limit._acquire()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._limit._release(self._started, error)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _grant(granted: asyncio.Future[None]) -> None:
    if not granted.done():
        granted.set_result(None)


def _is_worthwhile(before: tuple[int, float], now: tuple[int, float]) -> bool:
    """Whether more slots increased throughput, and not only the latency of each request."""
    return now[1] / before[1] - 1 >= MIN_GAIN * (now[0] / before[0] - 1)


SERVERS: dict[str, ServerLimit] = {}  # kept for the process: the next run starts where one ends


def limit_of(server: str, concurrency: int | None) -> ServerLimit:
    """The one limit of this server. A given concurrency is both the start and the maximum."""
    max_slots = concurrency or MAX_SLOTS
    limit = SERVERS.setdefault(server, ServerLimit(server, concurrency or START_SLOTS, max_slots))
    if limit.max_slots != max_slots:  # the latest call counts
        limit.max_slots = max_slots
        keep = limit.pushbacks or concurrency is None
        limit.slots = min(max_slots, limit.slots) if keep else max_slots
    return limit
