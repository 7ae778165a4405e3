"""What a task file starts by itself while it judges was written by a model: it runs in the sandbox, or not at all."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
from concurrent import futures
from pathlib import Path
from typing import Any

from proctor.code import counting
from proctor.code.execution import run_programs
from proctor.compat.bigcode.containment import refuse_while_judging
from proctor.compat.bigcode.output import with_stdout
from proctor.errors import UnknownNameError
from proctor.sandbox import Limits, Outcome, Program
from proctor.sandbox.languages import find_language

_SECONDS = 30.0  # for a program that was started without a limit


def run(command: Any, *args: Any, check: bool = False, **kwargs: Any) -> Any:
    """`subprocess.run`. While the task judges, a program in a file runs in the sandbox."""
    call = counting.current()
    if call is not None and call.of_results and (program := _program_in(command)) is not None:
        return _run_contained(command, program, check, **kwargs)
    refuse_while_judging(command)
    return subprocess.run(command, *args, check=check, **kwargs)


def call(*args: Any, **kwargs: Any) -> int:
    return int(run(*args, **kwargs).returncode)


def check_call(*args: Any, **kwargs: Any) -> int:
    return int(run(*args, **kwargs, check=True).returncode)


def check_output(*args: Any, **kwargs: Any) -> Any:
    return run(*args, **kwargs, stdout=subprocess.PIPE, check=True).stdout


def Popen(command: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N802
    refuse_while_judging(command)
    return subprocess.Popen(command, *args, **kwargs)


def system(command: str) -> int:
    refuse_while_judging(command)
    return os.system(command)


def popen(command: str, *args: Any, **kwargs: Any) -> Any:
    refuse_while_judging(command)
    return os.popen(command, *args, **kwargs)


# A metric of texts may well spread its work over processes. Where programs are judged, they would run there.


class Process(multiprocessing.Process):
    def start(self) -> None:
        refuse_while_judging("a process", only_of_programs=True)
        super().start()


def Pool(*args: Any, **kwargs: Any) -> Any:  # noqa: N802
    refuse_while_judging("processes", only_of_programs=True)
    return multiprocessing.Pool(*args, **kwargs)


def get_context(method: str | None = None) -> Any:
    return _Context(multiprocessing.get_context(method))


class _Context:
    """Another way to the same."""

    def __init__(self, theirs: Any) -> None:
        self._theirs = theirs

    def __getattr__(self, name: str) -> Any:
        if name in ("Pool", "Process"):
            refuse_while_judging("processes", only_of_programs=True)
        return getattr(self._theirs, name)


class ProcessPoolExecutor(futures.ProcessPoolExecutor):
    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        refuse_while_judging("processes", only_of_programs=True)
        return super().submit(fn, *args, **kwargs)


def _program_in(command: Any) -> Program | None:
    """The program that a command such as ["python3", "program.py"] runs."""
    words = [os.fspath(word) for word in command] if isinstance(command, list | tuple) else []
    if len(words) != 2 or not Path(words[1]).is_file():
        return None
    interpreter = Path(words[0]).name
    try:
        language = find_language("python" if interpreter.startswith("python") else interpreter).name
    except UnknownNameError:
        return None
    return Program(source=Path(words[1]).read_text(errors="replace"), language=language)


def _run_contained(
    command: Any,
    program: Program,
    check: bool,
    *,
    input: Any = None,  # noqa: A002
    timeout: float | None = None,
    **kwargs: Any,
) -> subprocess.CompletedProcess[Any]:
    stdin = input.decode(errors="replace") if isinstance(input, bytes) else input or ""
    program = Program(source=program.source, language=program.language, stdin=stdin)
    trial = run_programs([program], Limits(seconds=timeout or _SECONDS), with_stdout)[0]
    if trial.outcome == Outcome.TIMEOUT:
        raise subprocess.TimeoutExpired(command, timeout or _SECONDS)
    written: list[Any] = [trial.reading, trial.detail]
    if not any(kwargs.get(key) for key in ("text", "universal_newlines", "encoding", "errors")):
        written = [text.encode() for text in written]
    done = subprocess.CompletedProcess(command, 0 if trial.passed else 1, *written)
    if check:
        done.check_returncode()
    return done
