"""Commands that run one long-lived program in isolation, such as an agent."""

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
_READ_BY_PYTHON = ("/etc/mime.types",)  # Python fails if it exists and is not readable
_RESOLVER = "/etc/resolv.conf"


class Permissions(Struct, frozen=True):
    """What an isolated program may access besides the system and Python."""

    network: bool = False
    gpu: bool = False
    files: tuple[str, ...] = ()  # absolute paths, read-only
    binds: tuple[tuple[str, str], ...] = ()  # source and target of each mount
    listable: tuple[str, ...] = ()  # folders that Python lists to find a module, without namespaces

    @property
    def needs_namespaces(self) -> bool:
        """Landlock cannot allow a single local socket."""
        return self.network or self.gpu or bool(self.binds)


class IsolatedCommand(Struct):
    """A command to start once. Call `close` after its exit."""

    command: list[str]
    descriptors: list[int]  # inherited descriptors; `started` closes those in `own`
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
    descriptors: Iterable[int],
    permissions: Permissions,
    environment: Mapping[str, str],
) -> IsolatedCommand:
    """Builds the command. `{N}` in the program is the N-th descriptor's number inside."""
    descriptors = list(descriptors)
    order = sorted(descriptors)
    inside = [str(FIRST_DESCRIPTOR + order.index(descriptor)) for descriptor in descriptors]
    layout = _layout(level, permissions)
    scratch = make_scratch(level, layout)
    scratch_path = str(scratch or SCRATCH)
    home = f"{scratch_path}/home"
    extra_plan: dict[str, Any] = {
        "program": [part.format(*inside) for part in program],
        "home": home,
        "network": permissions.network,
        "binds": permissions.binds,
        "devices": gpu_devices() if permissions.gpu else [],
    }
    if not level.namespaces:
        extra_plan["listable"] = [*layout.folders, SOURCES, *permissions.listable]
    files = files_in_memory(layout) if level.namespace_backend is NamespaceBackend.BUBBLEWRAP else {}
    return IsolatedCommand(
        command_of(_INSIDE, level, layout, order, scratch, files, extra_plan),
        [*order, *files],
        {**ENVIRONMENT, "HOME": home, "TMPDIR": scratch_path, **environment},
        list(files),
        scratch,
    )


def _layout(level: IsolationLevel, permissions: Permissions) -> Layout:
    visible: list[str] = list(permissions.files)
    if level.namespaces and os.getuid() == 0:  # the program runs as another user
        visible = [part for path in visible for part in readable_parts(path)]
    if permissions.network:
        visible += filter(os.path.exists, _CERTIFICATES)
    if permissions.gpu:
        visible += ["/sys"]
    visible += filter(os.path.exists, _READ_BY_PYTHON)
    layout = plan_layout(visible, with_answers=True)
    files = dict(layout.files)
    if permissions.network:
        with suppress(OSError):
            files[_RESOLVER] = Path(_RESOLVER).read_text()
    return Layout(layout.folders, layout.links, files, layout.packages, layout.mount_points, layout.hidden)


def gpu_devices() -> list[str]:
    """The device nodes of the GPUs of this machine."""
    return sorted(path for pattern in _GPU_DEVICES for path in glob(pattern) if Path(path).is_char_device())


def find_level(permissions: Permissions, what: str) -> IsolationLevel:
    """The strongest level at which a program with these permissions runs; raises if none."""
    if permissions.gpu and not gpu_devices():
        raise SandboxUnavailableError(f"{what}: this machine has no GPU.")
    probes = []
    for level in filter(lambda level: level.safe, levels()):
        if permissions.needs_namespaces and not level.namespaces:
            probes.append(LevelProbe(level, False, "it cannot allow a single display, network or GPU"))
            continue
        obstacle = _obstacle(level, permissions)
        if not obstacle:
            return level
        probes.append(LevelProbe(level, False, obstacle))
    if not sys.platform.startswith("linux"):
        raise SandboxUnavailableError(f"{what} needs Linux, or an agent on another machine: --agent http://HOST:PORT.")
    tried = "; ".join(f"{probe.level.name}: {probe.obstacle.rstrip('.')}" for probe in probes) or "no level"
    cure = probes[0].cure if probes else ""
    raise SandboxUnavailableError(f"{what}: this machine cannot isolate it ({tried}). {cure}".rstrip())


def _obstacle(level: IsolationLevel, permissions: Permissions) -> str:
    """Why a program does not run at this level; empty if it runs."""
    ours, theirs = socket.socketpair()
    command = None
    try:
        program = [sys.executable, "-I", "-S", "-c", "import os; os.write({0}, b'here')"]
        command = isolate_command(
            level, program, [theirs.fileno()], Permissions(permissions.network, permissions.gpu), {}
        )
        process = subprocess.Popen(
            command.command,
            pass_fds=command.descriptors,
            env=command.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        theirs.close()
        try:
            _, stderr = process.communicate(timeout=_PROBE_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return f"it did not start within {_PROBE_TIMEOUT:g} seconds"
        lines = [line for line in stderr.decode(errors="replace").splitlines() if line.strip()]
        ours.setblocking(False)
        with suppress(BlockingIOError):
            if ours.recv(4) == b"here":
                return ""
        return lines[-1] if lines else "the program exited without an error message"
    except (WorkerError, OSError) as error:
        return str(error)
    finally:
        ours.close()
        theirs.close()
        if command is not None:
            command.close()
