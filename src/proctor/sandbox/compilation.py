"""The compile cache: compiles each source once, in the sandbox."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from proctor.core.errors import MissingToolchainError
from proctor.sandbox.endings import EndMark
from proctor.sandbox.inside.commands import write_files
from proctor.sandbox.judgement import Exchange
from proctor.sandbox.languages import Language
from proctor.sandbox.program import Limits
from proctor.sandbox.toolchain import NOT_PREPARED, BuildSteps, SourceNames, Toolchain

_CACHE_SIZE = 200
_COMPILER_LIMITS = Limits(seconds=60.0, memory_mib=4096, processes=256, output_kib=256)

Run = Callable[..., Awaitable[Exchange]]
Locate = Callable[[Language], Awaitable[Toolchain]]
T = TypeVar("T")


class CompilationError(Exception):
    """The source does not compile, which is a verdict on the program."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.limits = _COMPILER_LIMITS


class PreparedProgram(Struct, frozen=True):
    """A program that is ready to run: its commands, and its files."""

    build_steps: BuildSteps
    path: str
    folders: tuple[str, ...]
    files: list[tuple[str, int, int]]
    """Name, mode and size of each."""
    source: bytes = b""
    product: Path | None = None
    """The compiled files, on disk: they can be large and many."""

    def job(self, stdin: str = "") -> dict[str, Any]:
        return _job(self.build_steps.run, self, stdin)

    def contents(self) -> bytes:
        return self.product.read_bytes() if self.product else self.source


