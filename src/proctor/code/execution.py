"""Runs programs from blocking code, such as a task's `process_results`."""

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
_ADDED_FIELDS = frozenset({"ends_with_tests"})
_DERIVED_FIELDS = frozenset({"control", "reference_control"})  # from the same tests as the source


class SandboxFailedError(Exception):
    """The sandbox or a toolchain failed, so there is no verdict on a program."""


class Trial(Struct, frozen=True):
    """The result of one program of a sample, as stored with the score."""

    program: str
    """The digest of the program."""
    outcome: str
    detail: str = ""
    testing: str = ""
    seconds: float = 0.0
    reading: Any = None
    """What the task read from the verdict, such as printed values or times."""

    @property
    def passed(self) -> bool:
        return self.outcome == Outcome.PASSED


def trial_of(program: Program, verdict: Verdict) -> Trial:
    if verdict.outcome is Outcome.ERROR:
        raise SandboxFailedError(verdict.detail)
    return Trial(digest(program), verdict.outcome, verdict.detail, verdict.testing, verdict.wall_seconds)


Judge = Callable[[Program, Verdict], Trial]
"""Makes a trial of a verdict, if the task decides whether a program has passed."""


EnvironmentCheck = Callable[[Sequence[tuple[Program, Trial]]], Coroutine[Any, Any, None]]


class Runner(Protocol):
    def run(self, programs: Sequence[Program], limits: Limits, judge: Judge = trial_of) -> list[Trial]: ...


_RUNNER: ContextVar[Runner | None] = ContextVar("runner", default=None)


def run_programs(programs: Sequence[Program], limits: Limits, judge: Judge = trial_of) -> list[Trial]:
    """Runs programs in the sandbox of the current run, else in a new one."""
    runner = _RUNNER.get()
    if runner is not None:
        return runner.run(programs, limits, judge)
    from proctor.core.evaluation import run_async  # imports the store, which workers do not need

    return [judge(p, v) for p, v in zip(programs, run_async(sandboxes.run(programs, limits)), strict=True)]


def is_replaying() -> bool:
    """Whether the current runner replays stored trials."""
    return getattr(_RUNNER.get(), "remembers", False)


@contextmanager
def use_runner(runner: Runner) -> Iterator[None]:
    token = _RUNNER.set(runner)
    try:
        yield
    finally:
        _RUNNER.reset(token)


class SandboxRunner:
    """Runs programs of one sample in an open sandbox, from another thread; collects trials.

    ``helpers`` are functions of the prompt, which tests of task files use instead of the
    program's. ``check`` raises if the environment lacks what the benchmark needs.
    """

    def __init__(
        self, sandbox: Sandbox, seconds: float | None = None, helpers: str = "", check: EnvironmentCheck | None = None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._sandbox = sandbox
        self._seconds = seconds
        self._helpers = helpers
        self._check = check
        self.trials: list[Trial] = []

    def run(self, programs: Sequence[Program], limits: Limits, judge: Judge = trial_of) -> list[Trial]:
        if self._seconds is not None:
            limits = msgspec.structs.replace(limits, seconds=self._seconds)
        running = sandboxes.run(map(self._with_helpers, programs), limits, sandbox=self._sandbox)
        verdicts = asyncio.run_coroutine_threadsafe(running, self._loop).result()
        trials = [judge(program, verdict) for program, verdict in zip(programs, verdicts, strict=True)]
        if self._check is not None:
            checking = self._check(list(zip(programs, trials, strict=True)))
            asyncio.run_coroutine_threadsafe(checking, self._loop).result()
        self.trials += trials
        return trials

    def _with_helpers(self, program: Program) -> Program:
        if not (self._helpers and program.language == "python" and program.tests) or program.prelude:
            return program
        return msgspec.structs.replace(program, prelude=self._helpers)


class ForbiddenRunner:
    """Refuses programs of a task without `requires_execution`."""

    def __init__(self, task: str) -> None:
        self._task = task

    def run(self, programs: Sequence[Program], limits: Limits, judge: Judge = trial_of) -> list[Trial]:
        raise UsageError(
            f"{self._task} runs programs without requires_execution: call "
            "super().__init__(requires_execution=True, ...) in it."
        )


class IsolatedRunner:
    """Runs programs in its own sandbox, for code that blocks the event loop of the run."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="proctor-isolated")
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
        # Local in any case: the sandbox of the run uses the whole cluster.
        return await (await create_sandbox(msgspec.structs.replace(self._config, engine="local"))).__aenter__()

    def _do(self, job: Coroutine[Any, Any, T]) -> T:
        return self._thread.submit(self._loop.run, job).result()


class CachedRunner:
    """Replays stored trials, also if the time limit has changed.

    A task may make other programs of the same generations, for instance with a random
    comment: `others` runs these.
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
    """The key of the trial of a program."""
    return hashlib.sha256(msgspec.json.encode(_encodable(program))).hexdigest()[:24]


def _encodable(program: Program) -> dict[str, Any]:
    """The fields of a program; a generation may contain lone surrogates.

    Fields that are newer than stored digests count only if they are set.
    """
    return {
        key: value.encode(errors="surrogatepass") if isinstance(value, str) else value
        for key, value in msgspec.structs.asdict(program).items()
        if (value or key not in _ADDED_FIELDS) and key not in _DERIVED_FIELDS
    }
