"""Docker and Podman: finds the engine, pulls images, builds the `run` command."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterable

from msgspec import Struct

from proctor.core.errors import SandboxUnavailableError, UnknownNameError
from proctor.sandbox.layout import ENVIRONMENT, SCRATCH, SCRATCH_BYTES

ENGINES = ("docker", "podman")
# Upper limits of programs and compilers in a container.
MOST_MEMORY_MIB = 4096
MOST_PROCESSES = 1000
# Limits of the container: also for supervisor and test runner, scratch folder and prepared
# files.
_MEMORY_MIB = MOST_MEMORY_MIB + (SCRATCH_BYTES >> 20) + 1024
_PROCESSES = MOST_PROCESSES + 24
# The supervisor needs these to change users, pin, measure and kill programs and to delete
# their files. Programs have none of them.
_CAPABILITIES = ("SETUID", "SETGID", "SYS_NICE", "SYS_PTRACE", "KILL", "DAC_OVERRIDE", "FOWNER")
_ANSWER_TIMEOUT = 60.0
_PULL_TIMEOUT = 3600.0


class ContainerEngine(Struct, frozen=True):
    name: str
    program: str
    """The path of its command."""

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

    async def ensure_image(self, image: str) -> None:
        """Checks the engine and pulls the image if it is missing."""
        if trouble := await self._try(_ANSWER_TIMEOUT, "info"):
            raise SandboxUnavailableError(f"{self.name} does not answer: {trouble}")
        if await self._try(_ANSWER_TIMEOUT, "image", "inspect", image) is None:
            return
        if trouble := await self._try(_PULL_TIMEOUT, "pull", image):
            raise SandboxUnavailableError(f"{self.name} has no image {image} and cannot pull it: {trouble}")

    async def remove(self, container: str) -> None:
        """Removes a container in any state, if it exists."""
        await self._try(_ANSWER_TIMEOUT, "rm", "--force", container)

    async def _try(self, seconds: float, *arguments: str) -> str | None:
        """Runs a command of the engine; returns None, or an error message."""
        try:
            done = await asyncio.to_thread(
                subprocess.run,
                [self.program, *arguments],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=seconds,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"no answer within {seconds:g} seconds"
        except OSError as error:
            return str(error)
        if done.returncode == 0:
            return None
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        return lines[-1].strip() if lines else f"exit status {done.returncode}"

    def run_command(self, image: str, container: str, folders: Iterable[str], command: list[str]) -> list[str]:
        """The command that starts a container without network and runs a command in it.

        Only the scratch folder is writable. The folders are empty; root fills them.
        """
        program, *arguments = command
        environment = {name: value for name, value in ENVIRONMENT.items() if name != "PATH"}  # the image's PATH applies
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

    def _tmpfs(self, path: str, options: str) -> tuple[str, str]:
        """Mounts an empty tmpfs; by default Podman copies the image's files into it."""
        return "--tmpfs", f"{path}:{options}{',notmpcopyup' if self.name == 'podman' else ''}"
