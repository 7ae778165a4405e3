"""A display of its own for each evaluation: Xvfb, which shows its pictures to nobody."""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proctor.agents.desktop.authority import VARIABLE, Authority
from proctor.agents.desktop.interface import DesktopError
from proctor.agents.runtime.hosting.guarded import Guarded
from proctor.core.errors import UsageError

STARTING = 60.0  # seconds: on a busy machine Xvfb takes its time
ENDING = 10.0  # seconds; killed, it would leave its socket and its lock in /tmp
VIRTUAL = "virtual"
GEOMETRY = (640, 480)
SMALLEST, LARGEST = 16, 8192  # of a side


class VirtualDisplay:
    """Started by `start`, ended by `close`. It dies with the process that has started it.

    Whoever opens it needs its cookie: `environment` says to a process where that lies.
    """

    def __init__(self, size: tuple[int, int] = GEOMETRY, log: Path | None = None) -> None:
        self.size, self._log = size, log
        self._xvfb: Guarded | None = None
        self._authority: Authority | None = None
        self.name = ""

    @property
    def authority(self) -> Path | None:
        """The Xauthority file, once it is started."""
        return self._authority.file if self._authority is not None else None

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to open it."""
        return {"DISPLAY": self.name, VARIABLE: str(self.authority)}

    @property
    def is_alive(self) -> bool:
        return self._xvfb is not None and self._xvfb.is_alive

    def start(self) -> None:
        program = shutil.which("Xvfb")
        if program is None:
            raise DesktopError("a virtual display needs Xvfb: apt-get install xvfb")
        authority = self._authority = Authority(self._log.parent if self._log is not None else None)
        try:
            with _starting_alone():
                self.name = f":{self._start(program, authority)}"
        except BaseException:
            self.close()
            raise

    def _start(self, program: str, authority: Authority) -> str:
        """The number of the display."""
        told, telling = os.pipe()
        width, height = self.size
        screen = ["-screen", "0", f"{width}x{height}x24"]
        # The abstract socket stays: by it Xvfb finds a number that is free, and it asks for the cookie, too.
        closed = ["-nolisten", "tcp", "-auth", str(authority.server_file)]
        options = ["-displayfd", str(telling), *closed, "-noreset", *screen]
        try:
            xvfb = self._xvfb = Guarded([program, *options], (telling,), self._log or Path(os.devnull))
        finally:
            os.close(telling)
        # To the newline: closed before that, the server ends.
        watchdog = threading.Timer(STARTING, xvfb.control.close)
        watchdog.start()
        try:
            with open(told) as file:
                number = file.readline().strip()
        finally:
            watchdog.cancel()
            watchdog.join()
        if not number:
            raise DesktopError(f"Xvfb did not start: see {self._log}" if self._log else "Xvfb did not start")
        authority.name_display(number)
        return number

    async def died(self) -> None:
        """Returns when it has died."""
        loop = asyncio.get_running_loop()
        end = asyncio.Event()
        assert self._xvfb is not None
        try:
            file = os.pidfd_open(self._xvfb.process.pid)
        except ProcessLookupError:
            return
        loop.add_reader(file, end.set)
        try:
            await end.wait()
        finally:
            loop.remove_reader(file)
            os.close(file)

    def close(self) -> None:
        if self._xvfb is not None:
            self._xvfb.end(ENDING)
            self._xvfb = None
        if self._authority is not None:
            self._authority.close()
            self._authority = None


@contextmanager
def _starting_alone() -> Iterator[None]:
    """Two servers that find the lock of a dead one at the same time can both take its number.

    The folder is the one in which they lock: every process of every user can open it.
    """
    folder = os.open("/tmp", os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def parse_size(text: str) -> tuple[int, int]:
    """From virtual, or virtual:1280x720."""
    if text == VIRTUAL:
        return GEOMETRY
    found = re.fullmatch(rf"{VIRTUAL}:(\d+)x(\d+)", text, re.ASCII)
    if found is None:
        raise UsageError(f"display: expected virtual:WIDTHxHEIGHT, got {text!r}.")
    # Numbers with more digits than the largest are not even read.
    size = tuple(int(side) if len(side) <= len(str(LARGEST)) else LARGEST + 1 for side in found.groups())
    if min(size) < SMALLEST or max(size) > LARGEST:
        raise UsageError(f"display: width and height must be {SMALLEST} to {LARGEST}, got {text!r}.")
    return size[0], size[1]
