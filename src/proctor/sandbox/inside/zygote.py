"""The process from which every program is forked; small, so that a fork copies little.

It cannot create namespaces and may only change its user; it sees no programs or tests.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import struct
import sys
from typing import Any

from proctor.sandbox.inside import commands, kernel, landlock, seccomp
from proctor.sandbox.inside.without_mounts import sitecustomize

LIMITS = struct.Struct("<4Q")  # of one program: CPU seconds, memory, file size, processes
EXIT = struct.Struct("<idQ")  # exit status, CPU seconds, peak resident size in KiB
RLIMITS = (resource.RLIMIT_CPU, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC)
_DESCRIPTORS = struct.Struct("4i")  # stdout, stderr, pipe from the tests, pipe to the tests
_ANCILLARY = socket.CMSG_SPACE(_DESCRIPTORS.size)


class Zygote:
    def __init__(self, plan: dict[str, Any], supervisor: socket.socket) -> None:
        self._plan = plan
        self._supervisor = supervisor
        self._user = plan["program_user"]

    def serve(self) -> None:
        """Starts one program after another until the supervisor exits."""
        kernel.die_with_parent()
        init = self._create_pid_namespace()
        if self._plan["seccomp"]:
            seccomp.Filter(seccomp.program_filter()).install()
        kernel.drop_capabilities(but=kernel.CHANGE_USER if self._user is not None else 0)
        kernel.set_undumpable()
        _set_default_start_method()
        self._supervisor.send(init.to_bytes(4, "little"))
        while True:
            limits, attached, _, _ = self._supervisor.recvmsg(LIMITS.size, _ANCILLARY)
            if not limits:
                return
            descriptors = _DESCRIPTORS.unpack(attached[0][2])
            process = os.fork()
            if process == 0:
                self._become_program(LIMITS.unpack(limits), *descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            pidfd = os.pidfd_open(process)
            socket.send_fds(self._supervisor, [b"started"], [pidfd])
            os.close(pidfd)
            _, status, usage = os.wait4(process, 0)
            self._supervisor.send(EXIT.pack(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss))

    def _create_pid_namespace(self) -> int:
        """Creates the PID namespace of the programs; returns the PID of its init, or 0."""
        if not self._plan["pid_namespace"]:
            return 0
        kernel.unshare(kernel.CLONE_NEWPID | (kernel.CLONE_NEWUSER if self._plan["user_namespace"] else 0))
        init = os.fork()
        if init == 0:
            try:
                _run_init()
            finally:
                os._exit(72)
        return init

    def _become_program(self, limits: tuple[int, ...], stdout: int, stderr: int, read_fd: int, write_fd: int) -> None:
        """Drops, in the new process, all that a program must not have."""
        try:
            os.setsid()
            os.dup2(stdout, 1)
            os.dup2(stderr, 2)
            os.dup2(read_fd, 3)
            os.dup2(write_fd, 4)
            os.closerange(5, 1 << 16)
            for kind, most in zip(RLIMITS, limits, strict=True):
                resource.setrlimit(kind, (most, most))
            if self._user is not None:  # drops the last capabilities
                os.setresgid(self._user, self._user, self._user)
                os.setresuid(self._user, self._user, self._user)
            if self._plan["seccomp"] and not self._plan["pid_namespace"]:
                block_other_processes(files=self._user is None)
            if self._plan.get("without_mounts"):
                sitecustomize.install()
            gc.enable()
            self._serve(3, 4)
        finally:
            os._exit(71)

    def _serve(self, read_fd: int, write_fd: int) -> None:
        commands.serve(read_fd, write_fd)


def _set_default_start_method() -> None:
    """Makes `fork` the default of multiprocessing, as before Python 3.14.

    The fork server of 3.14 needs a fresh interpreter and a socket, which not every
    level has. A program may still choose another start method.
    """
    if sys.version_info >= (3, 14):
        import multiprocessing.context as context

        context._default_context._default_context = context._default_context.get_context("fork")  # type: ignore[attr-defined]


def block_other_processes(files: bool) -> None:
    """Protects other processes without a PID namespace; `files`: also of the same user."""
    seccomp.Filter(seccomp.other_processes_filter(os.getpid())).install()
    locked = landlock.version()
    if files:
        seccomp.Filter(seccomp.files_filter(locked >= landlock.LENGTHS_SINCE)).install()
    if locked >= landlock.SIGNALS_SINCE:
        landlock.scope_signals()
    else:
        seccomp.Filter(seccomp.own_signals_filter(os.getpid())).install()


def _run_init() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps orphans
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    kernel.die_with_parent()
    kernel.drop_capabilities()
    kernel.set_undumpable()  # programs may run as the same user
    os.closerange(0, 1 << 16)
    while True:
        signal.pause()
