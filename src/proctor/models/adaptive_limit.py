"""How many requests a server is sent at once: found out by trying, and one number for all who ask it."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections import deque

from proctor.core.errors import TransientModelError

logger = logging.getLogger(__name__)

START_SLOTS, MAX_SLOTS = 16, 256  # slots at first, and in the end, unless --concurrency says it
GROWTH = 1.5  # from window to window, until the server pushes back for the first time
SLOW_GROWTH = 1.05  # the same afterwards, by one place at least
CUT = 0.75  # what is left of the slots when it pushes back
WINDOW = 16  # answers by which a number of slots is judged, at least; and at least one for each place
MEASURABLE_GROWTH = 1.25  # growth whose effect can be told from chance
MIN_GAIN = 0.2  # of the growth in slots, the share that must be seen in answers per second
MAX_SLACK = 0.1  # share of the answers after which nobody waited for the place: above it, the slots are not the limit
CEILING_WINDOWS = 10  # windows that pass before a ceiling is tried again
MIN_PAUSE = 0.5  # seconds
LOGGED_PAUSE = 10.0  # seconds of a pause that are worth a word
MAX_JITTER = 1.0  # seconds over which requests come back after a pause, at most


class ServerLimit:
    """Places for requests at one server. Their number grows while more of them bring more answers per second.

    It is cut when the server pushes back: when it refuses a request for being too many (429, 503, 529) or does not
    answer in time. The number that was too many is a ceiling, which is not tried again for a while: so the
    number stays near what the server takes instead of swinging. May be used from several event loops.
    """

    def __init__(self, name: str, start: int, most: int) -> None:
        self.name = name
        self.slots = start
        self.most = most
        self.pushbacks = 0
        self._in_flight = 0
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()
        self._lock = threading.Lock()
        self._ceiling = float("inf")  # slots that were too many
        self._patience = 0  # windows passed just below the ceiling
        self._cut_at = float("-inf")
        self._base: tuple[int, float] | None = None  # a smaller number of slots, and its answers per second
        self._quiet_until = float("-inf")
        self._open_window()

    def place(self) -> Slot:
        """Waits for a place, and for the end of a pause that the server asked for; watches how the request fares."""
        return Slot(self)

    async def _begin(self) -> float:
        """When the request may begin; from then on it has its place."""
        await self._enter()
        try:
            while (wait := self._quiet_until - (now := _now())) > 0:  # noqa: ASYNC110 - a pause, not a signal
                # Not all at the same moment, or the server would have to push back again.
                await asyncio.sleep(wait + random.uniform(0, min(wait, MAX_JITTER)))
        except BaseException:
            self._leave()
            raise
        return now

    def _end(self, begun: float, error: BaseException | None) -> None:
        try:
            if error is None:
                self._count_answer()
            elif isinstance(error, TransientModelError) and (error.overloaded or error.retry_after is not None):
                self._push_back(begun)
        finally:
            self._leave()

    # -- slots -------------------------------------------------------------------------------

    async def _enter(self) -> None:
        with self._lock:
            if self._in_flight < self.slots and not self._waiting:
                self._in_flight += 1
                return
            loop = asyncio.get_running_loop()
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.append((loop, turn))
            self._hand_out()  # those before it may belong to a loop that is gone
        try:
            await turn
        except asyncio.CancelledError:
            with self._lock:
                if (loop, turn) in self._waiting:
                    self._waiting.remove((loop, turn))
                    raise
            self._leave()  # it was given the place at the same moment
            raise

    def _leave(self) -> None:
        with self._lock:
            self._in_flight -= 1
            self._slack += not self._waiting
            self._hand_out()

    def _hand_out(self) -> None:
        while self._waiting and self._in_flight < self.slots:
            loop, turn = self._waiting.popleft()
            if loop.is_closed():
                continue
            self._in_flight += 1
            if loop is asyncio.get_running_loop():
                _grant(turn)
            else:
                loop.call_soon_threadsafe(_grant, turn)

    # -- their number -------------------------------------------------------------------------

    def _open_window(self) -> None:
        """A window is as many answers as there are slots, until all are of this number, and then those that count."""
        self._answers = self._slack = 0
        self._warm_at = 0.0

    def _count_answer(self) -> None:
        with self._lock:
            self._answers += 1
            counted = self._answers - self.slots
            if counted == 0:
                self._warm_at, self._slack = _now(), 0
            elif counted >= max(WINDOW, self.slots):
                self._judge(counted / max(1e-9, _now() - self._warm_at), self._slack > MAX_SLACK * counted)
                self._open_window()
                self._hand_out()

    def _judge(self, rate: float, idle: bool) -> None:
        """At the end of a window: more slots, fewer, or the same."""
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
                self._ceiling, self._patience = self.slots + 1, 0
                return
        if self.slots + 1 < self._ceiling:
            grown = max(self.slots + 1, int(self.slots * (SLOW_GROWTH if self.pushbacks else GROWTH)))
            self.slots = int(min(grown, self.most, self._ceiling - 1))
        else:
            self._patience += 1
            if self._patience >= CEILING_WINDOWS:
                self._ceiling = float("inf")

    def _push_back(self, begun: float) -> None:
        with self._lock:
            self.pushbacks += 1
            if begun <= self._cut_at:
                return  # one of those that were under way together: they are one sign
            crowd = min(self.slots, self._in_flight)
            self._ceiling, self._patience = max(2, crowd), 0
            self.slots = max(1, int(crowd * CUT))
            self._base = None
            self._cut_at = _now()
            self._open_window()

    # -- pauses -------------------------------------------------------------------------------

    def keep_quiet(self, seconds: float) -> None:
        """The server asked for a pause: it is kept by everybody."""
        seconds = max(seconds, MIN_PAUSE)
        if seconds >= LOGGED_PAUSE and _now() > self._quiet_until:
            logger.warning("%s asks to wait %.0f s (rate limit)", self.name, seconds)
        self._quiet_until = max(self._quiet_until, _now() + seconds)


class Slot:
    """The context of one request. Every request needs one, and a generator as context would take twice as long."""

    __slots__ = ("_begun", "_limit")

    def __init__(self, limit: ServerLimit) -> None:
        self._limit = limit

    async def __aenter__(self) -> None:
        self._begun = await self._limit._begin()

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._limit._end(self._begun, error)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _grant(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


def _is_worthwhile(before: tuple[int, float], now: tuple[int, float]) -> bool:
    """Whether more slots brought more answers per second, and not only longer waits for each."""
    return now[1] / before[1] - 1 >= MIN_GAIN * (now[0] / before[0] - 1)


SERVERS: dict[str, ServerLimit] = {}  # for as long as the process lives: the next exam goes on where this one ends


def limit_of(server: str, concurrency: int | None) -> ServerLimit:
    """The one limit of this server. Who says a concurrency gets it from the start, as long as the server takes it."""
    most = concurrency or MAX_SLOTS
    limit = SERVERS.setdefault(server, ServerLimit(server, concurrency or START_SLOTS, most))
    if limit.most != most:  # the last word counts
        limit.most = most
        limit.slots = min(most, limit.slots) if limit.pushbacks or concurrency is None else most
    return limit
