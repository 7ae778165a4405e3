"""Worker pools: the base of all sandboxes with workers, and the sandbox of this machine."""

from __future__ import annotations

import asyncio
import hashlib
from abc import abstractmethod
from typing import Any

import msgspec

from proctor.core import machine
from proctor.core.errors import MissingToolchainError, UsageError
from proctor.sandbox.compilation import CompilationError, CompileCache
from proctor.sandbox.isolation import IsolationLevel
from proctor.sandbox.judgement import Exchange, check_control, check_end, verdict_of
from proctor.sandbox.languages import Language, find_language
from proctor.sandbox.program import Limits, Program
from proctor.sandbox.sandbox import Sandbox
from proctor.sandbox.toolchain import Toolchain, locate
from proctor.sandbox.verdict import Mode, Outcome, Verdict
from proctor.sandbox.worker import LocalWorker, SandboxWorker, WorkerError

_GRACE_SECONDS = 30.0  # seconds beyond the ceiling for the supervisor to answer


class WorkerPool(Sandbox):
    """Judges programs concurrently. Replaces a failed worker, and retries its program once.

    Subclasses start workers and locate toolchains.
    """

    def __init__(self, level: str, workers: int | None = None) -> None:
        self.workers = workers or machine.cores()
        self.level = level
        self._visible: frozenset[str] = frozenset()  # folders of toolchains in use
        self._idle: asyncio.LifoQueue[SandboxWorker | None] = asyncio.LifoQueue()  # None: started on demand
        self._in_process_tests: set[bytes] = set()  # digests of tests that must run in-process
        self._compile_cache = CompileCache(self._exchange, self._locate)

    @abstractmethod
    async def _start(self, folders: frozenset[str]) -> SandboxWorker:
        """Starts a worker whose programs can read these folders, too."""

    @abstractmethod
    async def _locate(self, language: Language) -> Toolchain: ...

    async def open(self) -> None:
        try:
            for error in await asyncio.gather(*(self._add() for _ in range(self.workers)), return_exceptions=True):
                if error:
                    raise error
        except BaseException:
            await self.close()
            raise

    async def _add(self) -> None:
        self._idle.put_nowait(await self._start(frozenset()))

    async def close(self) -> None:
        await self._compile_cache.close()
        workers = [self._idle.get_nowait() for _ in range(self._idle.qsize())]
        await asyncio.gather(*(worker.close() for worker in workers if worker))

    async def judge(self, program: Program, limits: Limits) -> Verdict:
        language = find_language(program.language)
        try:
            judge = self._judge_python if language.name == "python" else self._judge_command
            verdict = await judge(program, language, limits)
            if not (verdict.passed and program.control):
                return verdict
            # A control must not fail by a timeout.
            longer = msgspec.structs.replace(limits, seconds=2 * limits.seconds)
            control = await judge(msgspec.structs.replace(program, source=program.control), language, longer)
            if control.passed and program.reference_control:
                reference = msgspec.structs.replace(program, source=program.reference_control)
                if (await judge(reference, language, longer)).passed:
                    return verdict
            return check_control(verdict, control)
        except (MissingToolchainError, WorkerError) as error:
            return Verdict(outcome=Outcome.ERROR, detail=str(error), level=self.level)

    async def _judge_python(self, program: Program, language: Language, limits: Limits) -> Verdict:
        if program.ends_with_tests and not program.tests:
            program = msgspec.structs.replace(program, tests="pass")  # an early exit then counts as one
        testing = Mode.SPLIT if program.tests else Mode.NONE
        tests = hashlib.sha256(program.tests.encode(errors="surrogatepass")).digest()
        if program.beside or tests in self._in_process_tests:
            testing = Mode.IN_PROCESS
        exchange = await self._exchange(_python_job(program, testing), limits)
        if exchange.report and exchange.report["outcome"] == "not plain":
            self._in_process_tests.add(tests)
            testing = Mode.IN_PROCESS
            exchange = await self._exchange(_python_job(program, testing), limits)
        return verdict_of(exchange, limits, self.level, language, testing)

    async def _judge_command(self, program: Program, language: Language, limits: Limits) -> Verdict:
        if program.tests:
            raise UsageError(f"Python tests cannot call a {language.name} program: append the tests to its source.")
        try:
            prepared = await self._compile_cache.prepare(
                language, program.source, limits.memory_mib, program.ends_with_tests
            )
        except CompilationError as error:
            return verdict_of(error.exchange, error.limits, self.level, language, Mode.NONE, compiling=True)
        exchange = await self._exchange(prepared.job(program.stdin), limits, prepared.contents(), prepared.folders)
        verdict = verdict_of(exchange, limits, self.level, language, Mode.NONE)
        if not program.ends_with_tests:
            return verdict
        return check_end(verdict, language, program.source, self._compile_cache.end_mark)

    async def _exchange(
        self, job: dict[str, Any], limits: Limits, blob: bytes = b"", folders: tuple[str, ...] = ()
    ) -> Exchange:
        """Runs one job on the next free worker."""
        for last in (False, True):
            worker = await self._idle.get()
            try:
                worker = await self._worker_for(worker, folders)
                async with asyncio.timeout(limits.ceiling + _GRACE_SECONDS):
                    return await worker.exchange(job, limits, blob)
            except (WorkerError, TimeoutError) as error:
                failed, worker = worker, None
                await _discard(failed)
                if last:
                    raise WorkerError(str(error) or "the sandbox did not answer") from None
            except BaseException:  # cancelled
                failed, worker = worker, None
                await _discard(failed)
                raise
            finally:
                self._idle.put_nowait(worker)
        raise AssertionError

    async def _worker_for(self, worker: SandboxWorker | None, folders: tuple[str, ...]) -> SandboxWorker:
        """A worker that can read these folders: this one, or its replacement."""
        self._visible = self._visible.union(folders)
        if worker and not set(folders) <= worker.folders:
            await worker.close()
            worker = None
        return worker or await self._start(self._visible)


class Pool(WorkerPool):
    """The sandbox of this machine, at one isolation level."""

    def __init__(self, level: IsolationLevel, workers: int | None = None) -> None:
        super().__init__(str(level), workers)
        self._isolation = level

    async def _start(self, folders: frozenset[str]) -> SandboxWorker:
        return await LocalWorker.start(self._isolation, folders)

    async def _locate(self, language: Language) -> Toolchain:
        return await asyncio.to_thread(locate, language)


async def _discard(worker: SandboxWorker | None) -> None:
    if worker:
        await worker.kill()


def _python_job(program: Program, testing: Mode) -> dict[str, Any]:
    return {
        "testing": testing,
        "source": program.source,
        "tests": program.tests,
        "prelude": program.prelude,
        "entry_point": program.entry_point,
        "stdin": program.stdin,
        "command": None,
    }
