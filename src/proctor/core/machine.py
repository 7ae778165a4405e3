"""Cores, memory and processor of this machine."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from pathlib import Path


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_mib() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20


def memory_limit_mib() -> int:
    """The memory of the machine, or the limit of the container."""
    limits = [memory_mib()]
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # ValueError: the word max
            limits.append(int(Path(name).read_text()) // 2**20)
    return min(limits)


def available_mib() -> int:
    """The memory that is free for new processes; all memory if the system does not report it."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) // 1024
    except OSError:
        pass
    return memory_mib()


def resident_mib() -> int:
    """The resident memory of this process; 0 if the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


def processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()
