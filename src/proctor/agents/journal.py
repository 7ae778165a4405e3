"""What happened in an evaluation and when: a line of JSON for each event, written at once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

from proctor.agents.outcome import Outcome


class Journal:
    """Without a path it writes nothing. What an attempt that was cut short had written is gone: it is made again."""

    def __init__(self, path: Path | None = None) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        self._file = None if path is None else path.open("ab", buffering=0)  # others write to it, too: whole lines

    def note(self, event: str, **facts: Any) -> None:
        """Nanoseconds of a clock that is never set, the event, and what there is to say about it."""
        if self._file is not None:
            self._file.write(msgspec.json.encode({"ns": time.monotonic_ns(), "event": event, **facts}) + b"\n")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def outcome_of(path: Path) -> Outcome | None:
    """Of an evaluation that came to its end."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return None
    for line in reversed(lines):  # agents may still have written after it
        if b'"event":"result"' in line:
            return Outcome(msgspec.json.decode(line)["outcome"])
    return None
