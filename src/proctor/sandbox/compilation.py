"""Programs of languages other than Python, made ready to run: each source is compiled once, in the sandbox."""

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
    """The source does not compile: that is a verdict on the program."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.limits = _COMPILER_LIMITS


class PreparedProgram(Struct, frozen=True):
    """What is needed to run a program: its command, and the files that go into the working folder."""

    build_steps: BuildSteps
    path: str
    folders: tuple[str, ...]
    files: list[tuple[str, int, int]]
    """Name, mode and size of each."""
    source: bytes = b""
    product: Path | None = None
    """Where the contents lie; it can be large, and there can be many."""

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
        """Made when it is needed: a harness that is killed leaves it behind."""
        return tempfile.TemporaryDirectory(prefix="proctor-")

    async def prepare(
        self, language: Language, source: str, memory_mib: int, ends_with_tests: bool = False
    ) -> PreparedProgram:
        """Programs with the same source share one compilation, also when they come at the same time."""
        if ends_with_tests:
            main = SourceNames.of(source).main if "{" in language.file else ""
            source = self.end_mark.finished(language, source, main)
        key = f"{language.name}-{memory_mib}-{hashlib.sha256(_encode(source)).hexdigest()}"
        if key not in self._programs:
            self._evict_oldest()
        return await _shared(self._programs, key, lambda: self._make(key, language, source, memory_mib))

    async def close(self) -> None:
        """Also ends what nobody waits for any more: it has a worker."""
        tasks = [*self._programs.values(), *self._extras.values(), *self._toolchains.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if "_folder" in vars(self):
            self._folder.cleanup()

    def _evict_oldest(self) -> None:
        """The same source comes again soon or not at all, and products are large."""
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
        work = PreparedProgram(build_steps, toolchain.path, folders, [(build_steps.file, 0o644, len(content))], content)
        if not build_steps.compile:
            return work
        words = tuple(word for of_one in extras.values() for word in of_one)
        compiler = toolchain.build_steps(source, _COMPILER_LIMITS.memory_mib, prepared, words)
        exchange = await self._run(_job(compiler.compile, work, collect=True), _COMPILER_LIMITS, content, folders)
        if exchange.end.status != 0 or exchange.end.stopped or not exchange.product:
            raise CompilationError(exchange)
        files, contents = _unpack(exchange.product)
        # Where programs may not change the mode of files, no compiler could mark what it made as a program.
        files = [
            (name, mode | 0o111 if f"./{name}" == build_steps.run[0] else mode, size) for name, mode, size in files
        ]
        product = Path(self._folder.name) / key
        product.write_bytes(contents)
        return PreparedProgram(build_steps, toolchain.path, folders, files, product=product)

    async def _toolchain(self, language: Language) -> tuple[Toolchain, str]:
        return await _shared(self._toolchains, language.name, lambda: self._prepare_toolchain(language))

    async def _prepare_toolchain(self, language: Language) -> tuple[Toolchain, str]:
        """Finds the tools, and lets them prepare what makes every later compilation faster."""
        toolchain = await self._locate(language)
        return toolchain, await self._prepared(toolchain, language.prepare)

    async def _extras_of(self, toolchain: Toolchain, source: str) -> dict[str, tuple[str, ...]]:
        """The folders of the libraries that a source needs, with the words by which the compiler finds them."""
        found = {}
        for pattern, extra in toolchain.language.extras.items():
            if re.search(pattern, source):
                key = f"{toolchain.language.name} {pattern}"
                folder = await _shared(self._extras, key, functools.partial(self._prepared, toolchain, extra.prepare))
                if folder != NOT_PREPARED:
                    found[folder] = tuple(word.replace("{extra}", folder) for word in extra.compile)
        return found

    async def _prepared(self, toolchain: Toolchain, script: str) -> str:
        """The folder that a script has filled; where it fails there is none, which is slower, but as right."""
        if not script:
            return NOT_PREPARED
        work = PreparedProgram(
            toolchain.preparation(script, _COMPILER_LIMITS.memory_mib), toolchain.path, toolchain.folders, []
        )
        exchange = await self._run({**work.job(), "collect": True}, _COMPILER_LIMITS, b"", work.folders)
        if exchange.end.status != 0 or exchange.end.stopped or not exchange.product:
            return NOT_PREPARED
        folder = tempfile.mkdtemp(prefix=f"prepared-{toolchain.language.name}-", dir=self._folder.name)
        os.chmod(folder, 0o755)  # the programs' users read it
        write_files(*_unpack(exchange.product), folder)
        return folder


def _shared(
    tasks: dict[str, asyncio.Task[T]], key: str, make: Callable[[], Coroutine[Any, Any, T]]
) -> asyncio.Future[T]:
    """One task for all who want the same. If it fails for a reason that may pass, the next one tries again."""

    def forget_failure(task: asyncio.Task[T]) -> None:
        failed = task.cancelled() or task.exception()
        if failed and not isinstance(failed, CompilationError | MissingToolchainError) and tasks.get(key) is task:
            del tasks[key]

    if key not in tasks:
        tasks[key] = asyncio.create_task(make())
        tasks[key].add_done_callback(forget_failure)
    return asyncio.shield(tasks[key])


def _encode(source: str) -> bytes:
    """Bytes that were no text are themselves again; of half a surrogate pair the compiler may think what it likes."""
    try:
        return source.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return source.encode(errors="surrogatepass")


def _job(command: tuple[str, ...], work: PreparedProgram, stdin: str = "", collect: bool = False) -> dict[str, Any]:
    return {
        "command": command,
        "environment": {"PATH": work.path, **work.build_steps.environment},
        "files": work.files,
        "stdin": stdin,
        "collect": collect,
    }


def _unpack(product: bytes) -> tuple[list[tuple[str, int, int]], bytes]:
    """The names of the files are the compiler's, or those of a program that it ran: any bytes will do for one."""
    size = int.from_bytes(product[:4], "little")
    return [(name, mode, length) for name, mode, length in json.loads(product[4 : 4 + size])], product[4 + size :]
