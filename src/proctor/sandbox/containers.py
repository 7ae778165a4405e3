"""The container sandbox, for Docker and Podman: each worker is a container."""

from __future__ import annotations

import asyncio
import functools
import io
import itertools
import random
import secrets
import socket
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from proctor.core.errors import MissingFromImageError, SandboxUnavailableError, UsageError
from proctor.sandbox.engine import MOST_MEMORY_MIB, MOST_PROCESSES, ContainerEngine
from proctor.sandbox.inside.frames import FRAME, LARGEST_MESSAGE
from proctor.sandbox.languages import LANGUAGES, Language
from proctor.sandbox.layout import SCRATCH, mount_points_of
from proctor.sandbox.pool import WorkerPool
from proctor.sandbox.program import Limits, Program
from proctor.sandbox.toolchain import Toolchain, install_prefix, required_tools
from proctor.sandbox.verdict import Verdict
from proctor.sandbox.worker import SandboxWorker, WorkerError, decode

IMAGE = "python:3.11-slim"
_START_TIMEOUT = 120.0
_EXIT_TIMEOUT = 20.0
_LARGEST_CONTENT = 1 << 28
# Each worker has two UIDs: the kernel counts processes per user across containers. Rootless
# engines have no UIDs above 65535.
_FIRST_USER, _USERS = 20_000, 40_000

# A container sees no files of this machine, so the code that runs there is sent first.
_BOOT = """\
import os, sys

def read(size):
    data = b""
    while len(data) < size:
        data += os.read(0, size - len(data)) or sys.exit()
    return data

if sys.version_info < (3, 11):
    sys.exit("the image needs Python 3.11 or newer, not %d.%d" % sys.version_info[:2])
package = os.memfd_create("proctor")
os.write(package, read(int.from_bytes(read(4), "little")))
sys.path.insert(0, f"/proc/self/fd/{package}")
from proctor.sandbox.inside.bridge import main
main()
"""
COMMAND = ["python3", "-I", "-S", "-c", _BOOT]


class ContainerFeatures(Struct, frozen=True):
    """What a container provides."""

    seccomp: bool
    landlock: int
    """Its ABI version; 0 if it is not used."""
    tools: dict[str, tuple[str, str]]
    """Path and real path of each tool."""
    path: str


