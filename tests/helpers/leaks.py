"""Finds processes, threads and descriptors that a test leaves open."""

from __future__ import annotations

import gc
import os
import threading
import time
from multiprocessing import resource_tracker
from pathlib import Path

# Only a failing test waits this long: killed processes may end slowly on a busy machine.
DEADLINE = 30.0
PROC = Path("/proc")

# Threads that a library starts once per process, at first use.
SHARED_THREADS = ("tqdm_monitor",)  # watches all progress bars
SHARED_PROCESSES = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")

# Ids of processes of session fixtures, which may restart them during a test.
of_the_session: set[str] = set()


class Snapshot:
    """The open descriptors and threads of this process, and all processes."""

    def __init__(self) -> None:
        self.descriptors = _descriptors()
        self.threads = set(threading.enumerate())
        self.processes = _processes()

    def new_since(self, test: str) -> list[str]:
        """Describes what was opened since the snapshot, after a wait for what is ending."""
        deadline = time.monotonic() + DEADLINE
        if _descriptors().keys() - self.descriptors.keys():
            gc.collect()  # unreferenced objects warn now, in the test that opened them
        while (found := self._find(test)) and time.monotonic() < deadline:
            time.sleep(0.02)
        return found

    def _find(self, test: str) -> list[str]:
        threads = [
            thread
            for thread in threading.enumerate()
            if thread not in self.threads and thread.name not in SHARED_THREADS
        ]
        open_now = _descriptors()
        open_now.pop(
            str(getattr(resource_tracker._resource_tracker, "_fd", None)), None
        )  # its process is skipped below
        descriptors = [f"{open_now[number]}" for number in open_now if self.descriptors.get(number) != open_now[number]]
        return [
            *(f"thread {thread.name}" for thread in threads),
            *(f"descriptor of {target}" for target in descriptors if not target.startswith("anon_inode:")),
            *(line for process in _processes() - self.processes - of_the_session if (line := _describe(process, test))),
        ]


def _descriptors() -> dict[str, str]:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # the descriptor that listed them
            continue
    return found


def _processes() -> set[str]:
    return {name for name in os.listdir(PROC) if name.isdecimal()}


def _describe(process: str, test: str) -> str | None:
    """Whether this test started the process: a child, or one that inherited the name of the test."""
    try:
        status = (PROC / process / "stat").read_text(errors="replace").rpartition(")")[2].split()
        command = (PROC / process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        if any(name in command for name in SHARED_PROCESSES):
            return None
        if status[1] == str(os.getpid()):
            return f"child process {process} ({'ended, not waited for' if status[0] == 'Z' else command})"
        inherited = (PROC / process / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):  # it ended, or belongs to another user
        return None
    return f"process {process} ({command})" if b"PYTEST_CURRENT_TEST=" + test.encode() + b" " in inherited else None
