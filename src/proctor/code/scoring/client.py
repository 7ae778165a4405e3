"""The harness side of scoring workers: calls foreign code, and runs programs for it."""

from __future__ import annotations

import asyncio
import math
import pickle
import re
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec

from proctor.code.execution import Runner, SandboxFailedError, Trial, digest, trial_of
from proctor.code.scoring import messages
from proctor.code.scoring.contents import contents_of, pickled
from proctor.code.scoring.pool import ScoringPool
from proctor.core import machine
from proctor.core.config import RunConfig
from proctor.core.errors import ProctorError, UsageError
from proctor.core.types import Output, Sample
from proctor.sandbox import Limits, Program, Verdict
from proctor.sandbox.inside import wire
from proctor.sandbox.service import CallExit, ServiceCall, ServiceWorker
from proctor.sandbox.worker import WorkerError

if TYPE_CHECKING:
    from proctor.code.task import Task

T = TypeVar("T")

_MAX_MESSAGE = 64 << 20  # bytes of a message, plus a multiple of the request
_REQUEST_FACTOR = 16
_MAX_PROGRAMS = 10_000  # per generation
_MAX_PROGRAM_SECONDS = 7200.0  # sum of their time limits, per generation
# The largest limits that a call may set for a program.
_MAX_LIMITS = Limits(
    seconds=3600, wall_seconds=7200, memory_mib=1 << 16, output_kib=1 << 20, disk_mib=1 << 14, processes=4096
)
_PROCESSES = 512
_MEMORY_MIB = 4096
_SIGNALS = {int(number) for number in signal.Signals}
_CONTROL_CHARACTERS = re.compile(r"[^\t\n\x20-\x7e\xa0-\U0010ffff]")


class TaskCodeError(Exception):
    """An error in the task's code, with its class name and message."""


class _UsageFailedError(Exception):
    """The task's code raised a usage error."""


class _UnjudgedError(Exception):
    """The call failed to make a trial of a verdict."""


class Scoring:
    """The scoring workers of one task; thread-safe."""

    def __init__(self, task: Task, config: RunConfig) -> None:
        self._task = task
        self._config = config
        max_workers = config.workers or machine.cores()
        self._threads = ThreadPoolExecutor(max_workers, thread_name_prefix="proctor-scoring")
        self._pool = ScoringPool(max_workers, partial(contents_of, task, config), unsafe=config.unsafe)

    def close(self) -> None:
        self._pool.close()
        self._threads.shutdown()

    async def in_thread(self, function: Callable[..., T], *args: Any) -> T:
        """Runs a function in a thread of this pool, which has one per worker."""
        self._pool.prepare()
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(function, *args))

    def read(self, sample: Sample, outputs: Sequence[Output]) -> list[str]:
        reply = self._call(messages.ReadOutputs(sample, tuple(outputs)), len(outputs), None)
        return _expected(reply, messages.GenerationTexts, len(outputs)).texts

    def score(
        self, sample: Sample, outputs: Sequence[Output], runner: Runner
    ) -> tuple[list[str], dict[str, float] | Exception]:
        """The generations, and their metrics or an error."""
        reply = self._call(messages.ScoreOutputs(sample, tuple(outputs)), len(outputs), runner)
        scored = _expected(reply, messages.Scored, len(outputs))
        if scored.failed is not None:
            return scored.texts, _error(scored.failed)
        return scored.texts, _metrics(scored.metrics)

    def count(
        self,
        indices: Sequence[int],
        generations: Sequence[Sequence[str]],
        references: Sequence[Any],
        runner: Runner,
        *,
        final: bool,
    ) -> dict[str, float]:
        texts = [list(of_one) for of_one in generations]
        request = messages.CountResults(tuple(indices), texts, list(references), final)
        reply = self._call(request, sum(map(len, texts)), runner)
        return _metrics(_expected(reply, messages.Counted).metrics)

    def programs(self, index: int, generations: list[str]) -> list[Program]:
        reply = self._call(messages.MakePrograms(index, generations), len(generations), None)
        return _expected(reply, messages.Programs, len(generations)).programs

    def _call(self, request: messages.Request, generations: int, runner: Runner | None) -> messages.Reply:
        """A usage error ends the run only if it also occurs with empty outputs.

        Otherwise an output of a model could end the run.
        """
        try:
            return self._attempt(request, generations, runner)
        except _UsageFailedError as failure:
            if str(failure) == self._failure_of(_with_empty_outputs(request), generations, runner):
                raise UsageError(str(failure)) from None
            raise TaskCodeError(str(failure)) from None

    def _failure_of(self, request: messages.Request, generations: int, runner: Runner | None) -> str:
        try:
            self._attempt(request, generations, runner)
        except Exception as failure:
            return str(failure)
        return ""

    def _attempt(self, request: messages.Request, generations: int, runner: Runner | None) -> messages.Reply:
        for last in (False, True):
            try:
                with self._pool.worker() as worker:
                    return self._converse(worker, request, generations, runner)
            except WorkerError as error:
                if last:
                    raise SandboxFailedError(str(error)) from None
        raise AssertionError

    def _converse(
        self, worker: ServiceWorker, request: messages.Request, generations: int, runner: Runner | None
    ) -> messages.Reply:
        limits = self._limits(generations)
        with worker.call(limits) as call:
            conversation = _Conversation(call, self._task, runner, generations)
            try:
                reply = conversation.run(request)
            except messages.InvalidMessageError as error:
                call.finish()
                raise TaskCodeError(f"its answer is not valid: {error}") from None
            except (wire.BrokenMessageError, OSError):
                _raise_exit(call.end(), limits)
            self._show(call.end())
        if isinstance(reply, messages.ScoringFailure):
            if reply.usage:
                raise _UsageFailedError(reply.message)
            raise _error(reply)
        if isinstance(reply, messages.Scored) and reply.failed is not None and reply.failed.usage:
            raise _UsageFailedError(reply.failed.message)
        return reply

    def _limits(self, generations: int) -> Limits:
        each = max(self._task.scoring_timeout, self._config.program_timeout or 0)
        return Limits(
            seconds=each * max(1, generations),
            memory_mib=max(_MEMORY_MIB, self._task.memory_mib),
            processes=_PROCESSES,
        )

    def _show(self, ended: CallExit) -> None:
        """Prints its output without control characters."""
        for text, stream in ((ended.stdout, sys.stdout), (ended.stderr, sys.stderr)):
            if text:
                stream.write(_CONTROL_CHARACTERS.sub("", text))
                stream.flush()


