"""Docker and Podman: whether one answers, whether it has an image, and how it is told to start a container."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterable

from msgspec import Struct

from proctor.core.errors import SandboxUnavailableError, UnknownNameError
from proctor.sandbox.layout import ENVIRONMENT, SCRATCH, SCRATCH_BYTES

ENGINES = ("docker", "podman")
# What a program may be given in a container, a compiler included.
MOST_MEMORY_MIB = 4096
MOST_PROCESSES = 1000
# What the container has: more, for those who watch over the program, its working folder and prepared files.
_MEMORY_MIB = MOST_MEMORY_MIB + (SCRATCH_BYTES >> 20) + 1024
_PROCESSES = MOST_PROCESSES + 24
# What the warden needs to give each program a user of its own and a processor, to see what it uses, to end it and to
# tidy up after it. Programs have none of them.
_CAPABILITIES = ("SETUID", "SETGID", "SYS_NICE", "SYS_PTRACE", "KILL", "DAC_OVERRIDE", "FOWNER")
_ANSWER_TIMEOUT = 60.0
_PULL_TIMEOUT = 3600.0


class ContainerEngine(Struct, frozen=True):
    name: str
    program: str
    """Where its command is."""

    @classmethod
    def find(cls, name: str) -> ContainerEngine:
        if name not in ENGINES:
            raise UnknownNameError("container engine", name, ENGINES, f"Known are {' and '.join(ENGINES)}.")
        program = shutil.which(name)
        if program is None:
            others = [other for other in ENGINES if shutil.which(other)]
            instead = f"use {others[0]}, which is" if others else "install it"
            raise SandboxUnavailableError(f"{name} is not on the PATH: {instead}.")
        return cls(name, program)

    async def provide(self, image: str) -> None:
        """Sees to it that containers can be started from this image; says what is wrong if they cannot."""
        if trouble := await self._try(_ANSWER_TIMEOUT, "info"):
            raise SandboxUnavailableError(f"{self.name} does not answer: {trouble}")
        if await self._try(_ANSWER_TIMEOUT, "image", "inspect", image) is None:
            return
        if trouble := await self._try(_PULL_TIMEOUT, "pull", image):
            raise SandboxUnavailableError(f"{self.name} has no image {image} and cannot pull it: {trouble}")

    async def remove(self, container: str) -> None:
        """Whether it is there or not, and whatever state it is in."""
        await self._try(_ANSWER_TIMEOUT, "rm", "--force", container)

    async def _try(self, seconds: float, *arguments: str) -> str | None:
        """None if it worked, else why not."""
        try:
            done = await asyncio.to_thread(
                subprocess.run,
                [self.program, *arguments],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=seconds,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"nothing came within {seconds:g} seconds"
        except OSError as error:
            return str(error)
        if done.returncode == 0:
            return None
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        return lines[-1].strip() if lines else f"it ended with exit status {done.returncode}"

    def run_command(self, image: str, container: str, folders: Iterable[str], command: list[str]) -> list[str]:
        """Starts a container that cannot reach the network or anything of this machine, and runs a command in it.

        Nothing in it can be written to but the scratch folder. The folders are there, empty, for root to fill.
        """
        program, *arguments = command
        environment = {name: value for name, value in ENVIRONMENT.items() if name != "PATH"}  # that is the image's own
        return [
            *(self.program, "run", "--rm", "--interactive", "--name", container),
            *("--pull", "never", "--log-driver", "none", "--no-healthcheck"),
            *("--network", "none", "--ipc", "none", "--read-only"),
            *self._tmpfs(SCRATCH, f"rw,exec,nosuid,nodev,size={SCRATCH_BYTES},mode=1777"),
            *self._tmpfs("/var/tmp", "ro,noexec,nosuid,nodev,size=4096,mode=755"),  # Podman makes it writable otherwise
            *(word for folder in folders for word in self._tmpfs(folder, "rw,noexec,nosuid,nodev,mode=755")),
            *("--memory", f"{_MEMORY_MIB}m", "--memory-swap", f"{_MEMORY_MIB}m", "--pids-limit", str(_PROCESSES)),
            *("--user", "0:0", "--cap-drop", "ALL"),
            *(word for capability in _CAPABILITIES for word in ("--cap-add", capability)),
            *("--security-opt", "no-new-privileges", "--workdir", SCRATCH),
            *(word for name, value in environment.items() for word in ("--env", f"{name}={value}")),
            *("--entrypoint", program, image, *arguments),
        ]

    def _tmpfs(self, place: str, options: str) -> tuple[str, str]:
        """Empty: Podman fills it with what the image has there unless it is told not to."""
        return "--tmpfs", f"{place}:{options}{',notmpcopyup' if self.name == 'podman' else ''}"
