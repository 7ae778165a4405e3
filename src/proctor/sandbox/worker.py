"""One warden, seen from the harness: takes a job, gives back how it ended."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from proctor.sandbox.inside.frames import JOB, LARGEST_MESSAGE, MOST_DESCRIPTORS, attached
from proctor.sandbox.isolation import IsolationLevel, NamespaceBackend
from proctor.sandbox.judgement import Exchange, ProcessExit
from proctor.sandbox.layout import (
    ENVIRONMENT,
    SCRATCH,
    SCRATCH_BYTES,
    Layout,
    bubblewrap_command,
    plan_layout,
    readable_by_all,
    visible_paths,
)
from proctor.sandbox.program import Limits

SOURCES = str(Path(__file__).resolve().parents[2])
# Imported here too, so that Python writes its compiled form down: inside, where the sources are read-only, it cannot,
# and every worker would compile them anew.
_INSIDE = "proctor.sandbox.inside.supervisor"
_START = f"import sys; sys.path.insert(0, {SOURCES!r}); "
# Far above any that a system hands out, and so many that two harnesses do not draw the same: the kernel counts
# processes by user.
_FIRST_USER = 1_900_000_000
_USERS = 240_000_000
_EXIT_TIMEOUT = 5.0


class WorkerError(Exception):
    """The sandbox failed; the program is not to blame."""


def decode(message: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(message, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise WorkerError(f"the sandbox sent what cannot be read: {error}") from None


class SandboxWorker(ABC):
    """What all workers do alike, wherever their warden lives."""

    def __init__(self, process: subprocess.Popen[bytes], jobs: socket.socket, folders: Iterable[str]) -> None:
        self.folders = frozenset(folders)
        """What its programs can see because it was asked for."""
        self._process = process
        self._jobs = jobs
        self._loop = asyncio.get_running_loop()

    async def exchange(self, job: dict[str, Any], limits: Limits, blob: bytes = b"") -> Exchange:
        try:
            body = msgspec.json.encode(job)
        except UnicodeEncodeError:  # half a surrogate pair; the program shall fail by it, not we
            body = json.dumps(job).encode()
        header = JOB.pack(
            limits.seconds, limits.ceiling, limits.memory_mib << 20, limits.output_kib << 10, limits.disk_mib << 20,
            limits.processes, 4 + len(body) + len(blob),
        )  # fmt: skip
        await self._send(b"".join([header, len(body).to_bytes(4, "little"), body, blob]))
        report = None
        product = b""
        while True:
            message, content = await self._next_message()
            if "outcome" in message:  # the examiner's word comes first, the warden's last
                report, product = message, content
                continue
            end = msgspec.convert(message, ProcessExit)
            stdout, stderr = content[: end.stdout], content[end.stdout :]
            return Exchange(report, end, stdout.decode(errors="replace"), stderr.decode(errors="replace"), product)

    @abstractmethod
    async def close(self) -> None:
        """Ends it in an orderly way: the warden leaves when nobody can send it anything any more."""

    @abstractmethod
    async def kill(self) -> None:
        """Ends it, whatever it is doing, and all that it has started."""

    @abstractmethod
    async def _next_message(self) -> tuple[dict[str, Any], bytes]:
        """With what is attached to it."""

    async def _send(self, data: bytes) -> None:
        try:
            try:
                sent = self._jobs.send(data)
            except BlockingIOError:
                sent = 0
            if sent < len(data):
                await self._loop.sock_sendall(self._jobs, memoryview(data)[sent:])
        except OSError:  # nobody listens any more
            raise WorkerError(self._error_line()) from None

    def _error_line(self) -> str:
        """Why it failed, as it said itself."""
        self._process.kill()
        assert self._process.stderr is not None
        os.set_blocking(self._process.stderr.fileno(), False)  # somebody may still hold it open
        said = (self._process.stderr.read() or b"").decode(errors="replace").splitlines()
        return next((line for line in reversed(said) if self._is_informative(line)), "the sandbox ended without a word")

    def _is_informative(self, line: str) -> bool:
        """Whether a line of its last words is worth repeating."""
        return bool(line.strip())


class LocalWorker(SandboxWorker):
    """On this machine."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        jobs: socket.socket,
        verdicts: socket.socket,
        folders: Iterable[str],
        scratch: Path | None,
    ) -> None:
        super().__init__(process, jobs, folders)
        self._verdicts = verdicts
        self._scratch = scratch
        self._messages: asyncio.Queue[tuple[bytes, list[int]]] = asyncio.Queue()
        self._loop.add_reader(verdicts, self._read)

    @classmethod
    async def start(cls, level: IsolationLevel, folders: Iterable[str]) -> LocalWorker:
        layout = plan_layout(folders)
        scratch = make_scratch(level, layout)
        theirs_jobs, ours_jobs = socket.socketpair()
        theirs_verdicts, ours_verdicts = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        harness = os.pidfd_open(os.getpid())
        try:
            process = launch(_INSIDE, level, layout, [theirs_jobs.fileno(), theirs_verdicts.fileno(), harness], scratch)
        finally:
            os.close(harness)
            theirs_jobs.close()
            theirs_verdicts.close()
        ours_jobs.setblocking(False)
        ours_verdicts.setblocking(False)
        worker = cls(process, ours_jobs, ours_verdicts, folders, scratch)
        try:
            await worker._next_message()  # it is ready
        except BaseException:
            await worker.kill()
            raise
        return worker

    async def close(self) -> None:
        if self._process.returncode is not None:  # done already: it was being closed when something went wrong
            return
        self._disconnect()
        ended = asyncio.Event()
        end = os.pidfd_open(self._process.pid)
        self._loop.add_reader(end, ended.set)
        try:
            async with asyncio.timeout(_EXIT_TIMEOUT):
                await ended.wait()
        except TimeoutError:
            pass
        finally:
            self._loop.remove_reader(end)
            os.close(end)
            self._process.kill()
            self._reap()

    async def kill(self) -> None:
        if self._scratch:  # without namespaces, in which the kernel would do it, the warden has to end its processes
            await self.close()
            return
        self._disconnect()
        self._process.kill()
        self._reap()

    def _disconnect(self) -> None:
        if self._jobs.fileno() < 0:
            return
        self._loop.remove_reader(self._verdicts)
        self._jobs.close()
        self._verdicts.close()

    def _reap(self) -> None:
        self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _read(self) -> None:
        try:
            message, descriptors, _, _ = socket.recv_fds(self._verdicts, LARGEST_MESSAGE, MOST_DESCRIPTORS)
        except BlockingIOError:
            return
        except OSError:
            message, descriptors = b"", []
        if not message:
            self._loop.remove_reader(self._verdicts)
        self._messages.put_nowait((message, descriptors))

    async def _next_message(self) -> tuple[dict[str, Any], bytes]:
        data, descriptors = await self._messages.get()
        if not data:
            raise WorkerError(self._error_line())
        try:
            message = decode(data)
            return message, attached(message, descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)


