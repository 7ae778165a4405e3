"""The first process of a container: connects the supervisor to the harness.

It starts the supervisor and forwards its messages to stdout, with the contents of attached
files. The supervisor reads jobs from the container's stdin itself. When the harness exits,
stdin closes; then this process and the container exit.
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
    features = {
        "seccomp": plan["seccomp"],
        "landlock": landlock.version() if plan["landlock"] else 0,
        "tools": _find_tools(order["tools"]),
        "path": os.environ.get("PATH", os.defpath),
    }
    send_frame(_STDOUT, json.dumps(features).encode())
    messages, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        _become_supervisor(plan, theirs)
    theirs.close()
    _forward(messages)


def _check_scratch(plan: dict[str, Any]) -> None:
    """Refuses a scratch folder with files: it is emptied after each program."""
    mount_points = {os.path.basename(mount_point) for mount_point in plan["mount_points"]}
    if found := set(os.listdir(plan["scratch"])) - mount_points:
        sys.exit(f"{plan['scratch']} must be empty when a container starts, but has {sorted(found)[0]}")


def _lay_out(folders: dict[str, list[tuple[str, int, int]]], content: bytes) -> None:
    for folder, files in folders.items():
        os.chdir(folder)
        commands.write_files(files, content)
        content = content[sum(size for _, _, size in files) :]


def _link_shared_memory(scratch: str) -> None:
    """Links /dev/shm to the scratch folder, which is limited and emptied."""
    if not os.path.exists(_SHARED_MEMORY):
        os.symlink(scratch, _SHARED_MEMORY)


def _unset_proxies() -> None:
    """Engines pass proxies, passwords included, to every container."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            del os.environ[name]


def _strongest_plan(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan with seccomp and Landlock, as far as they work in this container."""
    filtered, locked = seccomp.SUPPORTED, landlock.version() > 0
    for choice in ((filtered, locked), (filtered, False), (False, False)):
        chosen = {**plan, **dict(zip(("seccomp", "landlock"), choice, strict=True))}
        if _works(chosen):
            return chosen
    sys.exit(
        "programs cannot run as separate users: the container must start as root and have several users"
        " (rootless engines: /etc/subuid and /etc/subgid)"
    )


def _works(plan: dict[str, Any]) -> bool:
    """Whether the plan works, tried in a fork."""
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
    """Path on the container's PATH, and real path, of each tool."""
    folders = os.environ.get("PATH", os.defpath).split(":")
    paths = {}
    for tool in tools:
        candidates = [tool] if tool.startswith("/") else [os.path.join(folder, tool) for folder in folders]
        mode = os.R_OK if tool.startswith("/") else os.X_OK
        path = next((path for path in candidates if os.path.isfile(path) and os.access(path, mode)), None)
        if path:
            paths[tool] = path, os.path.realpath(path)
    return paths


def _become_supervisor(plan: dict[str, Any], messages: socket.socket) -> None:
    try:
        descriptors = [_STDIN, messages.fileno(), os.pidfd_open(os.getppid())]
        plan["descriptors"] = [fcntl.fcntl(given, fcntl.F_DUPFD, _FIRST_FREE_DESCRIPTOR) for given in descriptors]
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, _STDIN)
        os.dup2(null, _STDOUT)
        sys.argv[1:] = [json.dumps(plan)]
        supervisor.main()
    except BaseException:
        sys.excepthook(*sys.exc_info())
    os._exit(0)


def _forward(messages: socket.socket) -> None:
    """Forwards messages until the harness or the supervisor exits."""
    poll = select.poll()
    poll.register(_STDIN, 0)  # reports POLLHUP; the supervisor reads the data
    poll.register(messages, select.POLLIN)
    while _STDIN not in dict(poll.poll()):
        message, descriptors, _, _ = socket.recv_fds(messages, LARGEST_MESSAGE, MOST_DESCRIPTORS)
        if not message:
            return
        send_frame(_STDOUT, message, attached(json.loads(message), descriptors))
        for descriptor in descriptors:
            os.close(descriptor)
