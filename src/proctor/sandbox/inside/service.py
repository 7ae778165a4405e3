"""Serves calls behind the walls: a function that is loaded once and runs in a process of its own for every call.

    supervisor ── zygote ─┬─ init    idle; whatever a call leaves behind ends with it
                          └─ call    one call; ended when it reaches a limit

The supervisor loads the function, before anything untrusted is there. A call talks to the harness over a socket that
no other call has; the supervisor sees how long it runs and how it ends, and nothing of what is said.
"""

from __future__ import annotations

import builtins
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

from proctor.sandbox.inside import process_tree, scratch, traces, zygote
from proctor.sandbox.inside.supervisor import (
    HARNESS,
    JOBS,
    HarnessExitedError,
    OutputFiles,
    Supervisor,
    enter_isolation,
)

CALL = struct.Struct("<dd4Q")  # seconds, wall seconds, memory, output, disk, processes
# What the harness says of a call that is under way: its clock stands still while it waits for the harness.
PAUSE, RESUME, FINISH = b"p", b"r", b"f"
_PAYLOAD = HARNESS + 1
_OPEN_FILES = 1024
_POLL_INTERVAL = 0.1
_SHORTEST_INTERVAL = 0.005

Service = Callable[[int], None]
"""Answers one call over a socket, in the process that was made for it."""


class ServiceSupervisor(Supervisor):
    def __init__(self, plan: dict[str, Any], service: Service) -> None:
        self._service = service
        self._calls = socket.socket(fileno=JOBS)
        super().__init__(plan)

    def serve(self) -> None:
        poll = select.poll()
        poll.register(JOBS, select.POLLIN)
        poll.register(HARNESS, select.POLLIN)
        self._verdicts.send(b'{"ready": true}')
        while HARNESS not in dict(poll.poll()):
            message, descriptors, _, _ = socket.recv_fds(self._calls, CALL.size, 1)
            if not message:
                return
            if len(message) < CALL.size:  # about a call that has ended meanwhile
                continue
            try:
                self._answer(message, descriptors[0])
            except HarnessExitedError:
                return

    def close(self) -> None:
        os.kill(self._zygote, signal.SIGKILL)
        os.waitpid(self._zygote, 0)
        if not self._plan["pid_namespace"]:
            process_tree.end_descendants(set())

    def _answer(self, message: bytes, channel: int) -> None:
        """One call, from fork to clean-up."""
        seconds, wall_seconds, memory, output, disk, processes = CALL.unpack(message)
        started = time.monotonic()
        outputs = self._output_files()
        end = self._start_process(self._limits(seconds, memory, disk, processes), outputs, channel, channel)
        os.close(channel)
        try:
            stopped = self._watch_call(end, _PausableClock(started), seconds, wall_seconds, memory, outputs, output)
            alive = not select.select([end], [], [], 0)[0]
            if alive:
                signal.pidfd_send_signal(end, signal.SIGKILL)
            status, cpu, resident = self._ended()
            cpu += self._kill_leftovers()
            code = None if alive else os.waitstatus_to_exitcode(status)
            self._send_end(stopped, code, cpu, resident, time.monotonic() - started, outputs, output)
            scratch.empty(self._scratch, self._mount_points)
        finally:
            for descriptor in (end, *outputs):
                os.close(descriptor)

    def _watch_call(
        self,
        end: int,
        clock: _PausableClock,
        seconds: float,
        wall_seconds: float,
        memory: int,
        outputs: OutputFiles,
        output: int,
    ) -> str:
        """Waits for its end. Returns '' when it came, else why the call must end now."""
        poll = select.poll()
        for descriptor in (end, JOBS, HARNESS):
            poll.register(descriptor, select.POLLIN)
        meter = process_tree.Meter(os.getpid(), self._zygote)
        wait = min(_POLL_INTERVAL, seconds)
        while True:
            ready = dict(poll.poll(wait * 1000))
            if HARNESS in ready:
                raise HarnessExitedError
            if end in ready:
                return ""
            if JOBS in ready and self._heed(clock):
                return "finished"
            wall = clock.read()
            used = meter.read()
            own = used.own_seconds(wall)
            if own >= seconds:
                return "timeout"
            if wall >= wall_seconds:
                return "wall"
            if any(os.fstat(file).st_size > output for file in outputs):
                return "output"
            if used.resident_bytes > memory and used.memory_bytes() > memory:
                return "memory"
            wait = max(_SHORTEST_INTERVAL, min(_POLL_INTERVAL, seconds - own, wall_seconds - wall))

    def _heed(self, clock: _PausableClock) -> bool:
        """What the harness says of the call; whether it shall end."""
        said = self._calls.recv(CALL.size)
        if not said:
            raise HarnessExitedError
        if said == PAUSE:
            clock.pause()
        elif said == RESUME:
            clock.resume()
        return said == FINISH

    def _start_test_runner(self) -> None:
        self._test_runner = os.getpid()  # nobody stands between a call and the harness

    def _make_zygote(self, line: socket.socket) -> zygote.Zygote:
        return _Zygote(self._plan, line, self._service)


class _Zygote(zygote.Zygote):
    def __init__(self, plan: dict[str, Any], line: socket.socket, service: Service) -> None:
        super().__init__(plan, line)
        self._service = service

    def _serve(self, read_fd: int, write_fd: int) -> None:
        os.close(write_fd)
        self._service(read_fd)
        os._exit(0)


class _PausableClock:
    """The wall clock of a call, without the time in which it waits for the harness."""

    def __init__(self, started: float) -> None:
        self._started = started
        self._paused: float | None = None

    def read(self) -> float:
        return (self._paused or time.monotonic()) - self._started

    def pause(self) -> None:
        self._paused = time.monotonic()

    def resume(self) -> None:
        if self._paused is not None:
            self._started += time.monotonic() - self._paused
            self._paused = None


def main() -> None:
    plan = enter_isolation(_OPEN_FILES)
    sys.path[:] = plan["path"]
    sys.prefix, sys.exec_prefix = plan["prefixes"]  # which a Python without `site` takes from where it was installed
    sys.argv = [""]
    vars(builtins).update(exit=sys.exit, quit=sys.exit)  # as in every Python that has read `site`
    with open(_PAYLOAD, "rb") as file:
        payload = file.read()
    module, _, name = plan["service"].partition(":")
    try:
        service: Service = getattr(importlib.import_module(module), name)(payload)
    except BaseException as error:
        with socket.socket(fileno=os.dup(HARNESS - 1)) as verdicts:
            verdicts.send(json.dumps({"failed": traces.summary(error)}).encode())
        return
    del payload
    gc.collect()
    gc.disable()
    gc.freeze()
    supervisor = ServiceSupervisor(plan, service)
    gc.enable()
    try:
        supervisor.serve()
    finally:
        supervisor.close()
