"""Runs one long-lived program in isolation: an untrusted agent.

    init ── program    and its children; the PID namespace ends with the program

This process stays as init, without capabilities, descriptors or secrets. It exits with the
status of the program.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from typing import Any

from proctor.sandbox.inside import kernel, landlock, seccomp
from proctor.sandbox.inside.confinement import devices, isolate
from proctor.sandbox.inside.zygote import block_other_processes

FIRST_DESCRIPTOR = 3
_OPEN_FILES = 4096
_PROCESSES = 4096  # the user runs only this program
# Files of /proc that libraries read; the others describe other processes.
_PROC_FILES = ("cpuinfo", "meminfo", "stat", "loadavg", "uptime", "version", "filesystems")


def main() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.umask(0o022)
    plan: dict[str, Any] = json.loads(sys.argv[1])
    for target, given in enumerate(plan["descriptors"], FIRST_DESCRIPTOR):
        os.dup2(given, target)
    os.closerange(FIRST_DESCRIPTOR + len(plan["descriptors"]), 1 << 16)
    isolate(plan)
    _make_home(plan)
    program = os.fork()
    if program == 0:
        try:
            _become_program(plan)
        except BaseException as error:
            print(f"cannot start the program: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(126)
    kernel.drop_capabilities()
    kernel.set_undumpable()
    os.closerange(0, 1 << 16)
    os._exit(_exit_status_of(program))


def _make_home(plan: dict[str, Any]) -> None:
    """Creates the private home folder, in the scratch folder."""
    home = plan["home"]
    os.makedirs(home, mode=0o700, exist_ok=True)
    if plan["program_user"] is not None:
        os.chown(home, plan["program_user"], plan["program_user"])
    os.chdir(home)


def _become_program(plan: dict[str, Any]) -> None:
    kernel.die_with_parent()
    for kind, most in ((resource.RLIMIT_NOFILE, _OPEN_FILES), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (least, least))
    user = plan["program_user"]
    if user is not None:
        resource.setrlimit(resource.RLIMIT_NPROC, (_PROCESSES, _PROCESSES))
        os.setgroups(_groups_of(plan.get("devices", ())))
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        kernel.die_with_parent()  # changing the user resets it
    kernel.drop_capabilities()
    if plan["without_mounts"]:
        _hide_processes(plan)
    if plan["seccomp"]:
        seccomp.Filter(seccomp.namespaces_filter()).install()
        if not plan["pid_namespace"]:
            block_other_processes(files=user is None)
    for descriptor in range(FIRST_DESCRIPTOR, FIRST_DESCRIPTOR + len(plan["descriptors"])):
        os.set_inheritable(descriptor, True)
    os.execve(plan["program"][0], plan["program"], dict(os.environ))


def _groups_of(nodes: list[str]) -> list[int]:
    """The groups that own these device nodes."""
    return sorted({os.stat(node).st_gid for node in nodes} - {0})


def _hide_processes(plan: dict[str, Any]) -> None:
    """Hides other processes without a namespace: Landlock shows only parts of /proc."""
    visible = [path for path in plan["readable"] if path != "/proc"]
    visible += ["/proc/self", *(f"/proc/{name}" for name in _PROC_FILES)]
    landlock.confine(visible, plan["listable"], [plan["scratch"]], devices(plan))


def _exit_status_of(program: int) -> int:
    """Reaps orphans until the program exits."""
    while True:
        pid, status = os.wait()
        if pid == program:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
