"""The event log of an episode in a window: one line of JSON per event, written at once."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec


class EventLog:
    """Starts a new file at `path`, over that of an interrupted attempt; without a path it writes nothing."""

    def __init__(self, path: Path | None = None) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        self._file = None if path is None else path.open("ab", buffering=0)  # several processes append whole lines

    def note(self, event: str, **facts: Any) -> None:
        """Writes monotonic nanoseconds, the event and its facts. Ignores a full disk: an agent may have filled it."""
        with suppress(OSError):
            self._write(event, facts)

    def _write(self, event: str, facts: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(msgspec.json.encode({"ns": time.monotonic_ns(), "event": event, **facts}) + b"\n")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def has_begun(path: Path) -> bool:
    """Whether the agent was started in the episode of this log."""
    try:
        return any(b'"event":"started"' in line for line in path.read_bytes().splitlines())
    except OSError:
        return False