class CompileCache:
    def __init__(self, run: Run, locate: Locate) -> None:
        self._run = run
        self._locate = locate
        self._toolchains: dict[str, asyncio.Task[tuple[Toolchain, str]]] = {}
        self._programs: dict[str, asyncio.Task[PreparedProgram]] = {}
        self._extras: dict[str, asyncio.Task[str]] = {}
        self.end_mark = EndMark()

    @functools.cached_property
    def _folder(self) -> tempfile.TemporaryDirectory[str]:
        """Created on demand: a harness that is killed leaves it behind."""
        return tempfile.TemporaryDirectory(prefix="proctor-")

    async def prepare(
        self, language: Language, source: str, memory_mib: int, ends_with_tests: bool = False
    ) -> PreparedProgram:
        """Compiles a source; programs with the same source share one compilation."""
        if ends_with_tests:
            main = SourceNames.of(source).main if "{" in language.file else ""
            source = self.end_mark.finished(language, source, main)
        key = f"{language.name}-{memory_mib}-{hashlib.sha256(_encode(source)).hexdigest()}"
        if key not in self._programs:
            self._evict_oldest()
        return await _shared(self._programs, key, lambda: self._make(key, language, source, memory_mib))

    async def close(self) -> None:
        """Also cancels compilations that no caller awaits: each holds a worker."""
        tasks = [*self._programs.values(), *self._extras.values(), *self._toolchains.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if "_folder" in vars(self):
            self._folder.cleanup()

    def _evict_oldest(self) -> None:
        """Evicts the oldest programs: a source repeats soon or never, and files are large."""
        done = [key for key, task in self._programs.items() if task.done()]
        for key in done[: max(0, len(self._programs) - _CACHE_SIZE)]:
            del self._programs[key]
            (Path(self._folder.name) / key).unlink(missing_ok=True)

    async def _make(self, key: str, language: Language, source: str, memory_mib: int) -> PreparedProgram:
        toolchain, prepared = await self._toolchain(language)
        extras = await self._extras_of(toolchain, source)
        build_steps = toolchain.build_steps(source, memory_mib, prepared)
        folders = (*toolchain.folders, *(folder for folder in (prepared, *extras) if folder != NOT_PREPARED))
        content = _encode(source)
        program = PreparedProgram(
            build_steps, toolchain.path, folders, [(build_steps.file, 0o644, len(content))], content
        )
        if not build_steps.compile:
            return program
        words = tuple(word for of_one in extras.values() for word in of_one)
        compiler = toolchain.build_steps(source, _COMPILER_LIMITS.memory_mib, prepared, words)
        exchange = await self._run(_job(compiler.compile, program, collect=True), _COMPILER_LIMITS, content, folders)
        if exchange.end.status != 0 or exchange.end.stopped or not exchange.product:
            raise CompilationError(exchange)
        files, contents = _unpack(exchange.product)
        # Where programs may not change file modes, compilers cannot mark executables.
        files = [
            (name, mode | 0o111 if f"./{name}" == build_steps.run[0] else mode, size) for name, mode, size in files
        ]
        product = Path(self._folder.name) / key
        product.write_bytes(contents)
        return PreparedProgram(build_steps, toolchain.path, folders, files, product=product)

    async def _toolchain(self, language: Language) -> tuple[Toolchain, str]:
        return await _shared(self._toolchains, language.name, lambda: self._prepare_toolchain(language))

    async def _prepare_toolchain(self, language: Language) -> tuple[Toolchain, str]:
        """Locates the tools, and runs the script that makes later compilations faster."""
        toolchain = await self._locate(language)
        return toolchain, await self._prepared(toolchain, language.prepare)

    async def _extras_of(self, toolchain: Toolchain, source: str) -> dict[str, tuple[str, ...]]:
        """The folders of the libraries that a source needs, with compiler arguments."""
        arguments = {}
        for pattern, extra in toolchain.language.extras.items():
            if re.search(pattern, source):
                key = f"{toolchain.language.name} {pattern}"
                folder = await _shared(self._extras, key, functools.partial(self._prepared, toolchain, extra.prepare))
                if folder != NOT_PREPARED:
                    arguments[folder] = tuple(word.replace("{extra}", folder) for word in extra.compile)
        return arguments

    async def _prepared(self, toolchain: Toolchain, script: str) -> str:
        """The folder that a script fills; NOT_PREPARED if it fails, which is only slower."""
        if not script:
            return NOT_PREPARED
        program = PreparedProgram(
            toolchain.preparation(script, _COMPILER_LIMITS.memory_mib), toolchain.path, toolchain.folders, []
        )
        exchange = await self._run({**program.job(), "collect": True}, _COMPILER_LIMITS, b"", program.folders)
        if exchange.end.status != 0 or exchange.end.stopped or not exchange.product:
            return NOT_PREPARED
        folder = tempfile.mkdtemp(prefix=f"prepared-{toolchain.language.name}-", dir=self._folder.name)
        os.chmod(folder, 0o755)  # readable for the programs' users
        write_files(*_unpack(exchange.product), folder)
        return folder


def _shared(
    tasks: dict[str, asyncio.Task[T]], key: str, make: Callable[[], Coroutine[Any, Any, T]]
) -> asyncio.Future[T]:
    """Shares one task between callers; forgets it after a temporary failure."""

    def forget_failure(task: asyncio.Task[T]) -> None:
        failed = task.cancelled() or task.exception()
        if failed and not isinstance(failed, CompilationError | MissingToolchainError) and tasks.get(key) is task:
            del tasks[key]

    if key not in tasks:
        tasks[key] = asyncio.create_task(make())
        tasks[key].add_done_callback(forget_failure)
    return asyncio.shield(tasks[key])


def _encode(source: str) -> bytes:
    """Restores bytes that did not decode; encodes other lone surrogates as they are."""
    try:
        return source.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return source.encode(errors="surrogatepass")


def _job(command: tuple[str, ...], program: PreparedProgram, stdin: str = "", collect: bool = False) -> dict[str, Any]:
    return {
        "command": command,
        "environment": {"PATH": program.path, **program.build_steps.environment},
        "files": program.files,
        "stdin": stdin,
        "collect": collect,
    }


def _unpack(product: bytes) -> tuple[list[tuple[str, int, int]], bytes]:
    """Unpacks files. Their names are untrusted and may contain any bytes."""
    size = int.from_bytes(product[:4], "little")
    return [(name, mode, length) for name, mode, length in json.loads(product[4 : 4 + size])], product[4 + size :]
