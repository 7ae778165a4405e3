"""A lock between all processes that act on one environment."""

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

VARIABLE = "PROCTOR_ENV_LOCK"  # names the lock file; default: one per display
POLL_INTERVAL = 0.002


class EnvLock:
    """Held while acting: `with env_lock:`. Reentrant within a process."""

    timeout: float | None = None  # seconds, after which the evaluator acts without the lock of a hanging agent

    def __init__(self) -> None:
        self._threads = threading.RLock()
        self._entries = threading.local()  # per thread: for each entry, whether it acquired the lock
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
    except OSError:  # an isolated agent has read permission, which suffices for flock
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def lock_path(environment: Mapping[str, str] = os.environ) -> Path:
    """The lock file of the environment that a process acts on: by default that of its display."""
    if given := environment.get(VARIABLE):
        return Path(given)
    display = hashlib.sha256(environment.get("DISPLAY", "").encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"proctor-env-{os.getuid()}-{display}.lock"


env_lock = EnvLock()
