"""The first process of a container: stands in for the harness there.

It starts the warden and passes its messages on over stdout, with the files that come with them as bytes. Jobs need no
passing on: the warden reads them from the container's stdin itself. When the harness goes, stdin ends, so does this
process, and with it the container.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import site
import socket
import sys
from typing import Any

from proctor.sandbox.inside import commands, landlock, seccomp, supervisor
from proctor.sandbox.inside.confinement import isolate
from proctor.sandbox.inside.frames import LARGEST_MESSAGE, MOST_DESCRIPTORS, attached, receive_frame, send_frame

_STDIN, _STDOUT = 0, 1
_SHARED_MEMORY = "/dev/shm"
_FIRST_FREE_DESCRIPTOR = supervisor.HARNESS + 1


def main() -> None:
    message, content = receive_frame(_STDIN)
    order = json.loads(message)
    _check_scratch(order["plan"])
    _lay_out(order["folders"], content)
    _link_shared_memory(order["plan"]["scratch"])
    _unset_proxies()
    plan = _strongest_plan({**order["plan"], "packages": site.getsitepackages()})
    found = {
        "seccomp": plan["seccomp"],
        "landlock": landlock.version() if plan["landlock"] else 0,
        "tools": _find_tools(order["tools"]),
        "path": os.environ.get("PATH", os.defpath),
    }
    send_frame(_STDOUT, json.dumps(found).encode())
    messages, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        _become_supervisor(plan, theirs)
    theirs.close()
    _forward(messages)


def _check_scratch(plan: dict[str, Any]) -> None:
    """Whatever lies there is deleted after each program, so this must be the container's own."""
    mount_points = {os.path.basename(mount_point) for mount_point in plan["mount_points"]}
    if found := set(os.listdir(plan["scratch"])) - mount_points:
        sys.exit(f"{plan['scratch']} must be empty when a container starts, but has {sorted(found)[0]}")


def _lay_out(folders: dict[str, list[tuple[str, int, int]]], content: bytes) -> None:
    for folder, files in folders.items():
        os.chdir(folder)
        commands.write_files(files, content)
        content = content[sum(size for _, _, size in files) :]


def _link_shared_memory(scratch: str) -> None:
    """Semaphores and shared memory go where they are counted, and cleared away with the rest."""
    if not os.path.exists(_SHARED_MEMORY):
        os.symlink(scratch, _SHARED_MEMORY)


def _unset_proxies() -> None:
    """Engines hand them to every container, with passwords if they have any. No program needs one without a network."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            del os.environ[name]


def _strongest_plan(plan: dict[str, Any]) -> dict[str, Any]:
    """With all the rules that this kernel and this container let a process lay upon itself."""
    filtered, locked = seccomp.SUPPORTED, landlock.version() > 0
    for choice in ((filtered, locked), (filtered, False), (False, False)):
        chosen = {**plan, **dict(zip(("seccomp", "landlock"), choice, strict=True))}
        if _works(chosen):
            return chosen
    sys.exit(
        "programs cannot be given users of their own: the container must start as root and have more users than one"
        " (rootless engines: /etc/subuid and /etc/subgid)"
    )


def _works(plan: dict[str, Any]) -> bool:
    """Found out by doing it, in a process that does nothing else."""
    process = os.fork()
    if process == 0:
        try:
            isolate(plan)
            user = plan["program_user"]
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(process, 0)[1] == 0


def _find_tools(tools: list[str]) -> dict[str, tuple[str, str]]:
    """Where they are on the container's own PATH, and where they really are."""
    folders = os.environ.get("PATH", os.defpath).split(":")
    found = {}
    for tool in tools:
        places = [tool] if tool.startswith("/") else [os.path.join(folder, tool) for folder in folders]
        wanted = os.R_OK if tool.startswith("/") else os.X_OK
        path = next((place for place in places if os.path.isfile(place) and os.access(place, wanted)), None)
        if path:
            found[tool] = path, os.path.realpath(path)
    return found


def _become_supervisor(plan: dict[str, Any], messages: socket.socket) -> None:
    try:
        handed = [_STDIN, messages.fileno(), os.pidfd_open(os.getppid())]
        plan["descriptors"] = [fcntl.fcntl(given, fcntl.F_DUPFD, _FIRST_FREE_DESCRIPTOR) for given in handed]
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, _STDIN)
        os.dup2(nothing, _STDOUT)
        sys.argv[1:] = [json.dumps(plan)]
        supervisor.main()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    os._exit(0)


def _forward(messages: socket.socket) -> None:
    """Until the harness or the warden goes."""
    poll = select.poll()
    poll.register(_STDIN, 0)  # tells when it is hung up; what comes in is the warden's to read
    poll.register(messages, select.POLLIN)
    while _STDIN not in dict(poll.poll()):
        message, descriptors, _, _ = socket.recv_fds(messages, LARGEST_MESSAGE, MOST_DESCRIPTORS)
        if not message:
            return
        send_frame(_STDOUT, message, attached(json.loads(message), descriptors))
        for descriptor in descriptors:
            os.close(descriptor)
