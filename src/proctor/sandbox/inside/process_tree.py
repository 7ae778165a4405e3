"""The process tree of a program: its CPU time, memory and waiting, read from /proc."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_INTERVALS = 1000  # last intervals between reads that waiting can be assigned to

Process = tuple[int, list[str]]  # PID, and the fields of /proc/PID/stat from the state on


class Meter:
    """Measures one program and its test runner; made when the program starts."""

    def __init__(self, test_runner: int, zygote: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._test_runner = test_runner
        self._zygote = zygote
        self._clock = clock
        self._cpu_clock = ~test_runner << 3 | 2  # clock ID of the CPU time of a process
        self._cpu_before = time.clock_gettime(self._cpu_clock)
        self._cpu_of: dict[int, float] = {}
        self._cpu_total = 0.0
        self._waited_of: dict[int, float] = {}
        self._waited_seconds = 0.0
        self._read_at = clock()
        self._not_waited: deque[tuple[float, float]] = deque(maxlen=_INTERVALS)  # end and length of each

    def read(self) -> ProcessUsage:
        waited_of = _waiting_seconds(self._test_runner, 1)
        all_processes = _all_processes()
        usage = ProcessUsage(
            cpu_seconds=time.clock_gettime(self._cpu_clock) - self._cpu_before,
            processes=[
                e for e in _descendants_of(os.getpid(), all_processes, {self._test_runner}) if e[0] != self._zygote
            ],
        )
        # The account of a process disappears when it exits, so its last value counts.
        self._cpu_total += sum(max(0.0, cpu - self._cpu_of.get(process, 0.0)) for process, cpu in usage.cpu_of.items())
        self._cpu_of = usage.cpu_of
        usage.cpu_seconds = max(usage.cpu_seconds, self._cpu_total)
        if not self._not_waited:  # the test runner has waited for earlier programs
            self._waited_of = dict(waited_of)
        # Tests that run in a fork wait for a CPU, too.
        for process, fields in _descendants_of(self._test_runner, all_processes, set()):
            waited_of |= _waiting_seconds(process, int(fields[17]))
        usage.waited_seconds = self._count_waiting(waited_of | usage.waited_of)
        return usage

    def _count_waiting(self, waited_of: dict[int, float]) -> float:
        """The seconds that the program has waited so far; concurrent waits count once.

        Otherwise threads that compete with each other would gain a multiple of the elapsed
        time. The kernel accounts for a wait when it ends, possibly many reads after it
        began. So new waiting happened since the last read, or before it for no longer than
        the longest wait of a single thread.
        """
        new_of = {thread: seconds - self._waited_of.get(thread, 0.0) for thread, seconds in waited_of.items()}
        new_of = {thread: seconds for thread, seconds in new_of.items() if seconds > 0}
        # Keeps the accounts of exited threads: the total must not shrink.
        self._waited_of |= {thread: waited_of[thread] for thread in new_of}
        new, longest = sum(new_of.values()), max(new_of.values(), default=0.0)
        now = self._clock()
        if not self._not_waited:  # the program may have waited before the first read
            self._read_at = min(self._read_at, now - longest)
        self._not_waited.append((now, now - self._read_at))
        for number, (end, seconds) in enumerate(self._not_waited):
            counted = min(new, seconds, end - (self._read_at - longest))
            if counted > 0:
                self._not_waited[number] = (end, seconds - counted)
                self._waited_seconds += counted
                new -= counted
        self._read_at = now
        return self._waited_seconds


class ProcessUsage:
    """The usage of all processes of the program plus that of the test runner."""

    def __init__(self, cpu_seconds: float, processes: list[Process]) -> None:
        self.cpu_seconds = cpu_seconds
        self.waited_seconds = 0.0
        """Waiting for a CPU, which depends on the load of the machine."""
        self.resident_bytes = 0
        """With page tables, which can be large without resident pages."""
        self._tables = 0
        self.cpu_of: dict[int, float] = {}
        """CPU seconds of each process, without its children."""
        self.waited_of: dict[int, float] = {}
        """Waiting seconds of each live thread."""
        for process, fields in processes:
            self.cpu_of[process] = sum(map(int, fields[11:13])) / _TICKS
            self.cpu_seconds += sum(map(int, fields[11:15])) / _TICKS
            tables = _page_tables(process)
            self._tables += tables
            self.resident_bytes += int(fields[21]) * _PAGE + tables
            self.waited_of |= _waiting_seconds(process, int(fields[17]))

    def own_seconds(self, wall_seconds: float) -> float:
        """The program's own time: wall time without waiting, at least its CPU time."""
        return max(self.cpu_seconds, wall_seconds - self.waited_seconds)

    def memory_bytes(self) -> int:
        """The memory of all processes, shared pages counted once; slower than `resident_bytes`."""
        total = self._tables
        for process in self.cpu_of:
            try:
                with open(f"/proc/{process}/smaps_rollup") as lines:
                    total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
            except OSError:  # it exited
                continue
        return total


def descendants(without: set[int]) -> list[Process]:
    """All descendants of this process, except the trees of `without`."""
    return _descendants_of(os.getpid(), _all_processes(), without)


def _all_processes() -> dict[int, list[str]]:
    fields_of = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", errors="replace") as file:  # a process may have any name
                    fields_of[int(name)] = file.read().rpartition(")")[2].split()
            except OSError:
                continue
    return fields_of


def _descendants_of(top: int, fields_of: dict[int, list[str]], without: set[int]) -> list[Process]:
    below = {top}
    descendants = []
    grown = True
    while grown:
        grown = False
        for process, fields in fields_of.items():
            if process not in below and process not in without and int(fields[1]) in below:
                below.add(process)
                descendants.append((process, fields))
                grown = True
    return descendants


def end_descendants(without: set[int]) -> None:
    """Kills all descendants, orphans included, where no PID namespace does it."""
    while left := descendants(without):
        for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped processes cannot fork
            for process, _ in left:
                try:
                    os.kill(process, number)
                except ProcessLookupError:
                    continue
        for process, _ in left:
            try:
                os.waitpid(process, 0)
            except ChildProcessError:  # reparented to us in the next round
                continue


def count_threads(user: int) -> int:
    """The number of threads of a user that /proc shows."""
    count = 0
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user:
                count += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue
    return count


def _page_tables(process: int) -> int:
    try:
        with open(f"/proc/{process}/status", errors="replace") as lines:
            return sum(int(line.split()[1]) for line in lines if line.startswith("VmPTE:")) * 1024
    except OSError:  # it exited
        return 0


def _waiting_seconds(process: int, threads: int) -> dict[int, float]:
    """The seconds that each thread of a process has waited for a CPU."""
    paths = {process: f"/proc/{process}/schedstat"}
    if threads > 1:
        try:
            paths = {
                int(name): f"/proc/{process}/task/{name}/schedstat" for name in os.listdir(f"/proc/{process}/task")
            }
        except OSError:
            return {}
    waited = {}
    for thread, path in paths.items():
        try:
            with open(path) as file:
                waited[thread] = int(file.read().split()[1]) / 1e9
        except (OSError, IndexError):  # exited, or no schedstat: then wall time counts
            continue
    return waited
