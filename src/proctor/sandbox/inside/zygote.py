"""The small process from which every program is forked. It sees neither programs nor tests, and outlives them all.

A worker's processes:

    zygote ─┬─ examiner              holds the tests; one for many programs, in a PID namespace of its own
            ├─ init of the room      sleeps; whatever a program leaves behind ends with it
            └─ subject               one program, in the room's PID namespace; killed when the tests are over
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
import time
from typing import Any

from proctor.sandbox.inside import commands, examiner, kernel, landlock, seccomp, watch
from proctor.sandbox.inside.frames import JOB
from proctor.sandbox.inside.walls import raise_walls

# Handed over by the harness, and kept at these numbers.
JOBS, VERDICTS, HARNESS = 3, 4, 5
_TICK = 0.1
_SHORTEST = 0.005
_RETIREMENT = 2000  # programs until an examiner is replaced, whatever its memory has come to
_PATIENCE = 1.0  # for the examiner to notice that its subject is gone
_SEALS = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
_OPEN_FILES = 256
_RLIMIT_MSGQUEUE = 12  # not named by Python

# What nearly every program imports. Loaded once here; each makes every fork a little dearer, so there are not more.
_PRELOADED = ("collections", "copy", "functools", "heapq", "itertools", "math", "random", "re", "string", "typing")


Outputs = tuple[int, int]
Limit = tuple[int, tuple[int, int]]


class Zygote:
    def __init__(self, plan: dict[str, Any]) -> None:
        self._plan = plan
        self._scratch = plan["scratch"]
        self._islands = {os.path.basename(island) for island in plan["islands"]}
        self._verdicts = socket.socket(fileno=VERDICTS)
        self._last_filter = seccomp.Filter(seccomp.last_filter()) if plan["seccomp"] else None
        self._own_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._init = -1
        self._judged = 0
        self._start_examiner()
        self._open_room()

    def serve(self) -> None:
        poll = select.poll()
        poll.register(JOBS, select.POLLIN)
        poll.register(HARNESS, select.POLLIN)
        self._verdicts.send(b'{"ready": true}')
        while True:
            ready = dict(poll.poll())
            if HARNESS in ready or not (header := os.read(JOBS, JOB.size)):
                return
            while len(header) < JOB.size:
                header += os.read(JOBS, JOB.size - len(header))
            if not self._run(*JOB.unpack(header)):
                return

    def close(self) -> None:
        """Nobody stays: with a PID namespace they would end with us, without one they have to be told."""
        os.kill(self._examiner, signal.SIGKILL)
        os.waitpid(self._examiner, 0)
        if not self._plan["pid_namespace"]:
            watch.end_descendants(set())

    def _run(
        self, seconds: float, wall_seconds: float, memory: int, output: int, disk: int, processes: int, length: int
    ) -> bool:
        """One program, from fork to clean-up. False when the harness has gone."""
        started = time.monotonic()
        outputs = _capped_file(output), _capped_file(output)
        hear_tests, tell_subject = os.pipe()
        hear_subject, tell_tests = os.pipe()
        if not self._plan["pid_namespace"]:  # then the kernel counts whatever else this user runs
            processes += watch.threads_of(self._plan["subject_user"] or os.getuid())
        limits = _limits(seconds, memory, disk, processes)
        process = os.fork()
        if process == 0:
            try:
                self._become_subject(hear_tests, tell_tests, outputs, limits)
            finally:
                os._exit(71)
        end = os.pidfd_open(process)
        socket.send_fds(self._orders, [length.to_bytes(8, "little")], [hear_subject, tell_subject, end])
        for descriptor in (hear_tests, tell_subject, hear_subject, tell_tests):
            os.close(descriptor)
        stopped = self._watch(started, seconds, wall_seconds, memory, outputs, output)
        status, usage = _end(process)
        os.close(end)
        left_behind = self._clear_room()
        self._judged += 1
        if stopped or self._judged % _RETIREMENT == 0:
            self._renew_examiner(stopped)
        wall = time.monotonic() - started
        self._empty_scratch()
        if stopped != "gone":
            used = [record.ru_utime + record.ru_stime for record in (usage, left_behind) if record]
            self._send_end(stopped, status, sum(used), usage.ru_maxrss, wall, outputs, output)
        for file in outputs:
            os.close(file)
        return stopped != "gone"

    def _become_subject(self, ear: int, mouth: int, outputs: Outputs, limits: list[Limit]) -> None:
        """In the new process: leave behind whatever a program must not have. Short, for every program pays for it."""
        os.setsid()
        os.dup2(outputs[0], 1)
        os.dup2(outputs[1], 2)
        os.dup2(ear, 3)
        os.dup2(mouth, 4)
        os.closerange(5, 1 << 16)
        for kind, most in limits:
            resource.setrlimit(kind, most)
        self._drop_rights(self._plan["subject_user"])
        if self._last_filter:
            self._last_filter.install()
            if not self._plan["pid_namespace"]:
                self._keep_signals_in()
        gc.enable()
        commands.serve(3, 4)

    def _drop_rights(self, user: int | None) -> None:
        if user is not None:  # from root: all capabilities go with the user
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        elif self._plan["user_namespace"]:
            kernel.unshare(kernel.CLONE_NEWUSER)
            kernel.drop_capabilities()

    def _keep_signals_in(self) -> None:
        """Where no PID namespace does."""
        if landlock.version() >= landlock.SIGNALS_SINCE:
            landlock.keep_signals_in()
        else:
            seccomp.Filter(seccomp.own_signals_filter(os.getpid())).install()

    def _watch(
        self, started: float, seconds: float, wall_seconds: float, memory: int, outputs: Outputs, output: int
    ) -> str:
        """Waits for the examiner's word. Returns '' when it came, else why the program must end now."""
        poll = select.poll()
        poll.register(self._orders, select.POLLIN)
        poll.register(HARNESS, select.POLLIN)
        poll.register(JOBS, 0)
        meter = watch.Meter(self._examiner)
        wait = min(_TICK, seconds)
        while True:
            ready = dict(poll.poll(wait * 1000))
            orders = ready.pop(self._orders.fileno(), 0)
            if orders and self._orders.recv(1):
                return ""
            if orders:
                return "examiner"
            if ready:
                return "gone"
            wall = time.monotonic() - started
            used = meter.read()
            own = used.own_seconds(wall)
            if own >= seconds:
                return "timeout"
            if wall >= wall_seconds:
                return "wall"
            if any(os.lseek(file, 0, os.SEEK_CUR) >= output for file in outputs):
                return "output"
            if used.resident_bytes > memory and used.memory_bytes() > memory:
                return "memory"
            wait = max(_SHORTEST, min(_TICK, seconds - own, wall_seconds - wall))

    # The examiner: started again when it is stuck in its tests or has died.

    def _start_examiner(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if self._plan["pid_namespace"]:
            kernel.unshare(kernel.CLONE_NEWPID)
        process = os.fork()
        if process == 0:
            try:
                ours.close()
                os.close(HARNESS)
                os.dup2(0, 2)
                self._drop_rights(self._plan["examiner_user"])
                kernel.die_with_parent()
                examiner.serve(theirs, JOBS, self._verdicts)
            finally:
                os._exit(70)
        theirs.close()
        self._examiner, self._orders = process, ours
        if self._plan["pid_namespace"]:
            kernel.setns(self._own_namespace, kernel.CLONE_NEWPID)

    def _renew_examiner(self, stopped: str) -> None:
        """Unless it is still good: it may have noticed that its program was stopped, and be ready for the next."""
        poll = select.poll()
        poll.register(self._orders, select.POLLIN)
        if stopped and poll.poll(_PATIENCE * 1000) and self._orders.recv(1):
            return
        os.kill(self._examiner, signal.SIGKILL)
        os.waitpid(self._examiner, 0)
        self._orders.close()
        if self._plan["pid_namespace"]:
            kernel.setns(self._own_namespace, kernel.CLONE_NEWPID)
        self._start_examiner()
        if self._plan["pid_namespace"]:
            self._open_room()

    # The room: a PID namespace in which a program is alone with an idle init. Renewed when anything stays behind.

    def _open_room(self) -> None:
        if not self._plan["pid_namespace"]:
            return
        if self._init > 0:
            os.kill(self._init, signal.SIGKILL)
            os.waitpid(self._init, 0)
            kernel.setns(self._own_namespace, kernel.CLONE_NEWPID)
        kernel.unshare(kernel.CLONE_NEWPID)
        self._init = os.fork()
        if self._init == 0:
            try:
                _sleep_as_init()
            finally:
                os._exit(72)

    def _clear_room(self) -> resource.struct_rusage | None:
        """Ends whatever outlived the program. Returns what it used, if there was any."""
        if not self._plan["pid_namespace"]:
            watch.end_descendants({self._examiner})
            return None
        with open(f"/proc/{self._init}/task/{self._init}/children") as children:
            if not children.read(1):
                return None
        os.kill(self._init, signal.SIGKILL)
        _, _, usage = os.wait4(self._init, 0)  # comes back when the whole namespace is empty
        self._init = -1
        kernel.setns(self._own_namespace, kernel.CLONE_NEWPID)
        self._open_room()
        return usage

    def _empty_scratch(self) -> None:
        for name in os.listdir(self._scratch):
            if name in self._islands:
                continue
            path = os.path.join(self._scratch, name)
            try:
                os.unlink(path)
            except OSError:
                shutil.rmtree(path, ignore_errors=True)

    def _send_end(
        self, stopped: str, status: int | None, cpu: float, memory: int, wall: float, outputs: Outputs, most: int
    ) -> None:
        sizes = [min(most, os.lseek(file, 0, os.SEEK_CUR)) for file in outputs]
        end = {
            "stopped": stopped,
            "status": status,
            "wall": wall,
            "cpu": cpu,
            "memory": memory,
            "stdout": sizes[0],
            "stderr": sizes[1],
        }
        files = [file for file, size in zip(outputs, sizes, strict=True) if size]
        socket.send_fds(self._verdicts, [json.dumps(end).encode()], files)


def _end(process: int) -> tuple[int | None, resource.struct_rusage]:
    """Its exit status, None if it had to be killed; and what it used."""
    ended, status, usage = os.wait4(process, os.WNOHANG)
    if ended:
        return os.waitstatus_to_exitcode(status), usage
    os.kill(process, signal.SIGKILL)
    return None, os.wait4(process, 0)[2]


def _sleep_as_init() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # orphans that have ended are forgotten at once
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    kernel.die_with_parent()
    os.closerange(0, 1 << 16)
    while True:
        signal.pause()


def _capped_file(size: int) -> int:
    """Memory with an end: what is written beyond it is refused, and nobody has to read along."""
    file = os.memfd_create("output", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(file, size)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
    return file


def _limits(seconds: float, memory: int, disk: int, processes: int) -> list[Limit]:
    """What differs from program to program; never above what the harness itself may use."""
    wanted = (
        (resource.RLIMIT_CPU, int(seconds) + 2),  # should the zygote be stopped, the kernel still counts
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_FSIZE, disk),
        (resource.RLIMIT_NPROC, processes),
    )
    return [(kind, _within_hard_limit(kind, most)) for kind, most in wanted]


def _within_hard_limit(kind: int, most: int) -> tuple[int, int]:
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    return most, most


def main() -> None:
    plan = json.loads(sys.argv[1])
    for given, wanted in zip(plan["descriptors"], (JOBS, VERDICTS, HARNESS), strict=True):
        os.dup2(given, wanted)
    os.closerange(HARNESS + 1, 1 << 16)
    raise_walls(plan)
    os.chdir(plan["scratch"])
    if plan["subject_user"] is not None:
        os.setgroups([])
    for kind, most in ((resource.RLIMIT_NOFILE, _OPEN_FILES), (resource.RLIMIT_CORE, 0), (_RLIMIT_MSGQUEUE, 0)):
        resource.setrlimit(kind, _within_hard_limit(kind, most))
    sys.path[:] = [*sys.path[1:], *plan["packages"]]  # without ourselves
    for name in _PRELOADED:
        __import__(name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "proctor"]:
        del sys.modules[name]
    gc.collect()
    gc.disable()
    gc.freeze()
    zygote = Zygote(plan)
    try:
        zygote.serve()
    finally:
        zygote.close()