class _Conversation:
    """The conversation with one call, which may send anything."""

    def __init__(self, call: ServiceCall, task: Task, runner: Runner | None, generations: int) -> None:
        self._call = call
        self._task = task
        self._runner = runner
        self._fd = call.channel.fileno()
        self._programs_left = _MAX_PROGRAMS * max(1, generations)
        self._seconds_left = _MAX_PROGRAM_SECONDS * max(1, generations)
        self._most = _MAX_MESSAGE

    def run(self, request: messages.Request) -> messages.Reply:
        body = _pickled(request)
        self._most += _REQUEST_FACTOR * len(body)
        wire.send(self._fd, body)
        while True:
            match reply := self._receive():
                case messages.RunPrograms():
                    self._run(reply)
                case messages.RequestDataset():
                    messages.send_trusted(self._fd, messages.Dataset(self._dataset()))
                case messages.Judged():
                    raise messages.InvalidMessageError("a trial without a program")
                case _:
                    return reply

    def _dataset(self) -> bytes:
        try:
            return pickled(self._task.dataset)
        except ProctorError as error:
            raise _UsageFailedError(str(error)) from None

    def _receive(self) -> messages.Reply:
        return messages.receive_plain(self._fd, self._most)

    def _run(self, request: messages.RunPrograms) -> None:
        self._programs_left -= len(request.programs)
        if self._programs_left < 0:
            raise messages.InvalidMessageError("it requests too many programs")
        limits = _clamp(request.limits)
        self._seconds_left -= limits.seconds * len(request.programs)
        if self._seconds_left < 0:
            raise messages.InvalidMessageError("its programs may run for too long")
        judge = self._judged_there(request.programs) if request.judged else trial_of
        try:
            if self._runner is None:
                raise UsageError(f"{self._task.name}: only process_results may run programs.")
            with self._call.waiting():
                trials = self._runner.run(request.programs, limits, judge)
        except _UnjudgedError:
            messages.send_trusted(self._fd, messages.Abandoned())
        except ProctorError as error:
            raise _UsageFailedError(str(error)) from None
        else:
            messages.send_trusted(self._fd, messages.Trials(trials))

    def _judged_there(self, programs: list[Program]) -> Callable[[Program, Verdict], Trial]:
        numbers = {id(program): number for number, program in enumerate(programs)}

        def judge(program: Program, verdict: Verdict) -> Trial:
            own_trial = trial_of(program, verdict)
            messages.send_trusted(self._fd, messages.ToJudge(numbers[id(program)], verdict))
            with self._call.running():
                while isinstance(reply := self._receive(), messages.RunPrograms):
                    self._run(reply)  # judging may run other programs
            if not isinstance(reply, messages.Judged):
                raise messages.InvalidMessageError("a trial was expected")
            if reply.trial is None:
                raise _UnjudgedError
            if reply.trial.passed and not own_trial.passed:
                raise messages.InvalidMessageError("a failed program is reported as passed")
            return msgspec.structs.replace(reply.trial, program=digest(program), testing=own_trial.testing)

        return judge