def make_scratch(level: IsolationLevel, layout: Layout) -> Path | None:
    """A working folder on the machine's own disk, where no namespace has one; checks that the level can be had."""
    if level.namespaces:
        return None
    if level.safe and os.getuid() == 0 and not readable_by_all(layout):
        raise WorkerError("this Python lies in a folder that other users cannot enter, so programs would run as root")
    folder = Path(tempfile.mkdtemp(prefix="proctor-"))
    folder.chmod(0o1777)  # like the system's own: the program may be another user
    return folder


def launch(
    inside: str,
    level: IsolationLevel,
    layout: Layout,
    handed: list[int],
    scratch: Path | None,
    more: Mapping[str, Any] | None = None,
    path: str = ENVIRONMENT["PATH"],
    stderr: int = subprocess.PIPE,
) -> subprocess.Popen[bytes]:
    """Starts a Python that goes behind the walls of this level and calls `main` of a module of ours there.

    `handed`: descriptors, in ascending order. `more`: what that module wants to find in its plan.
    """
    environment = {**ENVIRONMENT, "PATH": path}
    if scratch is not None:
        environment |= {"HOME": str(scratch), "TMPDIR": str(scratch)}
    files = files_in_memory(layout) if level.namespace_backend is NamespaceBackend.BUBBLEWRAP else {}
    importlib.import_module(inside)
    command = command_of(inside, level, layout, handed, scratch, files, more or {})
    try:
        return _launch(command, [*handed, *files], environment, stderr)
    except OSError as error:
        raise WorkerError(str(error)) from None
    finally:
        for descriptor in files:
            os.close(descriptor)


def _launch(command: list[str], handed: list[int], environment: dict[str, str], stderr: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, pass_fds=handed, env=environment, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
    )  # fmt: skip


def files_in_memory(layout: Layout) -> dict[int, str]:
    """The small files of the room, where bubblewrap can take them from."""
    files = {}
    for name, content in layout.files.items():
        descriptor = os.memfd_create("file")
        os.write(descriptor, content.encode())
        os.lseek(descriptor, 0, os.SEEK_SET)
        files[descriptor] = name
    return files


def command_of(
    inside: str,
    level: IsolationLevel,
    layout: Layout,
    handed: list[int],
    scratch: Path | None,
    files: dict[int, str],
    more: Mapping[str, Any],
) -> list[str]:
    as_root = os.getuid() == 0
    own_users = as_root and (level.namespaces or readable_by_all(layout))
    test_runner_user = _FIRST_USER + 2 * secrets.randbelow(_USERS // 2)
    plan: dict[str, Any] = {
        "namespace_backend": level.namespace_backend,
        "descriptors": handed,
        "scratch": str(scratch or SCRATCH),
        "scratch_bytes": SCRATCH_BYTES,
        "folders": layout.folders,
        "links": layout.links,
        "files": layout.files,
        "packages": layout.packages,
        "mount_points": layout.mount_points,
        "hidden": layout.hidden,
        "pid_namespace": level.namespaces,
        "user_namespace": level.namespaces and not as_root,
        "test_runner_user": test_runner_user if own_users else None,
        "program_user": test_runner_user + 1 if own_users else None,
        "seccomp": level.seccomp,
        "landlock": bool(level.landlock),
        "without_mounts": bool(level.landlock) and not level.namespaces,
        "readable": ["/"] if level.namespaces else [*visible_paths(layout), "/proc"],
        "listable": [] if level.namespaces else layout.folders,
        **more,
    }
    start = f"{_START}from {inside} import main; main()"
    command = [os.path.abspath(sys.executable), "-I", "-S", "-c", start, msgspec.json.encode(plan).decode()]
    if level.namespace_backend is NamespaceBackend.BUBBLEWRAP:
        bubblewrap = shutil.which("bwrap")
        assert bubblewrap is not None
        room = bubblewrap_command(
            bubblewrap,
            layout,
            as_root,
            files,
            network=plan.get("network", False),
            binds=plan.get("binds", ()),
            devices=plan.get("devices", ()),
        )
        command = [*room, *command]
    return command
