"""One long-lived program behind the walls, seen from outside: the command that starts it, and what that needs."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from glob import glob
from pathlib import Path
from typing import Any

from msgspec import Struct

from proctor.core.errors import SandboxUnavailableError
from proctor.sandbox.detection import LevelProbe
from proctor.sandbox.inside.isolated import FIRST_DESCRIPTOR
from proctor.sandbox.isolation import IsolationLevel, NamespaceBackend, levels
from proctor.sandbox.layout import ENVIRONMENT, SCRATCH, Layout, plan_layout, readable_parts
from proctor.sandbox.worker import SOURCES, WorkerError, command_of, files_in_memory, make_scratch

_INSIDE = "proctor.sandbox.inside.isolated"
_PROBE_TIMEOUT = 60.0
_GPU_DEVICES = ("/dev/nvidia*", "/dev/nvidia-caps/*", "/dev/dri/*", "/dev/kfd")
_CERTIFICATES = ("/etc/ssl", "/etc/pki", "/etc/ca-certificates")
_READ_BY_PYTHON = ("/etc/mime.types",)  # by Python itself, which does not expect that it may not
_RESOLVER = "/etc/resolv.conf"


class Permissions(Struct, frozen=True):
    """What a program behind the walls may use or see, besides the system and Python."""

    network: bool = False
    gpu: bool = False
    files: tuple[str, ...] = ()  # absolute paths, read-only, at the same place
    binds: tuple[tuple[str, str], ...] = ()  # a file of ours, and where it lies in the room
    listable: tuple[str, ...] = ()  # folders in which Python has to find a module, where no namespace hides the others

    @property
    def needs_namespaces(self) -> bool:
        """Landlock alone cannot open one local socket and no other."""
        return self.network or self.gpu or bool(self.binds)


class IsolatedCommand(Struct):
    """A command to start once. `close` when it has ended."""

    command: list[str]
    handed: list[int]  # descriptors that it inherits; those in `own` are closed by us when it has started
    environment: dict[str, str]
    own: list[int]
    scratch: Path | None

    def started(self) -> None:
        for descriptor in self.own:
            os.close(descriptor)
        self.own = []

    def close(self) -> None:
        self.started()
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)


def isolate_command(
    level: IsolationLevel,
    program: list[str],
    handed: Iterable[int],
    allowed: Permissions,
    environment: Mapping[str, str],
) -> IsolatedCommand:
    """`{N}` in the program stands for the number that the N-th handed descriptor has inside."""
    handed = list(handed)
    order = sorted(handed)
    inside = [str(FIRST_DESCRIPTOR + order.index(descriptor)) for descriptor in handed]
    layout = _layout(level, allowed)
    scratch = make_scratch(level, layout)
    room = str(scratch or SCRATCH)
    home = f"{room}/home"
    more: dict[str, Any] = {
        "program": [part.format(*inside) for part in program],
        "home": home,
        "network": allowed.network,
        "binds": allowed.binds,
        "devices": gpu_devices() if allowed.gpu else [],
    }
    if not level.namespaces:
        more["listable"] = [*layout.folders, SOURCES, *allowed.listable]
    files = files_in_memory(layout) if level.namespace_backend is NamespaceBackend.BUBBLEWRAP else {}
    return IsolatedCommand(
        command_of(_INSIDE, level, layout, order, scratch, files, more),
        [*order, *files],
        {**ENVIRONMENT, "HOME": home, "TMPDIR": room, **environment},
        list(files),
        scratch,
    )


def _layout(level: IsolationLevel, allowed: Permissions) -> Layout:
    shown: list[str] = list(allowed.files)
    if level.namespaces and os.getuid() == 0:  # the program will be another user
        shown = [part for place in shown for part in readable_parts(place)]
    if allowed.network:
        shown += filter(os.path.exists, _CERTIFICATES)
    if allowed.gpu:
        shown += ["/sys"]
    shown += filter(os.path.exists, _READ_BY_PYTHON)
    layout = plan_layout(shown, with_answers=True)
    files = dict(layout.files)
    if allowed.network:
        with suppress(OSError):
            files[_RESOLVER] = Path(_RESOLVER).read_text()
    return Layout(layout.folders, layout.links, files, layout.packages, layout.mount_points, layout.hidden)


def gpu_devices() -> list[str]:
    """The device nodes of this machine's graphics cards."""
    return sorted(path for pattern in _GPU_DEVICES for path in glob(pattern) if Path(path).is_char_device())


def find_level(allowed: Permissions, what: str) -> IsolationLevel:
    """The strongest level on which a program runs here with what it is allowed; raises where none holds it."""
    if allowed.gpu and not gpu_devices():
        raise SandboxUnavailableError(f"{what}: this machine has no graphics card that could be handed in.")
    findings = []
    for level in filter(lambda level: level.safe, levels()):
        if allowed.needs_namespaces and not level.namespaces:
            findings.append(LevelProbe(level, False, "it cannot let in one display, network or card and nothing else"))
            continue
        obstacle = _obstacle(level, allowed)
        if not obstacle:
            return level
        findings.append(LevelProbe(level, False, obstacle))
    if not sys.platform.startswith("linux"):
        raise SandboxUnavailableError(f"{what} needs Linux, or an agent on another machine: --agent http://HOST:PORT.")
    tried = "; ".join(f"{finding.level.name}: {finding.obstacle.rstrip('.')}" for finding in findings) or "no level"
    cure = findings[0].cure if findings else ""
    raise SandboxUnavailableError(f"{what}: this machine cannot hold it ({tried}). {cure}".rstrip())


def _obstacle(level: IsolationLevel, allowed: Permissions) -> str:
    """What is in the way of a program on this level; empty if nothing is."""
    ours, theirs = socket.socketpair()
    enclosed = None
    try:
        program = [sys.executable, "-I", "-S", "-c", "import os; os.write({0}, b'here')"]
        enclosed = isolate_command(level, program, [theirs.fileno()], Permissions(allowed.network, allowed.gpu), {})
        process = subprocess.Popen(
            enclosed.command,
            pass_fds=enclosed.handed,
            env=enclosed.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        theirs.close()
        try:
            _, said = process.communicate(timeout=_PROBE_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return f"nothing came of it within {_PROBE_TIMEOUT:g} seconds"
        lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
        ours.setblocking(False)
        with suppress(BlockingIOError):
            if ours.recv(4) == b"here":
                return ""
        return lines[-1] if lines else "the program ended without a word"
    except (WorkerError, OSError) as error:
        return str(error)
    finally:
        ours.close()
        theirs.close()
        if enclosed is not None:
            enclosed.close()