def _pickled(request: messages.Request) -> bytes:
    try:
        return pickle.dumps(request)
    except Exception:
        if not isinstance(request, messages.CountResults):
            raise
        return pickle.dumps(msgspec.structs.replace(request, references=None))  # the task there has them, too


def _clamp(limits: Limits) -> Limits:
    """Clamps the limits to the largest ones."""
    asked, most = msgspec.structs.asdict(limits), msgspec.structs.asdict(_MAX_LIMITS)
    known = {name: value for name, value in asked.items() if value is not None}
    if not all(math.isfinite(value) and value > 0 for value in known.values()):
        raise messages.InvalidMessageError("limits must be numbers above 0")
    return Limits(**{name: min(value, most[name]) for name, value in known.items()})


def _with_empty_outputs(request: messages.Request) -> messages.Request:
    """The same request with empty outputs."""
    if isinstance(request, messages.ReadOutputs | messages.ScoreOutputs):
        blank = tuple(msgspec.structs.replace(output, text="") for output in request.outputs)
        return msgspec.structs.replace(request, outputs=blank)
    if isinstance(request, messages.CountResults):
        return msgspec.structs.replace(request, generations=[[""] * len(texts) for texts in request.generations])
    return msgspec.structs.replace(request, generations=[""] * len(request.generations))


Kind = TypeVar("Kind", messages.GenerationTexts, messages.Scored, messages.Counted, messages.Programs)


def _expected(reply: messages.Reply, kind: type[Kind], number: int | None = None) -> Kind:
    if not isinstance(reply, kind):
        raise TaskCodeError(f"it answered with {type(reply).__name__} instead of {kind.__name__}")
    given = reply.programs if isinstance(reply, messages.Programs) else getattr(reply, "texts", None)
    if number is not None and (given is None or len(given) != number):
        raise TaskCodeError(f"it answered for {len(given or ())} generations instead of {number}")
    return reply


def _metrics(found: Mapping[str, float] | None) -> dict[str, float]:
    return {name: value for name, value in (found or {}).items() if math.isfinite(value)}


def _error(failed: messages.ScoringFailure) -> TaskCodeError:
    """The error with its class name and its traceback in the call."""
    name = failed.kind if failed.kind.isidentifier() and len(failed.kind) <= 100 else "TaskCodeError"
    error: TaskCodeError = type(name, (TaskCodeError,), {})(failed.message)
    if failed.trace:
        error.add_note(failed.trace)
    return error


def _raise_exit(ended: CallExit, limits: Limits) -> NoReturn:
    """Raises the reason why a call exited without an answer."""
    match ended.end.stopped:
        case "timeout" | "wall":
            failed = "TimeoutError", f"it took more than {limits.seconds:g} seconds"
        case "memory":
            failed = "MemoryError", f"it took more than {limits.memory_mib} MiB of memory"
        case "output":
            failed = "OutputError", f"it printed more than {limits.output_kib} KiB"
        case _:
            failed = "EndedError", _exit_message(ended)
    raise _error(messages.ScoringFailure(*failed))


def _exit_message(ended: CallExit) -> str:
    status = ended.end.status
    if status is None:
        return "it closed the connection without an answer, or its answer is too long"
    if status < 0:
        return (
            f"its process was killed by {signal.Signals(-status).name}" if -status in _SIGNALS else "its process died"
        )
    return f"its process exited without an answer, with status {status}"
