"""The writer: a thread that stores the records of a run in batches."""

from __future__ import annotations

import threading
from types import TracebackType

from proctor.core.errors import StoreWriteError
from proctor.core.types import Record, Run
from proctor.store.store import Store

COMMIT_INTERVAL = 0.25  # seconds from `put` to the commit, at most, while the disk keeps up
BATCH = 500  # records that are written before the interval has passed
MAX_BACKLOG = 10_000  # waiting records; then `put` blocks


class Writer:
    """A context manager that stores the remaining records on exit. A thread, so that records are
    also stored while the event loop is blocked."""

    def __init__(self, store: Store, run: Run) -> None:
        self._store = store
        self._run = run
        self._waiting: dict[tuple[int, int], tuple[Record, bytes]] = {}
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._closing = False
        self._failure = ""
        self._thread = threading.Thread(target=self._work, name="store-writer", daemon=True)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        if kind is None:
            self._raise_failure()

    def put(self, record: Record, digest: bytes) -> None:
        """Store this record soon; a later one of the same sample and epoch replaces it."""
        with self._lock:  # faster than the condition; this runs twice per sample
            self._raise_failure()
            self._waiting[record.sample.index, record.epoch] = (record, digest)
            waiting = len(self._waiting)
            if waiting == BATCH:
                self._changed.notify_all()
            while len(self._waiting) >= MAX_BACKLOG and not self._failure:
                self._changed.wait()

    def _raise_failure(self) -> None:
        if self._failure:
            raise StoreWriteError(
                f"{self._failure} Stored records are kept. After fixing the cause: proctor resume {self._run.id}"
            )

    def _work(self) -> None:
        try:
            while True:
                with self._changed:
                    if not self._closing and len(self._waiting) < BATCH:
                        self._changed.wait(COMMIT_INTERVAL)
                    batch, self._waiting = self._waiting, {}
                    closing = self._closing
                    self._changed.notify_all()
                if batch:
                    self._store.write(self._run, batch.values())
                elif closing:
                    return
        except Exception as error:  # reported by `put`, which would otherwise wait forever
            with self._changed:
                known = isinstance(error, StoreWriteError)
                self._failure = str(error) if known else f"{type(error).__name__}: {error}."
                self._changed.notify_all()
