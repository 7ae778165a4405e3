"""Runs a program under a guardian, which ends it with all its descendants on request or when this process dies."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from proctor.agents.runtime.hosting import guardian

MARK = "PROCTOR_GUARDIAN"  # in the environment of all processes of one guardian, with a unique value
ANSWERING = 10.0  # seconds for an order to a guardian, on a busy machine; not waited for if it is stopped
ANSWER_INTERVAL = 0.05  # seconds between two checks whether a silent guardian is stopped
DYING = 30.0  # seconds to wait for killed processes
POLL_INTERVAL = 0.005
PF_EXITING = 0x4  # the kernel's flag of a thread that is ending


class Guarded:
    """A running program. `control` is the socket to its guardian; closing it ends the program."""

    def __init__(
        self,
        command: list[str],
        handed: tuple[int, ...],
        log: Path,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
        memory: int = 0,
        *,
        inherits: bool = True,
    ) -> None:
        """Runs in `folder`, by default in the current one.

        Above the limit of `memory`, in bytes, the program is ended with all its descendants. With `inherits` it gets
        this process's environment.
        """
        self._mark = secrets.token_hex(16)
        self._killed: set[int] = set()  # by us, and perhaps still there
        self.control, theirs = socket.socketpair()
        try:
            with theirs:
                told = [str(theirs.fileno()), str(log.absolute()), ",".join(map(str, handed)), str(memory)]
                self.process = subprocess.Popen(
                    [sys.executable, "-I", "-S", guardian.__file__, *told, *command],
                    pass_fds=(theirs.fileno(), *handed),
                    env={**(os.environ if inherits else {}), **(environment or {}), MARK: self._mark},
                    stdin=subprocess.DEVNULL,
                    cwd=folder,
                )
        except BaseException:
            self.control.close()
            raise

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    @property
    def is_stopped(self) -> bool:
        """Whether the guardian is stopped: the program may have sent it SIGSTOP to avoid its end."""
        return _state(self.process.pid) in ("T", "t")

    @property
    def is_running(self) -> bool:
        """Whether the program itself runs, even if the guardian has not noticed its end."""
        oldest = guardian.children(self.process.pid)[:1]  # adopted orphans come later
        return any(_is_running(pid) for pid in oldest)

    def end(self, grace: float = 0.0) -> bool:
        """Ends the program; `grace` is the time between SIGTERM and SIGKILL. Returns whether it ended by itself."""
        in_order = False
        if grace and self.is_alive:
            with suppress(OSError, subprocess.TimeoutExpired):
                self.control.send(guardian.TERMINATE)
                self.process.wait(grace)
                in_order = True
        self.control.close()
        deadline = time.monotonic() + ANSWERING
        while self.is_alive and not self.is_stopped and time.monotonic() < deadline:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(ANSWER_INTERVAL)
        self.kill()
        self.reap()
        return in_order

    def freeze(self) -> None:
        """Stops the program if the guardian is late with it."""
        if self.is_alive:
            guardian.signal_all(signal.SIGSTOP, self.process.pid)

    def kill(self) -> None:
        """Kills a guardian that does not answer, and its descendants."""
        if self.is_alive:
            below = guardian.descendants(self.process.pid)  # unknown once it is dead
            self.process.kill()
            self._kill(below)

    def reap(self) -> None:
        """Waits for the dying guardian. If it was killed, ends its descendants in its place.

        They are found by their mark: a list made earlier would miss the youngest. This process is not a subreaper:
        that would change the parent of every orphan below it, and an agent that kills its parent would kill us next.
        """
        if self.process.wait() >= 0:
            return
        deadline = time.monotonic() + DYING
        while time.monotonic() < deadline:
            pids = self._marked_pids()
            self._kill([*pids, *(below for pid in pids for below in guardian.descendants(pid))])
            self._killed = {pid for pid in self._killed if not _is_gone(pid)}
            if not pids and not self._killed:
                return
            time.sleep(POLL_INTERVAL)

    def _kill(self, pids: list[int]) -> None:
        for pid in pids:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
                self._killed.add(pid)

    def _marked_pids(self) -> list[int]:
        sought = f"{MARK}={self._mark}".encode()
        pids = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with suppress(OSError), open(f"/proc/{entry}/environ", "rb") as file:
                    if sought in file.read().split(b"\0"):
                        pids.append(int(entry))
        return pids


def _is_gone(pid: int) -> bool:
    """Whether the process is gone or a zombie."""
    return _state(pid) in ("", "Z")


def _is_running(pid: int) -> bool:
    """Whether the process has a thread that is not exiting."""
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            state, flags = _stat(f"{pid}/task/{thread}", 0, 6)
            if state not in ("", "Z", "X") and not int(flags) & PF_EXITING:
                return True
    return False


def _state(pid: int) -> str:
    """The state letter of a process; empty if it does not exist."""
    return _stat(str(pid), 0)[0]


def _stat(name: str, *fields: int) -> list[str]:
    """Fields of /proc/…/stat, counted from the state; empty if the process does not exist."""
    try:
        with open(f"/proc/{name}/stat", errors="replace") as file:  # a process may have any bytes for a name
            values = file.read().rpartition(")")[2].split()
    except OSError:
        return [""] * len(fields)
    return [values[field] for field in fields]
