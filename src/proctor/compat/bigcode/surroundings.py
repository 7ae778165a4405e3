"""What is different for the code of a task file: where it looks for files, who hears it, to whom its threads belong."""

from __future__ import annotations

import builtins
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from multiprocessing import dummy, pool
from pathlib import Path
from typing import Any

from proctor.code import counting

_TASKS = "bigcode_eval/tasks/"


def opener(folder: Path) -> Callable[..., Any]:
    """`open` that finds files of the harness from any working directory: few-shot examples, for instance."""

    def open_for_task(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if isinstance(file, str | Path) and "r" in mode and not os.path.exists(file) and not os.path.isabs(file):
            places = [parent / file for parent in (folder, *folder.parents)]
            places.append(folder / str(file).removeprefix(_TASKS))
            file = next((place for place in places if place.exists()), file)
        return open(file, mode, *args, **kwargs)

    return open_for_task


def say(*args: Any, **kwargs: Any) -> None:
    """`print` that is heard once: `process_results` is called for each problem too, and then for all of them."""
    call = counting.current()
    if call is None or call.final:
        builtins.print(*args, **kwargs)


def gettempdir() -> str:
    """A folder of its own for each call of `process_results`: some leave their results there, and collect them."""
    call = counting.current()
    return call.folder if call is not None and call.of_results else tempfile.gettempdir()


# Threads that know to which run they belong.


class Threads(ThreadPoolExecutor):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(copy_context().run, fn, *args, **kwargs)


class Thread(threading.Thread):
    def start(self) -> None:
        _give_context(self)
        super().start()


class DummyProcess(dummy.DummyProcess):
    def start(self) -> None:
        _give_context(self)
        super().start()


class ThreadPool(pool.ThreadPool):
    @staticmethod
    def Process(ctx: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N802
        return DummyProcess(*args, **kwargs)


def _give_context(thread: threading.Thread) -> None:
    context, run = copy_context(), thread.run

    def run_in_context() -> None:
        with suppress(counting.UncontainedError):  # it is the call's already, and a thread has nobody to tell
            context.run(run)

    thread.run = run_in_context  # type: ignore[method-assign]


class tqdm:  # noqa: N801
    """A bar that is not drawn: there is one for the whole run."""

    def __init__(self, iterable: Iterable[Any] | None = None, *args: Any, **kwargs: Any) -> None:
        self._iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self._iterable or ())

    def __enter__(self) -> tqdm:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None

    @staticmethod
    def write(s: str, *args: Any, **kwargs: Any) -> None:
        say(s)


def trange(*args: int, **kwargs: Any) -> tqdm:
    return tqdm(range(*args))
