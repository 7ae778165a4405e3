"""A memory-mapped file for appending: no system call per line, and no loss when the process is killed."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

FIRST_ROOM = 64 * 1024
AT_ONCE = 1024 * 1024  # bytes of room


class MappedFile:
    """The kernel keeps what was written even if the process is killed.

    Until it is closed the file is padded with zeros.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self._size = self._room = 0
        self._make_room(FIRST_ROOM)

    def write(self, data: bytes) -> None:
        end = self._size + len(data)
        if end > self._room:
            self._grow(end)
        self._memory[self._size : end] = data
        self._size = end

    def _grow(self, least: int) -> None:
        full = self._memory
        self._make_room(max(2 * self._room, least))
        full.close()

    def _make_room(self, room: int) -> None:
        # Written, not only made longer: a full disk must be an error here, not a signal later. Room that is only
        # allocated would do, but some file systems take many times as long to cut off what was not used of it.
        size = self._room
        while size < room:
            size += os.pwrite(self._file, bytes(min(AT_ONCE, room - size)), size)
        self._memory, self._room = mmap.mmap(self._file, room), room

    def close(self) -> None:
        if not self._memory.closed:
            self._memory.close()
            os.ftruncate(self._file, self._size)
            os.close(self._file)


def written(path: Path) -> bytes:
    """What was written to such a file, whether or not it was closed."""
    return path.read_bytes().rstrip(b"\0")
