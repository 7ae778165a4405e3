"""PausableProgram, a program that can be paused without noticing."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path

from proctor.agents.outcome import EnvironmentCrashedError
from proctor.agents.runtime.hosting.guardian import descendants

LIBRARY = "libfaketime"
SHARED = Path("/dev/shm")
LIBC = ("/libc.so", "/libc-", "/ld-musl")  # loaded after what is preloaded
LOAD_TIMEOUT = 10.0  # seconds in which a process that was just started has loaded its libraries, on a busy machine
STOP_TIMEOUT = 30.0  # seconds in which a stopped process stands still, on a busy machine
POLL_INTERVAL = 0.0005
SPINNING = 0.01  # seconds before a moment that is to be met exactly, in which its processes are looked up


class PausableProgram:
    """Started by its constructor. With `pausable` it reads its clock's offset from a file, through libfaketime."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path | None = None,
        environment: Mapping[str, str] | None = None,
        pass_fds: Sequence[int] = (),
        pausable: bool = False,
        folder: Path | None = None,
    ) -> None:
        """`folder` gets the files of its clock, where they are found even if this process is killed."""
        self._paused_at: float | None = None
        self._lost = 0.0  # seconds of pauses
        self._checked: set[tuple[int, str]] = set()  # processes with our clock, and their executables
        directory = folder.resolve() if folder else None  # the program may change its working directory
        self._folder = tempfile.TemporaryDirectory(prefix="proctor-clock-", dir=directory) if pausable else None
        clock_variables = self._clock() if pausable else {}
        if pausable:
            command = [self._without_rights(command[0]), *command[1:]]
        self._started = time.monotonic()
        with log.open("ab") if log else nullcontext() as output:  # without a log it inherits our output
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **(environment or {}), **clock_variables},
                pass_fds=pass_fds,
            )

    def _clock(self) -> dict[str, str]:
        """The environment variables with which libfaketime reads the file at every request for the time."""
        self._write_offset()
        return {
            "LD_PRELOAD": " ".join(filter(None, [os.environ.get("LD_PRELOAD"), clock_library()])),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
        }

    def _without_rights(self, name: str) -> str:
        """Copies a set-id program, as many games are: the loader does not preload libraries for those."""
        found = shutil.which(name)
        if found is None or not os.stat(found).st_mode & (stat.S_ISUID | stat.S_ISGID):
            return name
        copy = Path(shutil.copyfile(found, self._file.with_name(Path(found).name)))
        copy.chmod(0o700)
        return str(copy)

    @property
    def _file(self) -> Path:
        assert self._folder is not None
        return Path(self._folder.name) / "behind"

    def _write_offset(self) -> None:
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"-{self._lost:.6f}s")
        fresh.replace(self._file)

    @property
    def is_paused(self) -> bool:
        return self._paused_at is not None

    @property
    def elapsed(self) -> float:
        """Seconds of the program's own time."""
        now = time.monotonic() if self._paused_at is None else self._paused_at
        return now - self._started - self._lost

    @property
    def pid(self) -> int:
        return self._process.pid

    def owns(self, pid: int) -> bool:
        """Whether this is a process of the program."""
        return pid in self._processes()

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, seconds: float) -> int:
        """Raises TimeoutExpired if it still runs."""
        return self._process.wait(seconds)

    def _check_clock(self) -> None:
        """Raises if a process does not use our clock, which then could not be stopped.

        Such are statically linked programs, and set-id programs that another one, such as a script, started.
        """
        deadline = time.monotonic() + LOAD_TIMEOUT
        while others := [pid for pid in self._processes() if not self._has_our_clock(pid)]:
            if time.monotonic() > deadline or any(map(_has_its_own_clock, others)):
                names = ", ".join(sorted(set(map(_name, others))))
                raise EnvironmentCrashedError(f"the clock of {names} cannot be stopped: use --set clock=realtime")
            time.sleep(POLL_INTERVAL)

    def _has_our_clock(self, pid: int) -> bool:
        """Whether the process uses our clock, or is gone."""
        try:
            known = pid, os.readlink(f"/proc/{pid}/exe")
            if known in self._checked:
                return True
            loaded = Path(f"/proc/{pid}/maps").read_text(errors="replace")
        except PermissionError:  # set-id, so nothing was preloaded
            return False
        except OSError:
            return True
        if LIBRARY in loaded:
            self._checked.add(known)
            return True
        return not loaded  # a zombie

    def pause(self) -> None:
        """Returns when all its processes are stopped."""
        if self._paused_at is not None or self.poll() is not None:
            return
        self._check_clock()
        self._stop(self._processes())

    def _stop(self, known: Sequence[int]) -> None:
        """Stops the known processes, then those that they have started meanwhile."""
        deadline = time.monotonic() + STOP_TIMEOUT
        found = list(known)
        while True:
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            while running := [pid for pid in found if not _is_stopped(pid)]:
                if time.monotonic() > deadline:
                    self._signal(signal.SIGCONT)
                    names = ", ".join(sorted(set(map(_name, running))))
                    raise EnvironmentCrashedError(f"{names} did not stop within {STOP_TIMEOUT:g} s")
                time.sleep(POLL_INTERVAL)
            stood = time.monotonic()  # only now: a clock that stood before its process would go back for it
            found = [pid for pid in self._processes() if not _is_stopped(pid)]
            if not found:
                self._paused_at = stood
                return

    def resume(self) -> None:
        if self._paused_at is None:
            return
        self._lost += time.monotonic() - self._paused_at
        self._paused_at = None
        if self._folder is not None:
            self._write_offset()
        self._signal(signal.SIGCONT)

    def run_until(self, seconds: float) -> float:
        """Runs it until so much of its own time has passed, then pauses it; returns the exact time."""
        if self.elapsed < seconds:
            self.resume()
            time.sleep(max(0.0, seconds - self.elapsed - SPINNING))
            self._check_clock()
            known = self._processes()
            while self.elapsed < seconds:
                pass
            if self.poll() is None:
                self._stop(known)
        self.pause()
        return self.elapsed

    def _processes(self) -> list[int]:
        return [self.pid, *descendants(self.pid)]

    def _signal(self, number: int) -> None:
        """Signals all processes, repeatedly until there are no new ones."""
        reached: set[int] = set()
        while new := set(self._processes()) - reached:
            for pid in new:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            reached |= new

    def end(self) -> None:
        """Kills the program and its children: packaged games are often started by a script."""
        if self.poll() is None:
            self._signal(signal.SIGSTOP)  # so that none of them starts another
            self._signal(signal.SIGKILL)
        self._process.wait()
        if self._folder is not None:
            self._folder.cleanup()
            for name in (f"faketime_shm_{self.pid}", f"sem.faketime_sem_{self.pid}"):  # which the killed leave behind
                SHARED.joinpath(name).unlink(missing_ok=True)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return f"process {pid}"


def _has_its_own_clock(pid: int) -> bool:
    """Whether a process has loaded libc without our library."""
    try:
        loaded = Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return False
    return LIBRARY not in loaded and any(name in loaded for name in LIBC)


def _is_stopped(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "TtZX"


@cache
def clock_library() -> str:
    """The path of libfaketime for LD_PRELOAD, as its wrapper sets it."""
    wrapper = shutil.which("faketime")
    if wrapper is None:
        raise EnvironmentCrashedError("the clock `paused` needs libfaketime: apt-get install faketime")
    asked = [wrapper, "-m", "-f", "+0s", "printenv", "LD_PRELOAD"]
    return subprocess.run(asked, check=True, capture_output=True, text=True, timeout=30).stdout.strip()
