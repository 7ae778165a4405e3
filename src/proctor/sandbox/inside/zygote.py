"""The small process from which every program is forked. It does nothing else, so that little of it has to be copied.

It can make no namespaces and has no rights but to become another user; it sees neither programs nor tests.
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

ORDER = struct.Struct("<4Q")  # the limits of one program: processor seconds, memory, largest file, processes
ENDED = struct.Struct("<idQ")  # exit status, processor seconds, largest resident size in KiB
# The same four, by the kernel's names.
LIMITED = (resource.RLIMIT_CPU, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC)
_DESCRIPTORS = struct.Struct("4i")  # stdout, stderr, the line from the tests, the line to the tests
_ANCILLARY = socket.CMSG_SPACE(_DESCRIPTORS.size)


class Zygote:
    def __init__(self, plan: dict[str, Any], warden: socket.socket) -> None:
        self._plan = plan
        self._warden = warden
        self._user = plan["subject_user"]

    def serve(self) -> None:
        """Opens the room, then starts programs in it one after another until the warden is gone."""
        kernel.die_with_parent()
        init = self._open_room()
        if self._plan["seccomp"]:
            seccomp.Filter(seccomp.last_filter()).install()
        kernel.drop_capabilities(but=kernel.CHANGE_USER if self._user is not None else 0)
        kernel.set_undumpable()
        _fork_by_default()
        self._warden.send(init.to_bytes(4, "little"))
        while True:
            order, attached, _, _ = self._warden.recvmsg(ORDER.size, _ANCILLARY)
            if not order:
                return
            descriptors = _DESCRIPTORS.unpack(attached[0][2])
            process = os.fork()
            if process == 0:
                self._become_subject(ORDER.unpack(order), *descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            end = os.pidfd_open(process)
            socket.send_fds(self._warden, [b"started"], [end])
            os.close(end)
            _, status, usage = os.wait4(process, 0)
            self._warden.send(ENDED.pack(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss))

    def _open_room(self) -> int:
        """A PID namespace for the programs, in which an idle init waits; 0 where there is none."""
        if not self._plan["pid_namespace"]:
            return 0
        kernel.unshare(kernel.CLONE_NEWPID | (kernel.CLONE_NEWUSER if self._plan["user_namespace"] else 0))
        init = os.fork()
        if init == 0:
            try:
                _sleep_as_init()
            finally:
                os._exit(72)
        return init

    def _become_subject(self, limits: tuple[int, ...], stdout: int, stderr: int, ear: int, mouth: int) -> None:
        """In the new process: leave behind whatever a program must not have. Short, for every program pays for it."""
        try:
            os.setsid()
            os.dup2(stdout, 1)
            os.dup2(stderr, 2)
            os.dup2(ear, 3)
            os.dup2(mouth, 4)
            os.closerange(5, 1 << 16)
            for kind, most in zip(LIMITED, limits, strict=True):
                resource.setrlimit(kind, (most, most))
            if self._user is not None:  # the last rights go with the user
                os.setresgid(self._user, self._user, self._user)
                os.setresuid(self._user, self._user, self._user)
            if self._plan["seccomp"] and not self._plan["pid_namespace"]:
                leave_neighbours_alone(files=self._user is None)
            if self._plan.get("without_mounts"):
                sitecustomize.install()
            gc.enable()
            self._serve(3, 4)
        finally:
            os._exit(71)

    def _serve(self, ear: int, mouth: int) -> None:
        commands.serve(ear, mouth)


def _fork_by_default() -> None:
    """For programs that use multiprocessing, as on every Python before 3.14.

    From 3.14 on a server forks the workers, which takes a fresh interpreter to start, and a socket, which not every
    level has. Only the default is changed: a program may still choose for itself.
    """
    if sys.version_info >= (3, 14):
        import multiprocessing.context as context

        context._default_context._default_context = context._default_context.get_context("fork")  # type: ignore[attr-defined]


def leave_neighbours_alone(files: bool) -> None:
    """Where no PID namespace hides them; and their `files`, where they are the same user."""
    seccomp.Filter(seccomp.neighbours_filter(os.getpid())).install()
    locked = landlock.version()
    if files:
        seccomp.Filter(seccomp.files_filter(locked >= landlock.LENGTHS_SINCE)).install()
    if locked >= landlock.SIGNALS_SINCE:
        landlock.keep_signals_in()
    else:
        seccomp.Filter(seccomp.own_signals_filter(os.getpid())).install()


def _sleep_as_init() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # orphans that have ended are forgotten at once
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    kernel.die_with_parent()
    kernel.drop_capabilities()
    kernel.set_undumpable()  # it outlives the programs, which may be the same user
    os.closerange(0, 1 << 16)
    while True:
        signal.pause()
