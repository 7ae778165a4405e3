"""Behind the walls: has the task, and answers calls about what models wrote, each in a process of its own."""

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
    """Makes the task once, for all calls. Nothing that a model wrote is here yet."""
    contents: messages.Contents = pickle.loads(payload)
    tempfile.gettempdir()  # which tries folders out, and else would do so in every call
    _hand_on_contexts()
    loading.in_scoring_process = True
    cls = foreign.find_class(contents.origin)
    assert issubclass(cls, Task)
    settings = msgspec.convert(contents.settings, cls.Settings, strict=False)
    task = cls.__new__(cls)
    if not contents.complete:
        with suppress(Exception):  # it may want what is not here; what it has not made is missed when it is needed
            task = cls.build(settings, contents.data)
    vars(task).update(pickle.loads(contents.state))
    task.settings, task._config, task._given.file = settings, contents.config, contents.data
    task.enter_worker()
    return partial(_answer, task)


def _hand_on_contexts() -> None:
    """Threads that a task starts work for the same call: they shall find the runner and the rows of it."""
    start = threading.Thread.start

    def start_in_context(thread: threading.Thread) -> None:
        thread.run = partial(copy_context().run, thread.run)  # type: ignore[method-assign]
        start(thread)

    threading.Thread.start = start_in_context  # type: ignore[method-assign, assignment]


def _answer(task: Task, line: int) -> None:
    """In the process of the call."""
    os.set_inheritable(line, False)
    try:
        answer = _perform(task, messages.receive_trusted(line), line)
    except BaseException as error:
        answer = _failure(error)
    _flush()
    try:
        messages.send_plain(line, answer)
    except (TypeError, ValueError, RecursionError) as error:  # some of it is not plain data
        messages.send_plain(line, messages.failure(error, "", usage=False))


def _perform(task: Task, request: messages.Request, line: int) -> messages.Reply:
    runner = ForwardingRunner(line, isinstance(request, messages.CountResults))
    task.ask_for_dataset = runner.dataset
    match request:
        case messages.ReadOutputs(sample, outputs):
            return messages.GenerationTexts([task.generation(sample, output) for output in outputs])
        case messages.ScoreOutputs(sample, outputs):
            texts = [task.generation(sample, output) for output in outputs]
            try:
                with _silenced():
                    metrics = count_results(task, [sample.index], [list(texts)], None, runner)
            except BaseException as error:
                return messages.Scored(texts, None, _failure(error))
            return messages.Scored(texts, metrics)
        case messages.CountResults(indices, generations, references, final):
            if final:
                return messages.Counted(count_results(task, indices, generations, references, runner))
            with _silenced():
                return messages.Counted(count_results(task, indices, generations, references, runner))
        case messages.MakePrograms(index, generations):
            doc = task.rows()[index]
            return messages.Programs([task.program(doc, generation) for generation in generations])


class ForwardingRunner:
    """Has the harness run programs, in the sandbox of its run. Threads and forks of a call take turns."""

    def __init__(self, line: int, remembers: bool) -> None:
        self._line = line
        self.remembers = remembers
        self._threads = threading.RLock()
        self._depth = 0  # one program may have to be run to judge another
        self._forks = tempfile.TemporaryFile()  # noqa: SIM115

    def run(self, programs: Sequence[Program], limits: Limits, judge: Judge = trial_of) -> list[Trial]:
        with self._turn():
            request = messages.RunPrograms(list(programs), limits, judge is not trial_of)
            messages.send_plain(self._line, request)
            error: Exception | None = None
            while True:
                match messages.receive_trusted(self._line):
                    case messages.Trials(trials):
                        return trials
                    case messages.ToJudge(number, verdict):
                        try:
                            trial = judge(programs[number], verdict)
                        except Exception as caught:
                            error, trial = caught, None
                        messages.send_plain(self._line, messages.Judged(trial))
                    case messages.Abandoned():
                        raise error or RuntimeError("the programs were not run")

    def dataset(self) -> Any:
        with self._turn():
            messages.send_plain(self._line, messages.WantDataset())
            reply: messages.Dataset = messages.receive_trusted(self._line)
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
def _silenced() -> Iterator[None]:
    """What is printed meanwhile goes nowhere: it is printed again when all problems are counted together."""
    _flush()
    before = [os.dup(stream) for stream in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)
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
