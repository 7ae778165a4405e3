"""One lock for all who act on one environment, in whatever process they are."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

VARIABLE = "PROCTOR_ENV_LOCK"  # a file, where whoever started the process wants it to be another than the display's
POLL_INTERVAL = 0.002


class EnvLock:
    """Held while acting: `with env_lock:`. One process may take it again while it has it."""

    timeout: float | None = None  # seconds; a referee goes on without, when whoever has it hangs or is frozen

    def __init__(self) -> None:
        self._threads = threading.RLock()
        self._entries = threading.local()  # of each thread: for each entry, whether it has the lock or went on without
        self._depth = 0
        self._file: int | None = None

    def __enter__(self) -> Self:
        limit = -1 if self.timeout is None else self.timeout
        acquired = self._threads.acquire(timeout=limit)
        if acquired:
            self._depth += 1
            if self._depth == 1:
                self._file = _open_lock(lock_path())
                self._wait_for_others(self._file)
        self._acquired().append(acquired)
        return self

    def __exit__(self, *exception: object) -> None:
        if not self._acquired().pop():
            return
        self._depth -= 1
        if self._depth == 0 and self._file is not None:
            os.close(self._file)  # which unlocks it
            self._file = None
        self._threads.release()

    def _acquired(self) -> list[bool]:
        if not hasattr(self._entries, "acquired"):
            self._entries.acquired = []
        entries: list[bool] = self._entries.acquired
        return entries

    def _wait_for_others(self, file: int) -> None:
        if self.timeout is None:
            fcntl.flock(file, fcntl.LOCK_EX)
            return
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return
            time.sleep(POLL_INTERVAL)


def _open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # an isolated agent may read it, which is enough to lock it
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def lock_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Of the environment that a process acts on: that of its display, unless it was told another."""
    if given := environment.get(VARIABLE):
        return Path(given)
    display = hashlib.sha256(environment.get("DISPLAY", "").encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"proctor-env-{os.getuid()}-{display}.lock"


env_lock = EnvLock()
