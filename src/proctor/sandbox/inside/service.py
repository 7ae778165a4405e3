"""Serves calls in isolation: loads a function once, forks a process for each call.

    supervisor ── zygote ─┬─ init    idle; processes that a call leaves behind end with it
                          └─ call    one call; killed at a limit

The supervisor loads the function before the first call. A call talks to the harness over
its own socket; the supervisor only applies the limits and reports the exit.
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
# Commands of the harness about the running call. Its clock pauses while it waits for the
# harness.
PAUSE, RESUME, FINISH = b"p", b"r", b"f"
_PAYLOAD = HARNESS + 1
_OPEN_FILES = 1024
_POLL_INTERVAL = 0.1
_SHORTEST_INTERVAL = 0.005

Service = Callable[[int], None]
"""Answers one call over a socket, in its own process."""


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
            if len(message) < CALL.size:  # a command about a call that has ended
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
        """Runs one call, from fork to clean-up."""
        seconds, wall_seconds, memory, output, disk, processes = CALL.unpack(message)
        started = time.monotonic()
        outputs = self._output_files()
        pidfd = self._start_process(self._limits(seconds, memory, disk, processes), outputs, channel, channel)
        os.close(channel)
        try:
            stopped = self._watch_call(pidfd, _PausableClock(started), seconds, wall_seconds, memory, outputs, output)
            alive = not select.select([pidfd], [], [], 0)[0]
            if alive:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            status, cpu, resident = self._receive_exit()
            cpu += self._kill_leftovers()
            code = None if alive else os.waitstatus_to_exitcode(status)
            self._send_exit(stopped, code, cpu, resident, time.monotonic() - started, outputs, output)
            scratch.empty(self._scratch, self._mount_points)
        finally:
            for descriptor in (pidfd, *outputs):
                os.close(descriptor)

    def _watch_call(
        self,
        pidfd: int,
        clock: _PausableClock,
        seconds: float,
        wall_seconds: float,
        memory: int,
        outputs: OutputFiles,
        output: int,
    ) -> str:
        """Waits for its exit. Returns '' when it came, else the limit that was hit."""
        poll = select.poll()
        for descriptor in (pidfd, JOBS, HARNESS):
            poll.register(descriptor, select.POLLIN)
        meter = process_tree.Meter(os.getpid(), self._zygote)
        wait = min(_POLL_INTERVAL, seconds)
        while True:
            ready = dict(poll.poll(wait * 1000))
            if HARNESS in ready:
                raise HarnessExitedError
            if pidfd in ready:
                return ""
            if JOBS in ready and self._is_finished(clock):
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

    def _is_finished(self, clock: _PausableClock) -> bool:
        """Applies a command of the harness; returns whether the call shall end."""
        message = self._calls.recv(CALL.size)
        if not message:
            raise HarnessExitedError
        if message == PAUSE:
            clock.pause()
        elif message == RESUME:
            clock.resume()
        return message == FINISH

    def _start_test_runner(self) -> None:
        self._test_runner = os.getpid()  # there is none: its usage counts from here

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
    """The wall clock of a call, without the time that it waits for the harness."""

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
    sys.prefix, sys.exec_prefix = plan["prefixes"]  # `-S` ignores virtual environments
    sys.argv = [""]
    vars(builtins).update(exit=sys.exit, quit=sys.exit)  # as `site` does
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
