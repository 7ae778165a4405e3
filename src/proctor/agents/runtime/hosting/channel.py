"""What passes between a process and the one that hosts an object for it: calls, replies, and a pulse."""

from __future__ import annotations

import mmap
import os
import time
from typing import Any

import msgspec
from msgspec import Struct

LENGTH = 4  # bytes before each message that say how long it is
LONGEST = 64 * 1024 * 1024  # a frame of a game fits in many times over


class MethodCall(Struct, array_like=True, frozen=True):
    id: int
    name: str
    args: tuple[Any, ...] = ()


class Fault(Struct, frozen=True):
    """What was raised over there, in words."""

    type: str
    message: str
    where: str = ""
    environment_gone: bool = False  # it was raised because there is nothing left to act on
    ends_the_process: bool = False  # SystemExit, KeyboardInterrupt and the like: no Exception

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
    """Shared memory in which a hosted object shows that it is alive: still to be read when it hangs or is dead."""

    SIZE = 32

    def __init__(self, file: int) -> None:
        self._memory = mmap.mmap(file, self.SIZE)
        self._cells = memoryview(self._memory).cast("Q")  # calls that returned, begin of the one under way, whose it is

    @classmethod
    def create(cls) -> tuple[Pulse, int]:
        """A new one, and the file by which another process opens it."""
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
        """Who is at it: IDLE, IN_AGENT or IN_ENV."""
        return self._cells[2]

    @property
    def busy_seconds(self) -> float:
        """How long the call under way has lasted."""
        return 0.0 if self.whose == IDLE else (time.monotonic_ns() - self._cells[1]) / 1e9

    def close(self) -> None:
        """What was shown last can still be read."""
        shown, self._cells = self._cells, memoryview(bytearray(self._cells.tobytes())).cast("Q")
        shown.release()
        self._memory.close()
