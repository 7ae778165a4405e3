"""The workers that score for one task: started when they are needed, each serving one call at a time."""

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
_WORTH_ANOTHER = 0.5  # seconds that a call waits before another worker is started, which takes about as long


class Load(Struct, frozen=True):
    """What a worker is started with."""

    name: str
    payload: bytes
    shown: list[str]


class ScoringPool:
    def __init__(self, most: int, make_load: Callable[[], Load], *, unsafe: bool) -> None:
        self._most = most
        self._make_load = make_load
        self._unsafe = unsafe
        self._load: Load | None = None
        self._level: IsolationLevel | None = None
        self._changed = threading.Condition()
        self._idle: list[ServiceWorker] = []
        self._all: set[ServiceWorker] = set()
        self._starting = False
        self._closed = False

    def prepare(self) -> Load:
        """Takes down what the task is now; later workers are started with the same."""
        if self._load is None:
            self._load = self._make_load()
        return self._load

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
        """Ends all of them, whatever they are doing."""
        with self._changed:
            self._closed = True
            workers = list(self._all)
            self._changed.notify_all()
        for worker in workers:
            worker.close()

    def _take(self) -> ServiceWorker:
        began = time.monotonic()
        with self._changed:
            while True:
                if self._closed:
                    raise WorkerError("the run has ended")
                if self._idle:
                    return self._idle.pop()
                patient = bool(self._all) and time.monotonic() - began < _WORTH_ANOTHER
                if not (self._starting or patient or len(self._all) >= self._most):
                    self._starting = True
                    break
                self._changed.wait(_WORTH_ANOTHER)
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
        """On the strongest level that works; the first one finds out which that is."""
        load = self.prepare()
        if self._level is not None:
            return self._start_on(self._level, load)
        findings = []
        for level in levels():
            if not (level.safe or self._unsafe):
                findings.append(LevelProbe(level, True))
                continue
            try:
                worker = self._start_on(level, load)
            except (WorkerError, OSError) as error:
                findings.append(LevelProbe(level, False, str(error)))
            else:
                self._level = level
                return worker
        raise SandboxUnavailableError(refusal(findings))

    def _start_on(self, level: IsolationLevel, load: Load) -> ServiceWorker:
        try:
            return ServiceWorker.start(level, _SERVICE, load.payload, load.shown)
        except ServiceFailedError as error:
            raise UsageError(f"{load.name} cannot be loaded by the worker that scores it: {error}") from None
