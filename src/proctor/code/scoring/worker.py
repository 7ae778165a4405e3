"""The scoring worker: holds the task, and answers each call in its own process."""

from __future__ import annotations

import fcntl
import os
import pickle
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from typing import Any

import msgspec

from proctor.code import foreign
from proctor.code.execution import Judge, Trial, trial_of
from proctor.code.results import count_results
from proctor.code.scoring import messages
from proctor.code.task import Task
from proctor.core import loading
from proctor.core.errors import ProctorError
from proctor.sandbox import Limits, Program


def load(payload: bytes) -> Callable[[int], None]:
    """Builds the task once, before any output of a model arrives."""
    contents: messages.Contents = pickle.loads(payload)
    tempfile.gettempdir()  # cached here, not probed in every call
    _propagate_contexts()
    loading.in_scoring_process = True
    cls = foreign.find_class(contents.origin)
    assert issubclass(cls, Task)
    settings = msgspec.convert(contents.settings, cls.Settings, strict=False)
    task = cls.__new__(cls)
    if not contents.complete:
        with suppress(Exception):  # it may need files that are not here; a later access then fails
            task = cls.build(settings, contents.data)
    vars(task).update(pickle.loads(contents.state))
    task.settings, task._config, task._given.file = settings, contents.config, contents.data
    task.enter_worker()
    return partial(_answer, task)


def _propagate_contexts() -> None:
    """Copies the context (runner, rows) to threads that a task starts."""
    start = threading.Thread.start

    def start_in_context(thread: threading.Thread) -> None:
        thread.run = partial(copy_context().run, thread.run)  # type: ignore[method-assign]
        start(thread)

    threading.Thread.start = start_in_context  # type: ignore[method-assign, assignment]


def _answer(task: Task, fd: int) -> None:
    """Runs a call, in its process."""
    os.set_inheritable(fd, False)
    try:
        answer = _dispatch(task, messages.receive_trusted(fd), fd)
    except BaseException as error:
        answer = _failure(error)
    _flush()
    try:
        messages.send_plain(fd, answer)
    except (TypeError, ValueError, RecursionError) as error:  # not plain data
        messages.send_plain(fd, messages.failure(error, "", usage=False))


def _dispatch(task: Task, request: messages.Request, fd: int) -> messages.Reply:
    runner = ForwardingRunner(fd, isinstance(request, messages.CountResults))
    task.ask_for_dataset = runner.dataset
    match request:
        case messages.ReadOutputs(sample, outputs):
            return messages.GenerationTexts([task.generation(sample, output) for output in outputs])
        case messages.ScoreOutputs(sample, outputs):
            texts = [task.generation(sample, output) for output in outputs]
            try:
                with _suppress_output():
                    metrics = count_results(task, [sample.index], [list(texts)], None, runner)
            except BaseException as error:
                return messages.Scored(texts, None, _failure(error))
            return messages.Scored(texts, metrics)
        case messages.CountResults(indices, generations, references, final):
            if final:
                return messages.Counted(count_results(task, indices, generations, references, runner))
            with _suppress_output():
                return messages.Counted(count_results(task, indices, generations, references, runner))
        case messages.MakePrograms(index, generations):
            doc = task.rows()[index]
            return messages.Programs([task.program(doc, generation) for generation in generations])


class ForwardingRunner:
    """Forwards programs to the harness. Threads and forks of a call take turns."""

    def __init__(self, fd: int, remembers: bool) -> None:
        self._fd = fd
        self.remembers = remembers
        self._threads = threading.RLock()
        self._depth = 0  # judging a program may run another
        self._forks = tempfile.TemporaryFile()  # noqa: SIM115

    def run(self, programs: Sequence[Program], limits: Limits, judge: Judge = trial_of) -> list[Trial]:
        with self._turn():
            request = messages.RunPrograms(list(programs), limits, judge is not trial_of)
            messages.send_plain(self._fd, request)
            error: Exception | None = None
            while True:
                match messages.receive_trusted(self._fd):
                    case messages.Trials(trials):
                        return trials
                    case messages.ToJudge(number, verdict):
                        try:
                            trial = judge(programs[number], verdict)
                        except Exception as caught:
                            error, trial = caught, None
                        messages.send_plain(self._fd, messages.Judged(trial))
                    case messages.Abandoned():
                        raise error or RuntimeError("the programs were not run")

    def dataset(self) -> Any:
        with self._turn():
            messages.send_plain(self._fd, messages.RequestDataset())
            reply: messages.Dataset = messages.receive_trusted(self._fd)
        return pickle.loads(reply.rows)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        with self._threads:
            if self._depth == 0:
                fcntl.lockf(self._forks, fcntl.LOCK_EX)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
                if self._depth == 0:
                    fcntl.lockf(self._forks, fcntl.LOCK_UN)


@contextmanager
def _suppress_output() -> Iterator[None]:
    """Discards output, which repeats when all samples are scored together."""
    _flush()
    before = [os.dup(stream) for stream in (1, 2)]
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(null, stream)
    os.close(null)
    try:
        yield
    finally:
        _flush()
        for stream, descriptor in zip((1, 2), before, strict=True):
            os.dup2(descriptor, stream)
            os.close(descriptor)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def _failure(error: BaseException) -> messages.ScoringFailure:
    try:
        trace = "".join(traceback.format_exception(error))
    except BaseException:
        trace = ""
    return messages.failure(error, trace, isinstance(error, ProctorError))
