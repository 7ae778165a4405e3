"""Workers for isolated functions: each call runs in its own process.

The API blocks and works from any thread: a call may itself call back into the harness.
"""

from __future__ import annotations

import os
import select
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import Struct

from proctor.sandbox.inside.frames import LARGEST_MESSAGE, MOST_DESCRIPTORS, attached
from proctor.sandbox.inside.service import CALL, FINISH, PAUSE, RESUME
from proctor.sandbox.isolation import IsolationLevel
from proctor.sandbox.judgement import ProcessExit
from proctor.sandbox.layout import ENVIRONMENT, plan_layout, readable_parts
from proctor.sandbox.program import Limits
from proctor.sandbox.worker import WorkerError, decode, launch, make_scratch

_INSIDE = "proctor.sandbox.inside.service"
_LOAD_TIMEOUT = 300.0
_CLOSE_TIMEOUT = 5.0
_EXIT_TIMEOUT = 1.0  # seconds for the process of a call to exit after its answer
_LONGEST_STDERR = 1 << 16


class ServiceFailedError(Exception):
    """The function cannot be loaded in isolation."""


class CallExit(Struct, frozen=True):
    """How the process of a call exited."""

    end: ProcessExit
    stdout: str
    stderr: str


class ServiceWorker:
    """A supervisor that has loaded the function and serves one call at a time."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        calls: socket.socket,
        verdicts: socket.socket,
        stderr: int,
        scratch: Path | None,
    ) -> None:
        self._process = process
        self._calls = calls
        self._verdicts = verdicts
        self._stderr = stderr
        self._scratch = scratch
        self._closing = threading.Lock()

    @classmethod
    def start(cls, level: IsolationLevel, service: str, payload: bytes, visible: Iterable[str]) -> ServiceWorker:
        """Loads `service` (module:function) with a payload; it may read `visible` paths."""
        if level.namespaces and os.getuid() == 0:  # it runs as another user
            visible = [part for path in visible for part in readable_parts(path)]
        layout = plan_layout(visible, with_answers=True)
        extra_plan = {"service": service, "path": _search_path(), "prefixes": (sys.prefix, sys.exec_prefix)}
        path = f"{os.path.dirname(os.path.abspath(sys.executable))}:{ENVIRONMENT['PATH']}"
        scratch = make_scratch(level, layout)
        stderr = os.memfd_create("stderr")
        theirs_calls, calls = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        theirs_verdicts, verdicts = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        harness, memory = os.pidfd_open(os.getpid()), _in_memory(payload)
        descriptors = [theirs_calls.fileno(), theirs_verdicts.fileno(), harness, memory]
        try:
            process = launch(_INSIDE, level, layout, descriptors, scratch, extra_plan, path, stderr)
        except BaseException:
            _release(calls, verdicts, stderr, scratch)
            raise
        finally:
            theirs_calls.close()
            theirs_verdicts.close()
            os.close(harness)
            os.close(memory)
        worker = cls(process, calls, verdicts, stderr, scratch)
        try:
            worker._await_load()
        except BaseException:
            worker.close()
            raise
        return worker

    def _await_load(self) -> None:
        if not self.has_ended(_LOAD_TIMEOUT):
            raise ServiceFailedError(f"it did not load within {_LOAD_TIMEOUT:g} seconds")
        message, _ = self._receive()
        if "failed" in message:
            raise ServiceFailedError(message["failed"])

    def call(self, limits: Limits) -> ServiceCall:
        """Starts a call. The previous one must have ended."""
        ours, theirs = socket.socketpair()
        header = CALL.pack(
            limits.seconds, limits.ceiling, limits.memory_mib << 20, limits.output_kib << 10, limits.disk_mib << 20,
            limits.processes,
        )  # fmt: skip
        try:
            socket.send_fds(self._calls, [header], [theirs.fileno()])
        except OSError:
            ours.close()
            raise WorkerError(self._error_line()) from None
        finally:
            theirs.close()
        return ServiceCall(self, ours)

    def send(self, command: bytes) -> None:
        try:
            self._calls.send(command)
        except OSError:
            raise WorkerError(self._error_line()) from None

    def has_ended(self, seconds: float) -> bool:
        """Whether the call ends within `seconds`."""
        poll = select.poll()
        poll.register(self._verdicts, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def ended(self) -> CallExit:
        """How the call exited; waits for it."""
        message, content = self._receive()
        end = msgspec.convert(message, ProcessExit)
        stdout, stderr = content[: end.stdout], content[end.stdout :]
        return CallExit(end, stdout.decode(errors="replace"), stderr.decode(errors="replace"))

    def close(self) -> None:
        """Ends it with all its processes. Idempotent, from any thread."""
        with self._closing:
            if self._process.returncode is not None:
                return
            for connection in (self._calls, self._verdicts):
                _shutdown(connection)
            try:
                self._process.wait(_CLOSE_TIMEOUT)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            _release(self._calls, self._verdicts, self._stderr, self._scratch)

    def _receive(self) -> tuple[dict[str, object], bytes]:
        descriptors: list[int] = []
        try:
            message, descriptors, _, _ = socket.recv_fds(self._verdicts, LARGEST_MESSAGE, MOST_DESCRIPTORS)
            if not message:
                raise WorkerError(self._error_line())
            decoded = decode(message)
            return decoded, attached(decoded, descriptors)
        except OSError:
            raise WorkerError("the worker was closed") from None
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _error_line(self) -> str:
        """The last line of its stderr, which says why it failed."""
        try:
            lines = os.pread(self._stderr, _LONGEST_STDERR, 0).decode(errors="replace").splitlines()
        except OSError:  # closed meanwhile
            lines = []
        return next((line for line in reversed(lines) if line.strip()), "the sandbox exited without an error message")


class ServiceCall:
    """A running call. `channel` leads to its process, which is not trusted."""

    def __init__(self, worker: ServiceWorker, channel: socket.socket) -> None:
        self.channel = channel
        self._worker = worker
        self._ended: CallExit | None = None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Pauses the clock while the call waits for the harness."""
        self._worker.send(PAUSE)
        try:
            yield
        finally:
            self._worker.send(RESUME)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Runs the clock while the harness waits for the call, within `waiting`."""
        self._worker.send(RESUME)
        try:
            yield
        finally:
            self._worker.send(PAUSE)

    def end(self) -> CallExit:
        """Waits for a call that has answered to exit, or kills it after a timeout."""
        if self._ended is None and not self._worker.has_ended(_EXIT_TIMEOUT):
            self._worker.send(FINISH)
        return self.ended()

    def finish(self) -> CallExit:
        """Kills the call."""
        if self._ended is None:
            self._worker.send(FINISH)
        return self.ended()

    def ended(self) -> CallExit:
        """How the call exited; waits for it."""
        if self._ended is None:
            self._ended = self._worker.ended()
        return self._ended

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.channel.close()
        if self._ended is None and kind is not None and not issubclass(kind, WorkerError):
            self.finish()


def _search_path() -> list[str]:
    """The harness's sys.path; folders that are not visible are ignored."""
    return [*(os.path.abspath(path) for path in sys.path), str(Path(__file__).resolve().parents[2])]


def _in_memory(content: bytes) -> int:
    descriptor = os.memfd_create("payload")
    with open(os.dup(descriptor), "wb") as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _shutdown(connection: socket.socket) -> None:
    """Shuts the socket down, which also wakes threads that wait for it."""
    with suppress(OSError):  # the other side closed it
        connection.shutdown(socket.SHUT_RDWR)


def _release(calls: socket.socket, verdicts: socket.socket, stderr: int, scratch: Path | None) -> None:
    calls.close()
    verdicts.close()
    os.close(stderr)
    if scratch is not None:
        shutil.rmtree(scratch, ignore_errors=True)
