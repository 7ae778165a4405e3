"""The supervisor of a worker: starts its processes, applies the limits, reports exits.

A worker's processes:

    supervisor ─┬─ test runner    holds the tests of many programs; in its own PID namespace
                └─ zygote ─┬─ init       idle; processes that a program leaves behind end with it
                           └─ program    one program; killed when its tests are over

A program shares its PID namespace only with an idle init. The namespace is replaced
when a program leaves a process behind.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from typing import Any

from proctor.sandbox.inside import kernel, process_tree, program, scratch, test_runner, zygote
from proctor.sandbox.inside.confinement import isolate
from proctor.sandbox.inside.frames import JOB

# Descriptors that the harness passes, always under these numbers.
JOBS, VERDICTS, HARNESS = 3, 4, 5
_POLL_INTERVAL = 0.1
_SHORTEST_INTERVAL = 0.005
_PROGRAMS_PER_TEST_RUNNER = 2000  # then the test runner is replaced, to bound its memory
_TEST_RUNNER_TIMEOUT = 1.0  # seconds for the test runner to notice that its program exited
_OPEN_FILES = 256
_RLIMIT_MSGQUEUE = 12  # has no name in Python

# What nearly every program imports, loaded once. Each module makes every fork slower.
_PRELOADED = ("collections", "copy", "functools", "heapq", "itertools", "math", "re", "string", "typing")

OutputFiles = tuple[int, int]


class HarnessExitedError(Exception):
    pass


class Supervisor:
    def __init__(self, plan: dict[str, Any]) -> None:
        self._plan = plan
        self._scratch = plan["scratch"]
        in_scratch = [path for path in plan.get("folders", ()) if os.path.dirname(path) == self._scratch]
        self._mount_points = {os.path.basename(path) for path in (*plan["mount_points"], *in_scratch)}
        self._verdicts = socket.socket(fileno=VERDICTS)
        self._own_namespace = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._program_count = 0
        self._processors = os.sched_getaffinity(0)
        self._pinned_to: int | None = None
        self._start_test_runner()
        self._start_zygote()

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
            try:
                self._run(*JOB.unpack(header))
            except HarnessExitedError:
                return

    def close(self) -> None:
        """Kills all processes; without a PID namespace the kernel does not do it."""
        for process in (self._test_runner, self._zygote):
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        if not self._plan["pid_namespace"]:
            process_tree.end_descendants(set())

    def _run(
        self, seconds: float, wall_seconds: float, memory: int, output: int, disk: int, processes: int, length: int
    ) -> None:
        """Runs one program, from fork to clean-up."""
        started = time.monotonic()
        outputs = self._output_files()
        pidfd = self._start_program(outputs, length, self._limits(seconds, memory, disk, processes))
        try:
            if length > test_runner.LARGE_JOB:
                self._await_job()
                started = time.monotonic()
            stopped = self._watch(started, seconds, wall_seconds, memory, outputs, output)
            alive = not select.select([pidfd], [], [], 0)[0]
            if alive:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            status, cpu, resident = self._receive_exit()
            cpu += self._kill_leftovers()
            self._program_count += 1
            if stopped or self._program_count % _PROGRAMS_PER_TEST_RUNNER == 0:
                self._restart_test_runner(stopped)
            code = None if alive else os.waitstatus_to_exitcode(status)
            self._send_exit(stopped, code, cpu, resident, time.monotonic() - started, outputs, output)
            scratch.empty(self._scratch, self._mount_points)
        finally:
            for descriptor in (pidfd, *outputs):
                os.close(descriptor)

    def _start_program(self, outputs: OutputFiles, length: int, limits: bytes) -> int:
        """Starts the program and passes it to the test runner; returns its pidfd."""
        program_read, test_runner_write = os.pipe()
        test_runner_read, program_write = os.pipe()
        self._pin_to_one_cpu()
        pidfd = self._start_process(limits, outputs, program_read, program_write)
        socket.send_fds(
            self._test_runner_socket, [length.to_bytes(8, "little")], [test_runner_read, test_runner_write, pidfd]
        )
        for descriptor in (program_read, test_runner_write, test_runner_read, program_write):
            os.close(descriptor)
        return pidfd

    def _limits(self, seconds: float, memory: int, disk: int, processes: int) -> bytes:
        """The limits, packed for the zygote."""
        if not self._plan["pid_namespace"]:  # the kernel counts all processes of the user
            processes += process_tree.count_threads(self._plan["program_user"] or os.getuid())
        cpu = int(seconds) + 2  # the kernel's limit holds if this process is stopped
        return zygote.LIMITS.pack(*map(_within_hard_limit, zygote.RLIMITS, (cpu, memory, disk, processes)))

    def _start_process(self, limits: bytes, outputs: OutputFiles, read_fd: int, write_fd: int) -> int:
        socket.send_fds(self._zygote_socket, [limits], [*outputs, read_fd, write_fd])
        _, (pidfd,), _, _ = socket.recv_fds(self._zygote_socket, 8, 1)
        return pidfd

    def _receive_exit(self) -> tuple[int, float, int]:
        """Exit status, CPU seconds and peak resident size of the last program."""
        status, cpu, resident = zygote.EXIT.unpack(_receive(self._zygote_socket, zygote.EXIT.size))
        return status, cpu, resident

    def _output_files(self) -> OutputFiles:
        return _output_file(), _output_file()

    def _await_job(self) -> None:
        """Waits until the test runner has read the job."""
        ready, _, _ = select.select([self._test_runner_socket.fileno(), HARNESS], [], [])
        if HARNESS in ready:
            raise HarnessExitedError
        if not self._test_runner_socket.recv(1):  # a new test runner would read the rest of this job
            raise OSError("the test runner died while it read a job")

    def _watch(
        self, started: float, seconds: float, wall_seconds: float, memory: int, outputs: OutputFiles, output: int
    ) -> str:
        """Waits for the test runner. Returns '' when it is done, else the limit that was hit."""
        poll = select.poll()
        poll.register(self._test_runner_socket, select.POLLIN)
        poll.register(HARNESS, select.POLLIN)
        poll.register(JOBS, 0)
        meter = process_tree.Meter(self._test_runner, self._zygote)
        wait = min(_POLL_INTERVAL, seconds)
        while True:
            ready = dict(poll.poll(wait * 1000))
            orders = ready.pop(self._test_runner_socket.fileno(), 0)
            if orders and self._test_runner_socket.recv(1):
                return ""
            if orders:
                return "test runner"
            if ready:
                raise HarnessExitedError
            wall = time.monotonic() - started
            used = meter.read()
            own = used.own_seconds(wall)
            self._unpin([*used.cpu_of])
            if own >= seconds:
                return "timeout"
            if wall >= wall_seconds:
                return "wall"
            if any(os.fstat(file).st_size > output for file in outputs):
                return "output"
            if used.resident_bytes > memory and used.memory_bytes() > memory:
                return "memory"
            wait = max(_SHORTEST_INTERVAL, min(_POLL_INTERVAL, seconds - own, wall_seconds - wall))

    def _pin_to_one_cpu(self) -> None:
        """Pins test runner and program to the CPU that this process runs on.

        The two take turns: on one CPU a turn costs microseconds, on two each turn wakes
        an idle CPU.
        """
        processor = kernel.current_processor()
        if processor != self._pinned_to:
            self._pinned_to = processor
            self._set_affinity({processor}, self._test_runner, self._zygote)

    def _unpin(self, processes: list[int]) -> None:
        """Gives a longer program all CPUs, so that the kernel can move it."""
        if self._pinned_to is not None:
            self._pinned_to = None
            self._set_affinity(self._processors, self._test_runner, *processes)

    def _set_affinity(self, processors: set[int], *processes: int) -> None:
        for process in processes:
            try:
                os.sched_setaffinity(process, processors)
            except OSError:  # it exited or is not ours: it only runs slower
                continue

    # The test runner: restarted when it hangs in its tests or died.

    def _start_test_runner(self) -> None:
        self._test_runner_socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if self._plan["pid_namespace"]:
            kernel.unshare(kernel.CLONE_NEWPID)
        self._test_runner = os.fork()
        if self._test_runner == 0:
            try:
                line = os.dup2(theirs.fileno(), HARNESS, inheritable=False)
                os.closerange(HARNESS + 1, 1 << 16)
                os.dup2(0, 2)
                _drop_rights(self._plan["test_runner_user"], self._plan["user_namespace"])
                kernel.die_with_parent()
                test_runner.serve(socket.socket(fileno=line), JOBS, self._verdicts)
            finally:
                os._exit(70)
        theirs.close()
        self._pinned_to = None
        if self._plan["pid_namespace"]:
            kernel.setns(self._own_namespace, kernel.CLONE_NEWPID)

    def _restart_test_runner(self, stopped: str) -> None:
        """Restarts it, unless it noticed the end of its program and is ready."""
        poll = select.poll()
        poll.register(self._test_runner_socket, select.POLLIN)
        if stopped and poll.poll(_TEST_RUNNER_TIMEOUT * 1000) and self._test_runner_socket.recv(1):
            return
        os.kill(self._test_runner, signal.SIGKILL)
        os.waitpid(self._test_runner, 0)
        self._test_runner_socket.close()
        self._start_test_runner()

    # The zygote and its PID namespace.

    def _start_zygote(self) -> None:
        self._zygote_socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._zygote = os.fork()
        if self._zygote == 0:
            try:
                line = os.dup2(theirs.fileno(), HARNESS)  # closed here, so that programs close less
                os.closerange(JOBS, HARNESS)
                os.closerange(HARNESS + 1, 1 << 16)
                os.dup2(0, 2)
                self._make_zygote(socket.socket(fileno=line)).serve()
            finally:
                os._exit(73)
        theirs.close()
        self._pinned_to = None
        self._init = int.from_bytes(_receive(self._zygote_socket, 4), "little")

    def _make_zygote(self, line: socket.socket) -> zygote.Zygote:
        return zygote.Zygote(self._plan, line)

    def _kill_leftovers(self) -> float:
        """Kills what outlived the program; returns its CPU seconds where they are known."""
        if not self._plan["pid_namespace"]:
            process_tree.end_descendants({self._test_runner, self._zygote})
            return 0.0
        if not self._has_leftovers():
            return 0.0
        os.kill(self._init, signal.SIGKILL)
        os.kill(self._zygote, signal.SIGKILL)
        os.waitpid(self._zygote, 0)
        _, _, usage = os.wait4(self._init, 0)  # our child now; returns when the namespace is empty
        self._zygote_socket.close()
        self._start_zygote()
        return usage.ru_utime + usage.ru_stime

    def _has_leftovers(self) -> bool:
        """Whether init has children: it is the parent of all that outlive a program."""
        try:
            with open(f"/proc/{self._init}/task/{self._init}/children") as children:
                return children.read(1) != ""
        except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
            return any(int(fields[1]) == self._init for _, fields in process_tree.descendants({self._test_runner}))

    def _send_exit(
        self, stopped: str, status: int | None, cpu: float, memory: int, wall: float, outputs: OutputFiles, most: int
    ) -> None:
        sizes = [min(most + 1, os.fstat(file).st_size) for file in outputs]
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


def _drop_rights(user: int | None, to_user_namespace: bool) -> None:
    if user is not None:  # as root: changing the user drops all capabilities
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    elif to_user_namespace:
        kernel.unshare(kernel.CLONE_NEWUSER)
        kernel.drop_capabilities()


def _receive(line: socket.socket, size: int) -> bytes:
    message = line.recv(size)
    if len(message) < size:
        raise OSError("the zygote died")
    return message


def _output_file() -> int:
    """A memfd, which nobody has to read meanwhile; its size is polled."""
    file = os.memfd_create("output", os.MFD_CLOEXEC)
    fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
    return file


def _within_hard_limit(kind: int, most: int) -> int:
    """The limit, but not above the hard limit of the harness."""
    hard = resource.getrlimit(kind)[1]
    return most if hard == resource.RLIM_INFINITY else min(most, hard)


def enter_isolation(open_files: int) -> dict[str, Any]:
    """Isolates this process, with the descriptors of the harness; returns the plan."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the harness may have inherited a mask
    os.umask(0o022)  # other users read these files
    plan: dict[str, Any] = json.loads(sys.argv[1])
    for target, given in enumerate(plan["descriptors"], JOBS):
        os.dup2(given, target)
    os.closerange(JOBS + len(plan["descriptors"]), 1 << 16)
    isolate(plan)
    os.chdir(plan["scratch"])
    if plan["program_user"] is not None:
        os.setgroups([])
    for kind, most in ((resource.RLIMIT_NOFILE, open_files), (resource.RLIMIT_CORE, 0), (_RLIMIT_MSGQUEUE, 0)):
        least = _within_hard_limit(kind, most)
        resource.setrlimit(kind, (least, least))
    return plan


def main() -> None:
    plan = enter_isolation(_OPEN_FILES)
    sys.path[:] = [*sys.path[1:], *plan["packages"]]  # without Proctor
    sys.argv = [program.SOURCE_FILE]
    for name in _PRELOADED:
        importlib.import_module(name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "proctor"]:
        del sys.modules[name]
    program.warm_up()
    gc.collect()
    gc.disable()
    gc.freeze()
    supervisor = Supervisor(plan)
    gc.enable()
    try:
        supervisor.serve()
    finally:
        supervisor.close()
