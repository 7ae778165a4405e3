"""Workers: a worker runs one job at a time in its supervisor, and returns the result."""

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
# Imported here, too, so that Python caches its bytecode: inside, sources are read-only.
_INSIDE = "proctor.sandbox.inside.supervisor"
_START = f"import sys; sys.path.insert(0, {SOURCES!r}); "
# Above all UIDs in use, in a range so large that two harnesses do not draw the same: the
# kernel counts processes per user.
_FIRST_USER = 1_900_000_000
_USERS = 240_000_000
_EXIT_TIMEOUT = 5.0


class WorkerError(Exception):
    """The sandbox failed, not the program."""


def decode(message: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(message, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise WorkerError(f"the sandbox sent invalid JSON: {error}") from None


class SandboxWorker(ABC):
    """Base class of local and container workers."""

    def __init__(self, process: subprocess.Popen[bytes], jobs: socket.socket, folders: Iterable[str]) -> None:
        self.folders = frozenset(folders)
        """Extra folders that its programs can read."""
        self._process = process
        self._jobs = jobs
        self._loop = asyncio.get_running_loop()

    async def exchange(self, job: dict[str, Any], limits: Limits, blob: bytes = b"") -> Exchange:
        try:
            body = msgspec.json.encode(job)
        except UnicodeEncodeError:  # a lone surrogate: the program fails, not the sandbox
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
            if "outcome" in message:  # the test runner's report; the supervisor's follows
                report, product = message, content
                continue
            end = msgspec.convert(message, ProcessExit)
            stdout, stderr = content[: end.stdout], content[end.stdout :]
            return Exchange(report, end, stdout.decode(errors="replace"), stderr.decode(errors="replace"), product)

    @abstractmethod
    async def close(self) -> None:
        """Closes the job channel, upon which the supervisor exits."""

    @abstractmethod
    async def kill(self) -> None:
        """Kills it with all its processes."""

    @abstractmethod
    async def _next_message(self) -> tuple[dict[str, Any], bytes]:
        """The next message, with its attachments."""

    async def _send(self, data: bytes) -> None:
        try:
            try:
                sent = self._jobs.send(data)
            except BlockingIOError:
                sent = 0
            if sent < len(data):
                await self._loop.sock_sendall(self._jobs, memoryview(data)[sent:])
        except OSError:  # the supervisor exited
            raise WorkerError(self._error_line()) from None

    def _error_line(self) -> str:
        """The last line of its stderr, which says why it failed."""
        self._process.kill()
        assert self._process.stderr is not None
        os.set_blocking(self._process.stderr.fileno(), False)  # another process may hold it open
        lines = (self._process.stderr.read() or b"").decode(errors="replace").splitlines()
        return next(
            (line for line in reversed(lines) if self._is_informative(line)),
            "the sandbox exited without an error message",
        )

    def _is_informative(self, line: str) -> bool:
        """Whether a line of stderr may explain the failure."""
        return bool(line.strip())


class LocalWorker(SandboxWorker):
    """A worker on this machine."""

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
            await worker._next_message()  # the ready message
        except BaseException:
            await worker.kill()
            raise
        return worker

    async def close(self) -> None:
        if self._process.returncode is not None:  # closed before
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
        if self._scratch:  # without namespaces the supervisor kills its processes
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
    """A scratch folder on disk for a level without namespaces; raises if it is not safe."""
    if level.namespaces:
        return None
    if level.safe and os.getuid() == 0 and not readable_by_all(layout):
        raise WorkerError("this Python lies in a folder that other users cannot enter, so programs would run as root")
    folder = Path(tempfile.mkdtemp(prefix="proctor-"))
    folder.chmod(0o1777)  # like /tmp: the program may be another user
    return folder


def launch(
    inside: str,
    level: IsolationLevel,
    layout: Layout,
    descriptors: list[int],
    scratch: Path | None,
    extra_plan: Mapping[str, Any] | None = None,
    path: str = ENVIRONMENT["PATH"],
    stderr: int = subprocess.PIPE,
) -> subprocess.Popen[bytes]:
    """Starts a Python process that isolates itself and calls `main` of the module `inside`.

    `descriptors` are in ascending order. `extra_plan` is added to the plan of the module.
    """
    environment = {**ENVIRONMENT, "PATH": path}
    if scratch is not None:
        environment |= {"HOME": str(scratch), "TMPDIR": str(scratch)}
    files = files_in_memory(layout) if level.namespace_backend is NamespaceBackend.BUBBLEWRAP else {}
    importlib.import_module(inside)
    command = command_of(inside, level, layout, descriptors, scratch, files, extra_plan or {})
    try:
        return _launch(command, [*descriptors, *files], environment, stderr)
    except OSError as error:
        raise WorkerError(str(error)) from None
    finally:
        for descriptor in files:
            os.close(descriptor)


def _launch(
    command: list[str], descriptors: list[int], environment: dict[str, str], stderr: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, pass_fds=descriptors, env=environment, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
    )  # fmt: skip


def files_in_memory(layout: Layout) -> dict[int, str]:
    """The generated files of the layout, as memfds for bubblewrap."""
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
    descriptors: list[int],
    scratch: Path | None,
    files: dict[int, str],
    extra_plan: Mapping[str, Any],
) -> list[str]:
    as_root = os.getuid() == 0
    own_users = as_root and (level.namespaces or readable_by_all(layout))
    test_runner_user = _FIRST_USER + 2 * secrets.randbelow(_USERS // 2)
    plan: dict[str, Any] = {
        "namespace_backend": level.namespace_backend,
        "descriptors": descriptors,
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
        **extra_plan,
    }
    start = f"{_START}from {inside} import main; main()"
    command = [os.path.abspath(sys.executable), "-I", "-S", "-c", start, msgspec.json.encode(plan).decode()]
    if level.namespace_backend is NamespaceBackend.BUBBLEWRAP:
        bubblewrap = shutil.which("bwrap")
        assert bubblewrap is not None
        wrapper = bubblewrap_command(
            bubblewrap,
            layout,
            as_root,
            files,
            network=plan.get("network", False),
            binds=plan.get("binds", ()),
            devices=plan.get("devices", ()),
        )
        command = [*wrapper, *command]
    return command