class ContainerWorker(SandboxWorker):
    """A worker in a container; the bridge connects it over stdin and stdout."""

    features: ContainerFeatures

    @classmethod
    async def start(cls, engine: ContainerEngine, image: str, user: int, folders: frozenset[str]) -> ContainerWorker:
        container = f"proctor-{secrets.token_hex(8)}"
        command = engine.run_command(image, container, sorted(folders), COMMAND)
        message = await asyncio.to_thread(_first_message, user, folders)
        ours, theirs = socket.socketpair()
        try:
            process = _launch(command, theirs.fileno())
        except OSError as error:
            ours.close()
            raise WorkerError(str(error)) from None
        finally:
            theirs.close()
        ours.setblocking(False)
        worker = cls(process, ours, folders)
        try:
            async with asyncio.timeout(_START_TIMEOUT):
                await worker._send(message)
                worker.features = msgspec.convert((await worker._next_message())[0], ContainerFeatures)
                await worker._next_message()  # the ready message of the supervisor
        except BaseException as error:
            await worker.kill()
            await engine.remove(container)  # it may exist without having started
            if isinstance(error, TimeoutError):
                raise WorkerError(f"no container was ready within {_START_TIMEOUT:g} seconds") from None
            raise
        return worker

    async def close(self) -> None:
        self._jobs.close()
        try:
            await asyncio.to_thread(self._process.wait, _EXIT_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reap()

    async def kill(self) -> None:
        """Kills the engine's command; the container exits when its stdin closes."""
        self._jobs.close()
        self._process.kill()
        self._reap()

    def _reap(self) -> None:
        self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()

    async def _next_message(self) -> tuple[dict[str, Any], bytes]:
        lengths = FRAME.unpack(await self._receive(FRAME.size))
        if lengths[0] > LARGEST_MESSAGE or lengths[1] > _LARGEST_CONTENT:
            raise WorkerError(f"the container sent {sum(lengths)} bytes at once")
        message, content = [await self._receive(length) for length in lengths]
        return decode(message), content

    async def _receive(self, length: int) -> bytes:
        data = bytearray(length)
        rest = memoryview(data)
        while rest:
            try:
                received = await self._loop.sock_recv_into(self._jobs, rest)
            except OSError:
                received = 0
            if not received:
                raise WorkerError(self._error_line())
            rest = rest[received:]
        return bytes(data)

    def _is_informative(self, line: str) -> bool:
        return super()._is_informative(line) and "--help" not in line


class ContainerPool(WorkerPool):
    """Containers of one image, with the languages of the image."""

    def __init__(self, engine: str, image: str = IMAGE, workers: int | None = None) -> None:
        self._engine = ContainerEngine.find(engine)
        super().__init__(f"container: {engine}, {image}", workers)
        self._image = image
        self._users = itertools.count(random.randrange(0, _USERS, 2), 2)
        self._features: ContainerFeatures | None = None

    async def open(self) -> None:
        try:
            await self._engine.ensure_image(self._image)
            await super().open()
        except BaseException as error:
            await self.close()
            if isinstance(error, WorkerError):
                message = f"{self._engine.name} cannot run programs in the image {self._image}: {error}"
                raise SandboxUnavailableError(message) from None
            raise

    async def judge(self, program: Program, limits: Limits) -> Verdict:
        if limits.memory_mib > MOST_MEMORY_MIB or limits.processes > MOST_PROCESSES:
            raise UsageError(
                f"A container gives a program {MOST_MEMORY_MIB} MiB of memory and {MOST_PROCESSES} processes at most,"
                f" not {limits.memory_mib} and {limits.processes}."
            )
        return await super().judge(program, limits)

    async def _start(self, folders: frozenset[str]) -> SandboxWorker:
        user = _FIRST_USER + next(self._users) % _USERS
        worker = await ContainerWorker.start(self._engine, self._image, user, folders)
        self._features = worker.features
        self.level = self._describe(worker.features)
        return worker

    def _describe(self, features: ContainerFeatures) -> str:
        parts = [self._engine.name, self._image, "own user"]
        parts += ["seccomp"] if features.seccomp else []
        parts += [f"Landlock {features.landlock}"] if features.landlock else []
        return f"container: {', '.join([*parts, 'limits'])}"

    async def _locate(self, language: Language) -> Toolchain:
        assert self._features is not None
        tools = self._features.tools
        words = required_tools(language)
        for word in words:
            if word not in tools:
                raise MissingFromImageError(language.name, word, self._image)
        return Toolchain(
            language=language,
            tools={word: tools[word][0] for word in words},
            folders=(),
            path=self._features.path,
            home=str(install_prefix(Path(tools[words[0]][1]))),
        )


def _launch(command: list[str], line: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=line, stdout=line, stderr=subprocess.PIPE, start_new_session=True)


def _first_message(user: int, folders: frozenset[str]) -> bytes:
    """The first message to a container: code, plan and files."""
    package = _package()
    listed, content = _read(folders)
    message = msgspec.json.encode(
        {
            "plan": {
                "namespace_backend": "none",
                "scratch": SCRATCH,
                "mount_points": mount_points_of(folders),
                "pid_namespace": False,
                "user_namespace": False,
                "test_runner_user": user,
                "program_user": user + 1,
                "readable": ["/"],
                "listable": [],
            },
            "tools": sorted({word for language in LANGUAGES for word in required_tools(language)}),
            "folders": listed,
        }
    )
    head = FRAME.pack(len(message), len(content))
    return b"".join([len(package).to_bytes(4, "little"), package, head, message, content])


@functools.cache
def _package() -> bytes:
    """The code that runs inside, as a zip archive that Python imports from."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("proctor/__init__.py", "proctor/sandbox/__init__.py"):
            archive.writestr(name, "")
        inside = Path(__file__).parent / "inside"
        for source in sorted(inside.rglob("*.py")):
            archive.write(source, f"proctor/sandbox/inside/{source.relative_to(inside)}")
    return file.getvalue()


def _read(folders: frozenset[str]) -> tuple[dict[str, list[tuple[str, int, int]]], bytes]:
    """Name, mode and size of every file in each folder, and all contents."""
    listed: dict[str, list[tuple[str, int, int]]] = {}
    contents = []
    for folder in sorted(folders):
        listed[folder] = []
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                contents.append(path.read_bytes())
                listed[folder].append((str(path.relative_to(folder)), path.stat().st_mode & 0o777, len(contents[-1])))
    return listed, b"".join(contents)
