"""The cache: what is compiled once, for all who want it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from proctor.sandbox.compilation import CompilationError, CompileCache
from proctor.sandbox.judgement import Exchange, ProcessExit
from proctor.sandbox.languages import Language, find_language
from proctor.sandbox.toolchain import Toolchain
from proctor.sandbox.worker import WorkerError

C = find_language("c")


async def find(language: Language) -> Toolchain:
    return Toolchain(language=language, tools={}, folders=(), path="", home="")


def made(status: int) -> Exchange:
    end = ProcessExit(stopped="", status=status, wall=0.0, cpu=0.0, memory=0, stdout=0, stderr=0)
    return Exchange(report=None, end=end, stdout="", stderr="", product=b"\x02\0\0\0[]")


class Worker:
    """Does what it is told to, one thing after another."""

    def __init__(self, *results: Any) -> None:
        self.results = list(results)
        self.under_way = asyncio.Event()
        self.left = asyncio.Event()

    async def run(self, *_: Any) -> Exchange:
        self.under_way.set()
        result = self.results.pop(0)
        try:
            if result is None:
                await asyncio.Event().wait()
            if isinstance(result, Exception):
                raise result
            assert isinstance(result, Exchange)
            return result
        finally:
            await asyncio.sleep(0)  # as a worker needs its time to end
            self.left.set()


def test_a_source_is_compiled_once() -> None:
    async def compile_twice() -> None:
        worker = Worker(made(0), made(1))
        cache = CompileCache(worker.run, find)
        await asyncio.gather(cache.prepare(C, "good", 1), cache.prepare(C, "good", 1))
        for _ in range(2):
            with pytest.raises(CompilationError):
                await cache.prepare(C, "bad", 1)
        await cache.close()

    asyncio.run(compile_twice())


def test_failures_of_the_sandbox_are_not_cached() -> None:
    async def compile_again() -> None:
        cache = CompileCache(Worker(WorkerError("out of order"), made(0)).run, find)
        with pytest.raises(WorkerError):
            await cache.prepare(C, "good", 1)
        await cache.prepare(C, "good", 1)
        await cache.close()

    asyncio.run(compile_again())


def test_failed_tool_lookup_is_retried() -> None:
    async def look_twice() -> None:
        troubles = [OSError("too many open files")]

        async def find_later(language: Language) -> Toolchain:
            if troubles:
                raise troubles.pop()
            return await find(language)

        cache = CompileCache(Worker(made(0)).run, find_later)
        with pytest.raises(OSError, match="too many"):
            await cache.prepare(C, "good", 1)
        await cache.prepare(C, "good", 1)
        await cache.close()

    asyncio.run(look_twice())


def test_close_cancels_pending_compilations() -> None:
    async def give_up() -> None:
        worker = Worker(None)
        cache = CompileCache(worker.run, find)
        waiting = asyncio.create_task(cache.prepare(C, "endless", 1))
        await worker.under_way.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert not worker.left.is_set()
        await cache.close()
        assert worker.left.is_set()

    asyncio.run(give_up())
