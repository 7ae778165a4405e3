"""Supervises one process and its descendants. Run as a program, with the standard library alone.

It is a subreaper: descendants, in whatever session, become its children when their parent is gone. So it can end all
of them when the control socket is closed, on request or by the death of its own parent.
"""

from __future__ import annotations

import ctypes
import math
import os
import select
import signal
import sys
import time
from contextlib import suppress

# Messages on the control socket: three orders, the answer to the first, that the memory limit was exceeded; last comes
# the exit code of the process.
FREEZE, THAW, TERMINATE, FROZEN, OVER_MEMORY = b"s", b"c", b"t", b"f", b"m"
PR_SET_CHILD_SUBREAPER = 36
KEPT = 512 * 1024  # bytes of output, from the beginning and again from the end
GROWTH = 4 * 2**30  # bytes in a second: processes below the limit are measured again before they can exceed it by much
SHORTEST_INTERVAL, LONGEST_INTERVAL = 0.05, 1.0  # seconds between two measurements
FIRST_TO_KILL = b"500"  # oom_score_adj: the kernel kills the supervised process before its guardian


class Transcript:
    """Stores the beginning and the end of a process's output."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._room = KEPT
        self._tail = b""
        self._left_out = 0

    def add(self, data: bytes) -> None:
        if self._room:
            _write(self._file, data[: self._room])
            data, self._room = data[self._room :], max(0, self._room - len(data))
        self._tail += data
        if len(self._tail) > 2 * KEPT:
            self._left_out += len(self._tail) - KEPT
            self._tail = self._tail[-KEPT:]

    def close(self) -> None:
        if self._left_out:
            _write(self._file, b"\n[%d bytes left out]\n" % self._left_out)
        _write(self._file, self._tail)
        os.close(self._file)


def _write(file: int, data: bytes) -> None:
    with suppress(OSError):  # a full disk must not stop the guardian
        os.write(file, data)


def children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{thread}/children") as file:
                found += map(int, file.read().split())
    return found


def descendants(pid: int) -> list[int]:
    direct = children(pid)
    return direct + [below for child in direct for below in descendants(child)]


def signal_all(number: int, guardian: int) -> None:
    """Signals all descendants, repeatedly until there are no new ones."""
    reached: set[int] = set()
    while new := set(descendants(guardian)) - reached:
        for pid in new:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        reached |= new


def memory_of(guardian: int) -> int:
    """Resident bytes of all descendants, without file-backed pages."""
    pids = descendants(guardian)
    return _sum_of(pids, [_bytes_in(f"/proc/{pid}/status", RESIDENT) for pid in pids])


def own_memory_of(guardian: int) -> int:
    """The same with shared pages counted once, which takes longer."""
    pids, found = descendants(guardian), []
    for pid in pids:
        own = _bytes_in(f"/proc/{pid}/smaps_rollup", PROPORTIONAL)
        found.append(own if any(own) else _bytes_in(f"/proc/{pid}/status", RESIDENT))
    return _sum_of(pids, found)


RESIDENT, PROPORTIONAL = (b"RssAnon:", b"RssShmem:"), (b"Pss_Anon:", b"Pss_Shmem:")


def _sum_of(pids: list[int], found: list[list[int]]) -> int:
    """Adds private memory, and shared memory or open memory files."""
    return sum(own for own, _ in found) + max(sum(shared for _, shared in found), _bytes_of_memory_files(pids))


def _bytes_of_memory_files(pids: list[int]) -> int:
    """Bytes of memfd files, which no other figure counts while they are not mapped."""
    found = {}
    for pid in pids:
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{name}"
                with suppress(OSError):
                    if os.readlink(path).startswith("/memfd:"):
                        about = os.stat(path)
                        found[about.st_dev, about.st_ino] = about.st_blocks * 512
    return sum(found.values())


def _bytes_in(path: str, names: tuple[bytes, ...]) -> list[int]:
    found = dict.fromkeys(names, 0)
    with suppress(OSError, ValueError), open(path, "rb") as file:
        for line in file:
            if line.startswith(names):
                name, number, *_ = line.split()
                found[name] = int(number) * 1024
    return list(found.values())


class MemoryLimit:
    """Measures memory, more often near the limit."""

    def __init__(self, limit: int) -> None:
        self._limit, self.interval = limit, LONGEST_INTERVAL
        self._next = time.monotonic() if limit else math.inf

    def wait_ms(self) -> int | None:
        """Milliseconds until the next measurement; None without a limit."""
        return None if self._next == math.inf else max(0, math.ceil(1000 * (self._next - time.monotonic())))

    def is_exceeded(self) -> bool:
        if time.monotonic() < self._next:
            return False
        used = memory_of(os.getpid())
        if used > self._limit and (used := own_memory_of(os.getpid())) > self._limit:
            return True
        interval = max(0, self._limit - used) / GROWTH
        self._next = time.monotonic() + min(max(interval, SHORTEST_INTERVAL), LONGEST_INTERVAL)
        return False


def end_all() -> None:
    """Kills all descendants: children of the dead become children of this process."""
    while found := children(os.getpid()):
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(-1, 0)
    with suppress(ChildProcessError):  # where the kernel does not list children
        while True:
            os.waitpid(-1, 0)


def start(command: list[str], output: int, control: int) -> int:
    os.set_inheritable(control, False)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
    ]
    defaults = [signal.SIGINT, signal.SIGPIPE]
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=actions, setsid=True, setsigdef=defaults)
    with suppress(OSError):
        descriptor = os.open(f"/proc/{pid}/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        _write(descriptor, FIRST_TO_KILL)
        os.close(descriptor)
    return pid


def main() -> None:
    control, log, handed, limit, *command = sys.argv[1:]
    guard(int(control), log, list(map(int, filter(None, handed.split(",")))), MemoryLimit(int(limit)), command)


def guard(control: int, log: str, handed: list[int], limit: MemoryLimit, command: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ended_by_signal)
    output, written = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(output, False)
    transcript = Transcript(log)
    try:
        main_child = start(command, written, control)
        for file in (*handed, written):
            os.close(file)  # the process has them now
        poll = select.poll()
        for source in (control, woken, output):
            poll.register(source, select.POLLIN)
        living = True
        while living:
            for source, _ in poll.poll(limit.wait_ms()):
                if source == control:
                    order = os.read(control, 1)
                    if not order:
                        living = False
                    elif order == FREEZE:
                        signal_all(signal.SIGSTOP, os.getpid())
                        os.write(control, FROZEN)
                    elif order == THAW:
                        signal_all(signal.SIGCONT, os.getpid())
                    elif order == TERMINATE:
                        os.kill(main_child, signal.SIGTERM)
                elif source == woken:
                    os.read(woken, 4096)
                    living = living and not reaped(main_child, control)
                elif source == output:
                    if data := os.read(output, 65536):
                        transcript.add(data)
                    else:
                        poll.unregister(output)
            if living and limit.is_exceeded():
                with suppress(OSError):
                    os.write(control, OVER_MEMORY)
                living = False
    finally:
        end_all()
        with suppress(BlockingIOError):
            while data := os.read(output, 65536):
                transcript.add(data)
        transcript.close()


def ended_by_signal(number: int, frame: object) -> None:
    """Exits through the `finally` that ends all descendants."""
    sys.exit(128 + number)


def reaped(main_child: int, control: int) -> bool:
    """Reaps zombies; reports the exit code of the main process and returns True if it is among them."""
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return False
            if pid == main_child:
                with suppress(OSError):
                    os.write(control, b"%d" % os.waitstatus_to_exitcode(status))
                return True
    return False


if __name__ == "__main__":
    main()
