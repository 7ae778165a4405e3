"""Programs run from ordinary, blocking code: how a task's own `process_results` reaches the sandbox of its run."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Struct

from proctor import sandbox as sandboxes
from proctor.core.config import RunConfig
from proctor.core.errors import UsageError
from proctor.core.task import create_sandbox
from proctor.sandbox import Limits, Outcome, Program, Sandbox, Verdict

T = TypeVar("T")
_LATER = frozenset({"ends_with_tests"})
_DERIVED = frozenset({"control", "reference_control"})  # from the same tests as the source


class SandboxFailedError(Exception):
    """Nothing can be said about a program, because the sandbox or a toolchain failed."""


class Trial(Struct, frozen=True):
    """How one program of a problem fared, as it is kept with the score."""

    program: str
    """Its digest."""
    outcome: str
    detail: str = ""
    testing: str = ""
    seconds: float = 0.0
    reading: Any = None
    """What the task read off the verdict: an answer that was printed, the time that was used."""

    @property
    def passed(self) -> bool:
        return self.outcome == Outcome.PASSED


def trial_of(program: Program, verdict: Verdict) -> Trial:
    if verdict.outcome is Outcome.ERROR:
        raise SandboxFailedError(verdict.detail)
    return Trial(digest(program), verdict.outcome, verdict.detail, verdict.testing, verdict.wall_seconds)


Judge = Callable[[Program, Verdict], Trial]
"""What a task makes of a verdict, where the sandbox alone cannot say whether a program has passed."""


Excuse = Callable[[Sequence[tuple[Program, Trial]]], Coroutine[Any, Any, None]]


class Runner(Protocol):
    def run(self, programs: Sequence[Program], limits: Limits, judge: Judge = trial_of) -> list[Trial]: ...


_RUNNER: ContextVar[Runner | None] = ContextVar("runner", default=None)


def run_programs(programs: Sequence[Program], limits: Limits, judge: Judge = trial_of) -> list[Trial]:
    """The trials of all programs: in the sandbox of the run that this belongs to, else in one of their own."""
    runner = _RUNNER.get()
    if runner is not None:
        return runner.run(programs, limits, judge)
    from proctor.core.evaluation import run_async  # with the store and all that a worker does not need

    return [judge(p, v) for p, v in zip(programs, run_async(sandboxes.run(programs, limits)), strict=True)]


def recounting() -> bool:
    """Whether no program is run now: how they fared is remembered."""
    return getattr(_RUNNER.get(), "remembers", False)


@contextmanager
def running_with(runner: Runner) -> Iterator[None]:
    token = _RUNNER.set(runner)
    try:
        yield
    finally:
        _RUNNER.reset(token)


class SandboxRunner:
    """Runs programs in an open sandbox, for a thread beside its event loop; remembers how they fared.

    All that it runs belongs to one problem. ``helpers`` are functions of its prompt: tests of unknown make use
    these, and not what a program has under their names. ``excuse`` raises where programs cannot be judged here.
    """

    def __init__(
        self, sandbox: Sandbox, seconds: float | None = None, helpers: str = "", excuse: Excuse | None = None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._sandbox = sandbox
        self._seconds = seconds
        self._helpers = helpers
        self._excuse = excuse
        self.trials: list[Trial] = []

    def run(self, programs: Sequence[Program], limits: Limits, judge: Judge = trial_of) -> list[Trial]:
        if self._seconds is not None:
            limits = msgspec.structs.replace(limits, seconds=self._seconds)
        running = sandboxes.run(map(self._with_helpers, programs), limits, sandbox=self._sandbox)
        verdicts = asyncio.run_coroutine_threadsafe(running, self._loop).result()
        trials = [judge(program, verdict) for program, verdict in zip(programs, verdicts, strict=True)]
        if self._excuse is not None:
            excusing = self._excuse(list(zip(programs, trials, strict=True)))
            asyncio.run_coroutine_threadsafe(excusing, self._loop).result()
        self.trials += trials
        return trials

    def _with_helpers(self, program: Program) -> Program:
        if not (self._helpers and program.language == "python" and program.tests) or program.prelude:
            return program
        return msgspec.structs.replace(program, prelude=self._helpers)


class ForbiddenRunner:
    """For a task that did not say that it runs programs."""

    def __init__(self, task: str) -> None:
        self._task = task

    def run(self, programs: Sequence[Program], limits: Limits, judge: Judge = trial_of) -> list[Trial]:
        raise UsageError(
            f"{self._task} runs programs without saying so: call super().__init__(requires_execution=True, ...) in it."
        )


class IsolatedRunner:
    """Runs programs in a sandbox of its own, for code that holds up the event loop of the run's."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="proctor-fresh")
        self._loop = asyncio.Runner()
        self._sandbox: Sandbox | None = None

    def __enter__(self) -> IsolatedRunner:
        return self

    def __exit__(self, *_: object) -> None:
        if self._sandbox is not None:
            self._do(self._sandbox.__aexit__(None, None, None))
        self._thread.submit(self._loop.close).result()
        self._thread.shutdown()

    def run(self, programs: Sequence[Program], limits: Limits, judge: Judge = trial_of) -> list[Trial]:
        if self._sandbox is None:
            self._sandbox = self._do(self._open())
        if self._config.program_timeout is not None:
            limits = msgspec.structs.replace(limits, seconds=self._config.program_timeout)
        verdicts = self._do(sandboxes.run(programs, limits, sandbox=self._sandbox))
        return [judge(program, verdict) for program, verdict in zip(programs, verdicts, strict=True)]

    async def _open(self) -> Sandbox:
        # Here in any case: the run's own has all of a cluster that it may have.
        return await (await create_sandbox(msgspec.structs.replace(self._config, engine="local"))).__aenter__()

    def _do(self, job: Coroutine[Any, Any, T]) -> T:
        return self._thread.submit(self._loop.run, job).result()


class CachedRunner:
    """Says again how programs fared that have been run before; the limit on their time may have been another.

    A task may make other programs of the same generations, with a comment that is drawn by lot: these are run, if there
    is somebody to run them.
    """

    remembers = True

    def __init__(self, trials: Iterable[Trial], others: Runner | None = None) -> None:
        self._trials = {trial.program: trial for trial in trials}
        self._others = others

    def run(self, programs: Sequence[Program], limits: Limits, judge: Judge = trial_of) -> list[Trial]:
        digests = [digest(program) for program in programs]
        new = {d: program for d, program in zip(digests, programs, strict=True) if d not in self._trials}
        if new:
            if self._others is None:
                raise RuntimeError("process_results runs other programs than before")
            self._trials |= zip(new, self._others.run(list(new.values()), limits, judge), strict=True)
        return [self._trials[digest] for digest in digests]


def digest(program: Program) -> str:
    """By which the trial of a program is found again."""
    return hashlib.sha256(msgspec.json.encode(_encodable(program))).hexdigest()[:24]


def _encodable(program: Program) -> dict[str, Any]:
    """A generation may hold half a character, which no JSON can.

    What came later than the digests that are kept with scores counts only where it is used.
    """
    return {
        key: value.encode(errors="surrogatepass") if isinstance(value, str) else value
        for key, value in msgspec.structs.asdict(program).items()
        if (value or key not in _LATER) and key not in _DERIVED
    }
