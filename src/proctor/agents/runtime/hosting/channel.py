"""The messages between a process and its host process: calls, replies, and a pulse in shared memory."""

from __future__ import annotations

import mmap
import os
import time
from typing import Any

import msgspec
from msgspec import Struct

LENGTH = 4  # bytes before each message that say how long it is
LONGEST = 64 * 1024 * 1024  # many times a frame


class MethodCall(Struct, array_like=True, frozen=True):
    id: int
    name: str
    args: tuple[Any, ...] = ()


class Fault(Struct, frozen=True):
    """An exception of the hosted object, as text."""

    type: str
    message: str
    where: str = ""
    environment_gone: bool = False  # it says that the environment is gone
    ends_the_process: bool = False  # SystemExit, KeyboardInterrupt and the like

    @property
    def text(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


class Reply(Struct, array_like=True, frozen=True):
    id: int
    value: Any = None
    fault: Fault | None = None


def pack(message: MethodCall | Reply) -> bytes:
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(LENGTH, "big") + body


unpack_call = msgspec.msgpack.Decoder(MethodCall).decode
unpack_reply = msgspec.msgpack.Decoder(Reply).decode

IDLE, IN_AGENT, IN_ENV = 0, 1, 2


class Pulse:
    """Shared memory in which a hosted object counts its calls: readable also when it hangs or is dead."""

    SIZE = 32

    def __init__(self, file: int) -> None:
        self._memory = mmap.mmap(file, self.SIZE)
        self._cells = memoryview(self._memory).cast("Q")  # calls that returned, start of the current one, who runs it

    @classmethod
    def create(cls) -> tuple[Pulse, int]:
        """Returns a new pulse, and the file with which another process opens it."""
        file = os.memfd_create("proctor-pulse")
        os.ftruncate(file, cls.SIZE)
        return cls(file), file

    def begin(self, whose: int) -> None:
        self._cells[1] = time.monotonic_ns()
        self._cells[2] = whose

    def end(self) -> None:
        self._cells[2] = IDLE
        self._cells[0] += 1

    def clear(self) -> None:
        self._cells[0] = self._cells[2] = IDLE

    @property
    def calls(self) -> int:
        return self._cells[0]

    @property
    def whose(self) -> int:
        """Who is running: IDLE, IN_AGENT or IN_ENV."""
        return self._cells[2]

    @property
    def busy_seconds(self) -> float:
        """How long the current call has lasted."""
        return 0.0 if self.whose == IDLE else (time.monotonic_ns() - self._cells[1]) / 1e9

    def close(self) -> None:
        """Unmaps the memory; the last values can still be read."""
        shown, self._cells = self._cells, memoryview(bytearray(self._cells.tobytes())).cast("Q")
        shown.release()
        self._memory.close()
