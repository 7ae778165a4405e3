"""The pool of scoring workers of a task: started on demand, one call at a time each."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from proctor.core.errors import SandboxUnavailableError, UsageError
from proctor.sandbox.detection import LevelProbe, refusal
from proctor.sandbox.isolation import IsolationLevel, levels
from proctor.sandbox.service import ServiceFailedError, ServiceWorker
from proctor.sandbox.worker import WorkerError

_SERVICE = "proctor.code.scoring.worker:load"
_START_DELAY = 0.5  # seconds before a waiting call starts another worker


class WorkerPayload(Struct, frozen=True):
    """The start arguments of a worker."""

    name: str
    payload: bytes
    visible: list[str]


class ScoringPool:
    def __init__(self, max_workers: int, make_payload: Callable[[], WorkerPayload], *, unsafe: bool) -> None:
        self._max_workers = max_workers
        self._make_payload = make_payload
        self._unsafe = unsafe
        self._payload: WorkerPayload | None = None
        self._level: IsolationLevel | None = None
        self._changed = threading.Condition()
        self._idle: list[ServiceWorker] = []
        self._all: set[ServiceWorker] = set()
        self._starting = False
        self._closed = False

    def prepare(self) -> WorkerPayload:
        """Pickles the task once; all workers start with the same state."""
        if self._payload is None:
            self._payload = self._make_payload()
        return self._payload

    @contextmanager
    def worker(self) -> Iterator[ServiceWorker]:
        worker = self._take()
        try:
            yield worker
        except WorkerError:
            self._discard(worker)
            raise
        except BaseException:
            self._give_back(worker)
            raise
        else:
            self._give_back(worker)

    def close(self) -> None:
        """Kills all workers."""
        with self._changed:
            self._closed = True
            workers = list(self._all)
            self._changed.notify_all()
        for worker in workers:
            worker.close()

    def _take(self) -> ServiceWorker:
        started = time.monotonic()
        with self._changed:
            while True:
                if self._closed:
                    raise WorkerError("the run has ended")
                if self._idle:
                    return self._idle.pop()
                waiting = bool(self._all) and time.monotonic() - started < _START_DELAY
                if not (self._starting or waiting or len(self._all) >= self._max_workers):
                    self._starting = True
                    break
                self._changed.wait(_START_DELAY)
        worker = None
        try:
            worker = self._start()
        finally:
            with self._changed:
                self._starting = False
                if worker is not None:
                    self._all.add(worker)
                closed = self._closed
                self._changed.notify_all()
        if closed:
            self._discard(worker)
            raise WorkerError("the run has ended")
        return worker

    def _give_back(self, worker: ServiceWorker) -> None:
        with self._changed:
            self._idle.append(worker)
            self._changed.notify()

    def _discard(self, worker: ServiceWorker) -> None:
        worker.close()
        with self._changed:
            self._all.discard(worker)
            self._changed.notify()

    def _start(self) -> ServiceWorker:
        """Starts a worker at the strongest level that works; the first start finds it."""
        load = self.prepare()
        if self._level is not None:
            return self._start_on(self._level, load)
        probes = []
        for level in levels():
            if not (level.safe or self._unsafe):
                probes.append(LevelProbe(level, True))
                continue
            try:
                worker = self._start_on(level, load)
            except (WorkerError, OSError) as error:
                probes.append(LevelProbe(level, False, str(error)))
            else:
                self._level = level
                return worker
        raise SandboxUnavailableError(refusal(probes))

    def _start_on(self, level: IsolationLevel, load: WorkerPayload) -> ServiceWorker:
        try:
            return ServiceWorker.start(level, _SERVICE, load.payload, load.visible)
        except ServiceFailedError as error:
            raise UsageError(f"{load.name} cannot be loaded by its scoring worker: {error}") from None
