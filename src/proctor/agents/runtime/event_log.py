"""What happened in an evaluation and when: a line of JSON for each event, written at once."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec


class EventLog:
    """Without a path it writes nothing. What an attempt that was cut short had written is gone: it is made again."""

    def __init__(self, path: Path | None = None) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        self._file = None if path is None else path.open("ab", buffering=0)  # others write to it, too: whole lines

    def note(self, event: str, **facts: Any) -> None:
        """Nanoseconds of a clock that is never set, the event, and what there is to say about it.

        A disk that is full must not keep the referee from its work: an agent may have filled it.
        """
        with suppress(OSError):
            self._write(event, facts)

    def _write(self, event: str, facts: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(msgspec.json.encode({"ns": time.monotonic_ns(), "event": event, **facts}) + b"\n")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def has_begun(path: Path) -> bool:
    """Whether this is the log of an evaluation in which the agent was told to begin."""
    try:
        return any(b'"event":"started"' in line for line in path.read_bytes().splitlines())
    except OSError:
        return False
