"""Shared by all benchmarks: prepares peers, runs processes, reads their CPU time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEER_ENV = HERE.parent / ".venv-bench"
# Bytecode is cached as on a user's machine, even with PYTHONDONTWRITEBYTECODE.
_BYTECODE = tempfile.TemporaryDirectory(prefix="bench-bytecode-")


@dataclass(frozen=True)
class Cost:
    """The cost of one process."""

    wall: float
    cpu: float
    """Of the process and of all below it that were waited for."""
    machine_cpu: float
    """Of everything that ran meanwhile: also of processes that ended unwaited for, but of strangers as well."""
    peak_mib: float
    printed: str


def run_measured(command: Sequence[str]) -> Cost:
    """Runs a command; a failure ends the benchmark."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        busy, started = machine_cpu(), time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=errors, cwd=HERE, env=_environment())
        _, status, usage = os.wait4(process.pid, 0)
        wall, busy = time.perf_counter() - started, machine_cpu() - busy
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            sys.exit(f"bench: {' '.join(command)} failed:\n{errors.read().decode()[-2000:]}")
        return Cost(wall, usage.ru_utime + usage.ru_stime, busy, usage.ru_maxrss / 1024, out.read().decode())


def _environment() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return environment | {"PYTHONPYCACHEPREFIX": _BYTECODE.name}


def machine_cpu() -> float:
    """CPU seconds since the machine was started."""
    user, nice, system, _idle, _waiting, interrupts, soft_interrupts, *_ = (
        int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    )
    return (user + nice + system + interrupts + soft_interrupts) / os.sysconf("SC_CLK_TCK")


def prepare_peers() -> None:
    marker = PEER_ENV / "ready"
    requirements = HERE / "peers" / "requirements.txt"
    if marker.exists() and marker.read_text() == requirements.read_text():
        return
    print_status("installing the peers in .venv-bench")
    subprocess.run([sys.executable, "-m", "venv", str(PEER_ENV)], check=True)
    pip = [str(PEER_ENV / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "-r", str(requirements)], check=True, stderr=subprocess.DEVNULL)
    marker.write_text(requirements.read_text())


def short(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.1f}" if figure >= 10 else f"{figure:.2g}"


def print_status(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)
