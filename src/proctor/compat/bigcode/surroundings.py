"""What is different for the code of a task file: where it looks for files, what it starts, who hears it."""

from __future__ import annotations

import builtins
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any

from proctor.code import counting

_TASKS = "bigcode_eval/tasks/"
_SECONDS = 30.0  # for a program that was started without a limit


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
    return tempfile.gettempdir() if call is None else call.folder


class Threads(ThreadPoolExecutor):
    """Threads that know to which run they belong."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(copy_context().run, fn, *args, **kwargs)


# What a task starts while it judges was written by a model: it runs in the sandbox, or not at all.


def run(*args: Any, check: bool = False, **kwargs: Any) -> Any:
    start = subprocess.run if counting.current() is None else _run_contained
    return start(*args, check=check, **kwargs)


def call(*args: Any, **kwargs: Any) -> int:
    return int(run(*args, **kwargs).returncode)


def check_call(*args: Any, **kwargs: Any) -> int:
    return int(run(*args, **kwargs, check=True).returncode)


def check_output(*args: Any, **kwargs: Any) -> Any:
    return run(*args, **kwargs, stdout=subprocess.PIPE, check=True).stdout


def Popen(*args: Any, **kwargs: Any) -> Any:  # noqa: N802
    return subprocess.Popen(*args, **kwargs) if counting.current() is None else _refuse(args[0])


def _run_contained(
    command: Any,
    *,
    input: Any = None,  # noqa: A002
    timeout: float | None = None,
    check: bool,
    **kwargs: Any,
) -> subprocess.CompletedProcess[Any]:
    from proctor.code.execution import run_programs
    from proctor.compat.bigcode.output import with_stdout
    from proctor.sandbox import Limits, Outcome, Program

    language, file = _program_in(command)
    texts = any(kwargs.get(key) for key in ("text", "universal_newlines", "encoding", "errors"))
    program = Program(
        source=file.read_text(errors="replace"),
        language=language,
        stdin=input.decode(errors="replace") if isinstance(input, bytes) else input or "",
    )
    trial = run_programs([program], Limits(seconds=timeout or _SECONDS), with_stdout)[0]
    if trial.outcome == Outcome.TIMEOUT:
        raise subprocess.TimeoutExpired(command, timeout or _SECONDS)
    written: list[Any] = [trial.reading, trial.detail]
    if not texts:
        written = [text.encode() for text in written]
    done = subprocess.CompletedProcess(command, 0 if trial.passed else 1, *written)
    if check:
        done.check_returncode()
    return done


def _program_in(command: Any) -> tuple[str, Path]:
    """Language and file of a command such as ["python3", "program.py"]."""
    from proctor.errors import UnknownNameError
    from proctor.sandbox.languages import find_language

    words = [os.fspath(word) for word in command] if isinstance(command, list | tuple) else []
    if len(words) != 2 or not Path(words[1]).is_file():
        _refuse(command)
    interpreter = Path(words[0]).name
    try:
        return find_language("python" if interpreter.startswith("python") else interpreter).name, Path(words[1])
    except UnknownNameError:
        _refuse(command)
        raise


def _refuse(command: Any) -> None:
    from proctor.errors import UsageError

    shown = command if isinstance(command, str) else " ".join(map(str, command))
    raise UsageError(
        f"process_results starts {shown!r}, outside the sandbox: let it run programs with "
        "proctor.code.execution.run_programs, or by a metric."
    )


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
