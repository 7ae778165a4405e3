"""What the processes of one program use, read from outside them."""

from __future__ import annotations

import os
import signal
import time
from collections import deque
from collections.abc import Callable

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_INTERVALS = 1000  # between reads, for which a thread may still turn out to have waited

Process = tuple[int, list[str]]  # its number, and the fields of its `stat` from the state on


class Meter:
    """Of one program and of the examiner while it judges that program. Made when the program starts."""

    def __init__(self, examiner: int, zygote: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._test_runner = examiner
        self._zygote = zygote
        self._clock = clock
        self._cpu_clock = ~examiner << 3 | 2  # the kernel's name for the processor time of a process
        self._cpu_before = time.clock_gettime(self._cpu_clock)
        self._cpu_of: dict[int, float] = {}
        self._cpu_seen = 0.0
        self._waited_of: dict[int, float] = {}
        self._waited_seconds = 0.0
        self._read_at = clock()
        self._not_waited: deque[tuple[float, float]] = deque(maxlen=_INTERVALS)  # the end of each, and its seconds

    def read(self) -> ProcessUsage:
        waited_of = _waiting_seconds(self._test_runner, 1)
        everybody = _all_processes()
        usage = ProcessUsage(
            cpu_seconds=time.clock_gettime(self._cpu_clock) - self._cpu_before,
            processes=[e for e in _descendants_of(os.getpid(), everybody, {self._test_runner}) if e[0] != self._zygote],
        )
        # A process that ends unnoticed takes its account with it, so what was seen of it is kept.
        self._cpu_seen += sum(max(0.0, cpu - self._cpu_of.get(process, 0.0)) for process, cpu in usage.cpu_of.items())
        self._cpu_of = usage.cpu_of
        usage.cpu_seconds = max(usage.cpu_seconds, self._cpu_seen)
        if not self._not_waited:  # the examiner has judged other programs before
            self._waited_of = dict(waited_of)
        # Tests that run in a process of their own wait for a processor as well.
        for process, fields in _descendants_of(self._test_runner, everybody, set()):
            waited_of |= _waiting_seconds(process, int(fields[17]))
        usage.waited_seconds = self._count_waiting(waited_of | usage.waited_of)
        return usage

    def _count_waiting(self, waited_of: dict[int, float]) -> float:
        """How long the program has waited so far. Threads that wait at the same time wait once.

        Else threads that compete with each other would earn their program many times the time that has passed.
        The kernel adds to a thread's account when its waiting is over, which may be many reads after it began. So what
        is new was waited for since the last read, or before that for no longer than the one thread that waited longest.
        """
        new_of = {thread: seconds - self._waited_of.get(thread, 0.0) for thread, seconds in waited_of.items()}
        new_of = {thread: seconds for thread, seconds in new_of.items() if seconds > 0}
        # A thread that ends takes its account with it, too: else a program would have waited less the moment it ends.
        self._waited_of |= {thread: waited_of[thread] for thread in new_of}
        new, longest = sum(new_of.values()), max(new_of.values(), default=0.0)
        now = self._clock()
        if not self._not_waited:  # the program may have waited before the meter was made
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
    """All processes of the program, summed up at one moment, on top of what the examiner used."""

    def __init__(self, cpu_seconds: float, processes: list[Process]) -> None:
        self.cpu_seconds = cpu_seconds
        self.waited_seconds = 0.0
        """For a processor, which is the machine's fault and not the program's."""
        self.resident_bytes = 0
        """With the tables of pages, of which a program can have many without a page of its own."""
        self._tables = 0
        self.cpu_of: dict[int, float] = {}
        """Each process by itself, without its children."""
        self.waited_of: dict[int, float] = {}
        """Each thread that is still there."""
        for process, fields in processes:
            self.cpu_of[process] = sum(map(int, fields[11:13])) / _TICKS
            self.cpu_seconds += sum(map(int, fields[11:15])) / _TICKS
            tables = _page_tables(process)
            self._tables += tables
            self.resident_bytes += int(fields[21]) * _PAGE + tables
            self.waited_of |= _waiting_seconds(process, int(fields[17]))

    def own_seconds(self, wall_seconds: float) -> float:
        """The clock that counts: the wall clock without the waiting, and never less than the processor time."""
        return max(self.cpu_seconds, wall_seconds - self.waited_seconds)

    def memory_bytes(self) -> int:
        """What the processes hold together, with pages they share counted once. Costs more than the resident size."""
        total = self._tables
        for process in self.cpu_of:
            try:
                with open(f"/proc/{process}/smaps_rollup") as lines:
                    total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024
            except OSError:  # it has ended
                continue
        return total


def descendants(without: set[int]) -> list[Process]:
    """Every process below this one, but for those named and theirs."""
    return _descendants_of(os.getpid(), _all_processes(), without)


def _all_processes() -> dict[int, list[str]]:
    fields_of = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", errors="replace") as file:  # a process may call itself anything
                    fields_of[int(name)] = file.read().rpartition(")")[2].split()
            except OSError:
                continue
    return fields_of


def _descendants_of(top: int, fields_of: dict[int, list[str]], without: set[int]) -> list[Process]:
    below = {top}
    found = []
    grown = True
    while grown:
        grown = False
        for process, fields in fields_of.items():
            if process not in below and process not in without and int(fields[1]) in below:
                below.add(process)
                found.append((process, fields))
                grown = True
    return found


def end_descendants(without: set[int]) -> None:
    """Without a PID namespace: what a program left behind has come to us as its next parent; nothing of it may stay."""
    while left := descendants(without):
        for number in (signal.SIGSTOP, signal.SIGKILL):  # first stop them all, so that they do not multiply
            for process, _ in left:
                try:
                    os.kill(process, number)
                except ProcessLookupError:
                    continue
        for process, _ in left:
            try:
                os.waitpid(process, 0)
            except ChildProcessError:  # not ours: its parent was killed too, and it comes to us in the next round
                continue


def count_threads(user: int) -> int:
    """How many a user has on the machine, as far as one can see."""
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
    except OSError:  # it has ended
        return 0


def _waiting_seconds(process: int, threads: int) -> dict[int, float]:
    """How long each of its threads has waited for a processor."""
    places = {process: f"/proc/{process}/schedstat"}
    if threads > 1:
        try:
            places = {
                int(name): f"/proc/{process}/task/{name}/schedstat" for name in os.listdir(f"/proc/{process}/task")
            }
        except OSError:
            return {}
    waited = {}
    for thread, place in places.items():
        try:
            with open(place) as file:
                waited[thread] = int(file.read().split()[1]) / 1e9
        except (OSError, IndexError):  # it has ended, or the kernel keeps no such account: then the wall clock counts
            continue
    return waited
