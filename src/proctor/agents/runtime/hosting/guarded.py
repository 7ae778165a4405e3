"""Programs under a guardian: they end with all that they started when they are told to, or when we are dead."""

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

MARK = "PROCTOR_GUARDIAN"  # in the environment of all that one guardian guards, with a value of its own
ANSWERING = 10.0  # seconds for a guardian to do what it is told, on a busy machine; a stopped one is not waited for
ANSWER_INTERVAL = 0.05  # seconds between two looks at whether a guardian that does not answer was stopped
DYING = 30.0  # seconds after which one that was killed is not waited for any more
POLL_INTERVAL = 0.005
PF_EXITING = 0x4  # the kernel's flag of a thread that is ending


class Guarded:
    """A running program. Its `control` is the line to the guardian; closed, it is the end."""

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
        """It works in the folder, if there is one, and in ours else.

        With a limit of memory, in bytes, it is ended together with all that it has started when they exceed it. Of our
        environment it `inherits` all or nothing.
        """
        self._mark = secrets.token_hex(16)
        self._killed: set[int] = set()  # by us, and not yet known to be gone
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
        """By a signal: what it guards may have sent one, so that nobody ends it."""
        return _state(self.process.pid) in ("T", "t")

    @property
    def is_running(self) -> bool:
        """Whether the program itself runs, whatever the guardian has noticed of its end."""
        oldest = guardian.children(self.process.pid)[:1]  # orphans that the guardian has adopted come later
        return any(_is_running(pid) for pid in oldest)

    def end(self, grace: float = 0.0) -> bool:
        """With a grace, the program is asked first: seconds in which it may put its things in order. Whether it did."""
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
        """For a guardian that is late: it will do the same."""
        if self.is_alive:
            guardian.signal_all(signal.SIGSTOP, self.process.pid)

    def kill(self) -> None:
        """For a guardian that does not answer: what it guards may have stopped it."""
        if self.is_alive:
            below = guardian.descendants(self.process.pid)  # known now, and to nobody once it is dead
            self.process.kill()
            self._kill(below)

    def reap(self) -> None:
        """Waits for the guardian, which is dead or about to be. If it was killed, does what it could not do any more.

        What it guarded is known by its mark, wherever it is now: a list made earlier would miss the youngest. To adopt
        it ourselves would change what becomes of every orphan below this process, which is not ours alone; and an agent
        that kills its parent again and again would kill us next.
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
    """Or dead, and to be taken leave of by whoever has adopted it."""
    return _state(pid) in ("", "Z")


def _is_running(pid: int) -> bool:
    """Whether a thread of the process runs that is not about to end."""
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            state, flags = _stat(f"{pid}/task/{thread}", 0, 6)
            if state not in ("", "Z", "X") and not int(flags) & PF_EXITING:
                return True
    return False


def _state(pid: int) -> str:
    """The letter by which the kernel names the state of a process; none if there is no such process."""
    return _stat(str(pid), 0)[0]


def _stat(name: str, *fields: int) -> list[str]:
    """Fields of a process or a thread, counted from its state; empty if there is none."""
    try:
        with open(f"/proc/{name}/stat", errors="replace") as file:  # a process may have any bytes for a name
            values = file.read().rpartition(")")[2].split()
    except OSError:
        return [""] * len(fields)
    return [values[field] for field in fields]
