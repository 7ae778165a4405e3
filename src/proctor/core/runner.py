"""The run loop: task → samples → candidate → outputs → score → record → metrics."""

from __future__ import annotations

import asyncio
import hashlib
import time
import traceback
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import aclosing, suppress
from functools import partial
from types import TracebackType
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from proctor.core.budget import Budget
from proctor.core.candidate import Candidate
from proctor.core.config import RunConfig
from proctor.core.errors import (
    ChangedSampleError,
    HopelessRunError,
    ModelError,
    OutOfBudgetError,
    ProctorError,
    StoreError,
    StoreWriteError,
    TaskError,
)
from proctor.core.task import Task, mark_truncated, take_samples
from proctor.core.types import Output, Prompt, Record, Run, Sample, SampleError, Score, Status, Timing, Usage
from proctor.metrics.precision import PrecisionMonitor, SequentialTally, order_key
from proctor.metrics.summary import Tally, summarise
from proctor.store.store import Store
from proctor.store.writer import Writer

T = TypeVar("T", Output, Score)

HOPELESS_ERRORS, HOPELESS_SHARE = 20, 0.1  # the default of --max-errors
TURN = 0.005  # seconds of work after which the event loop sees to all else, such as signals and deadlines


class Observer:
    """Told what happens while it happens. This one keeps it to itself; a progress display does not."""

    def __enter__(self) -> Observer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def planned(self, estimate: str) -> None:
        pass

    def started(self, run: Run, done: int) -> None:
        pass

    def recorded(self, record: Record) -> None:
        pass


async def run_samples(
    run: Run,
    task: Task,
    candidate: Candidate,
    config: RunConfig,
    store: Store,
    observer: Observer,
    budget: Budget,
) -> Run:
    """Runs what is not yet done of a stored run; whatever happens, the run is left with its status."""
    started = time.monotonic()

    def close(status: Status, reason: str = "") -> Run:
        seconds = run.seconds + time.monotonic() - started
        found = msgspec.structs.replace(run, provenance=run.provenance | candidate.provenance() | budget.account())
        return close_run(found, task, config, store, status, reason, seconds)

    try:
        sitting = RunLoop(run, task, candidate, config, store, observer, budget)
        with Writer(store, run) as writer:
            await sitting.examine_all(writer)
    except BaseException as error:
        stopped_by_hand = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
        with suppress(StoreError, StoreWriteError, TaskError):  # the first error is the one to tell
            closed = close("interrupted" if stopped_by_hand else "failed", str(error))
            if isinstance(error, ProctorError):
                error.run = closed
        raise
    if budget.ended and sitting.cut_short:
        return close("interrupted", f"{budget.reason}; with more of it, proctor resume {run.id} goes on")
    return close("done", sitting.verdict)


class RunLoop:
    """One go at a run: a few workers share one lazy queue of samples."""

    def __init__(
        self,
        run: Run,
        task: Task,
        candidate: Candidate,
        config: RunConfig,
        store: Store,
        observer: Observer,
        budget: Budget,
    ) -> None:
        self._run, self._task, self._candidate, self._config, self._observer = run, task, candidate, config, observer
        self._budget = budget
        self.cut_short = False  # samples were left by the budget
        self._precision = PrecisionMonitor(config.until_ci, config.epochs) if config.until_ci is not None else None
        self._scored = store.scored(run)
        self._values = _known_values(store, run, self._scored) if config.until_ci is not None else {}
        self._answered = store.answered(run)
        self._finished = len(self._scored)
        self._turn_ends = 0.0
        self._errors = 0
        self._last_error: SampleError

    async def examine_all(self, writer: Writer) -> None:
        self._observer.started(self._run, len(self._scored))
        queue = self._queue()
        at_work = 0

        def hire(workers: asyncio.TaskGroup) -> None:
            nonlocal at_work
            while at_work < self._samples_at_once():
                at_work += 1
                workers.create_task(work(workers))
                if not self._candidate.batches_requests:
                    break  # the next is hired by this one: of those who begin together none is served before the last

        async def work(workers: asyncio.TaskGroup) -> None:
            nonlocal at_work
            for sample, epoch, digest in queue:
                hire(workers)  # the candidate may have more places than a moment ago
                try:
                    record = await self._examine(sample, epoch, digest, writer)
                except OutOfBudgetError:
                    self.cut_short = True
                    break
                self._note(record)
                if time.monotonic() >= self._turn_ends:  # a model that never waits must not starve the others
                    await asyncio.sleep(0)
                    self._turn_ends = time.monotonic() + TURN
                if at_work > self._samples_at_once():
                    break
            at_work -= 1

        try:
            async with self._budget.deadline(), asyncio.TaskGroup() as workers:
                hire(workers)
        except TimeoutError:
            self.cut_short = True
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        if 0 < self._errors == self._finished:
            self._give_up()  # an exam too short for the rule above, of which nothing could be scored

    def _samples_at_once(self) -> int:
        return self._task.samples_at_once(self._candidate, self._config)

    def _queue(self) -> Iterator[tuple[Sample, int, bytes]]:
        """Samples still to be examined. All are made again on a resume, and must be what they were."""
        for sample in self._samples():
            digest = sample_digest(sample)
            for epoch in range(self._config.epochs):
                before = self._scored.get((sample.index, epoch))
                if before is None:
                    if self._budget.ended:
                        self.cut_short = True
                        return
                    yield sample, epoch, digest
                elif before != digest:
                    raise ChangedSampleError(
                        f"Sample {sample.id} is not what it was when the run began: the task or its data has "
                        "changed. Start a new run."
                    )

    def _samples(self) -> Iterable[Sample]:
        """As many as it takes, where a precision is wanted; else all."""
        samples: Iterable[Sample] = take_samples(self._task, self._config)
        if self._precision is None:
            return samples
        if self._task.fixed:
            samples = sorted(samples, key=lambda sample: order_key(sample.index, self._config.seed, fixed=True))
        return self._precision.until_reached(samples, self._values)

    def _note(self, record: Record) -> None:
        self._observer.recorded(record)
        self._stop_if_hopeless(record)
        if self._precision is not None:
            self._precision.add(record.sample.index, record.score.value if record.score else None)

    @property
    def verdict(self) -> str:
        """How an exam that asks as many samples as it takes came to its end."""
        return self._precision.verdict if self._precision is not None else ""

    async def _examine(self, sample: Sample, epoch: int, digest: bytes, writer: Writer) -> Record:
        """Ask, judge, store. The one place where a failure becomes a record instead of an exception."""
        record = self._answered.pop((sample.index, epoch), None)
        if record is None or sample_digest(record.sample) != digest:
            record = Record(sample, epoch, timing=Timing(started=time.time()))
        stage: Literal["ask", "judge"] = "ask"
        try:
            clock, done = time.perf_counter() - record.timing.ask, record.outputs
            async with aclosing(self._task.ask(sample, epoch, self._candidate, self._config, done)) as outputs:
                async for output in outputs:
                    record = _with_output(record, output, time.perf_counter() - clock)
                    writer.put(record, digest)  # an answer is not lost while it waits for the next, or for its judge
            if self._config.generation_only:
                return record
            stage = "judge"
            record = await self._judged(record)
        except ProctorError:
            raise  # concerns the whole run: the store is full, the server refuses the key
        except ModelError as error:
            record = _failed(record, "model", error)
        except (Exception, SystemExit) as error:
            record = _failed(record, stage, error)
        except asyncio.CancelledError as error:
            if _is_being_cancelled():
                raise
            record = _failed(record, stage, error)  # something that the task awaited was, not the run
        writer.put(record, digest)
        return record

    async def _judged(self, record: Record) -> Record:
        clock = time.perf_counter()
        score = await self._task.judge(record.sample, record.outputs)
        if not isinstance(score, Score):
            raise TypeError(f"{self._task.name} must give a Score, not {score!r}")
        timing = msgspec.structs.replace(record.timing, judge=time.perf_counter() - clock)
        score = mark_truncated(score, record.outputs)
        return msgspec.structs.replace(record, score=_storable(score, Score), timing=timing)

    def _stop_if_hopeless(self, record: Record) -> None:
        self._finished += 1
        if record.error is None:
            return
        self._errors += 1
        self._last_error = record.error
        if self._config.max_errors is not None:
            hopeless = self._errors >= self._config.max_errors
        else:
            hopeless = self._errors >= HOPELESS_ERRORS and self._errors > HOPELESS_SHARE * self._finished
        if hopeless:
            self._give_up()

    def _give_up(self) -> None:
        raise HopelessRunError(
            f"Stopped after {self._errors} failed samples of {self._finished}; the last: {self._last_error.type}: "
            f"{self._last_error.message}. When the cause is mended: proctor resume {self._run.id}"
        )


def close_run(
    run: Run, task: Task, config: RunConfig, store: Store, status: Status, reason: str, seconds: float
) -> Run:
    """The run with its totals and metrics, computed from what is in the store, and stored."""
    outcomes: Counter[str] = Counter()
    errors = outputs = truncated = 0
    usage = Usage()

    def watched() -> Iterator[Record]:
        nonlocal errors, outputs, truncated, usage
        for record in store.records(run):
            errors += record.error is not None
            if record.score is not None:
                outcomes[record.score.outcome] += 1
                outputs += len(record.outputs)
                truncated += record.score.truncated
            usage += record.usage
            yield record

    def tally() -> Tally:
        if config.until_ci is None:
            return task.tally()
        place = partial(order_key, seed=config.seed, fixed=task.fixed)
        return SequentialTally(task.tally(), task.metric, config.until_ci, place)

    try:
        metrics, groups = summarise(watched(), tally, (*task.group_by, *config.group_by))
    except (Exception, SystemExit) as error:
        failure = f"{task.name} failed to sum up run {run.id}: {type(error).__name__}: {error}"
        store.save(msgspec.structs.replace(run, status="failed", reason=failure, seconds=seconds))
        raise TaskError(failure) from error
    samples_sha256 = hashlib.sha256(b"".join(store.sample_digests(run))).hexdigest()
    run = msgspec.structs.replace(
        run,
        status=status,
        reason=reason,
        n=outcomes.total(),
        errors=errors,
        outcomes=dict(sorted(outcomes.items())),
        outputs=outputs,
        truncated=truncated,
        metrics=metrics,
        groups=groups,
        usage=usage,
        seconds=seconds,
        provenance=run.provenance | {"samples_sha256": samples_sha256},
    )
    store.save(run)
    return run


class _Asked(Struct):
    """What makes a sample the same question as before; to which cluster it is counted does not."""

    id: str
    index: int
    input: Prompt
    target: Any
    seed: int
    choices: tuple[str, ...]
    metadata: dict[str, Any]


_encode, _encode_in_order = msgspec.json.Encoder().encode, msgspec.json.Encoder(order="deterministic").encode


def sample_digest(sample: Sample) -> bytes:
    asked = _Asked(sample.id, sample.index, sample.input, sample.target, sample.seed, sample.choices, sample.metadata)
    return hashlib.sha256(_encode_in_order(asked)).digest()[:16]


def _with_output(record: Record, output: Output, seconds: float) -> Record:
    timing = Timing(record.timing.started, ask=seconds)
    return msgspec.structs.replace(record, outputs=(*record.outputs, _storable(output, Output)), timing=timing)


_READ: dict[type, Callable[[bytes], Any]] = {kind: msgspec.json.Decoder(kind).decode for kind in (Output, Score)}


def _storable(value: T, kind: type[T]) -> T:
    """What a task returned, as it will be read back from the store; fails on what could not be."""
    stored: T = _READ[kind](_encode(value))
    return stored


def _failed(record: Record, kind: Literal["model", "ask", "judge"], error: BaseException) -> Record:
    where = "" if kind == "model" else "".join(traceback.format_exception(error)[-3:]).strip()
    try:
        message = str(error)
    except Exception as second:  # an exception may be broken, too
        message = f"(its text cannot be had: {type(second).__name__})"
    fault = SampleError(kind, type(error).__name__, _encodable(message), _encodable(where))
    return msgspec.structs.replace(record, score=None, error=fault)


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()


def _is_being_cancelled() -> bool:
    worker = asyncio.current_task()
    return worker is not None and worker.cancelling() > 0


def _known_values(store: Store, run: Run, scored: Container[tuple[int, int]]) -> dict[tuple[int, int], float | None]:
    """Of those that have been scored, by sample and epoch."""
    columns = store.columns(run)
    rows = zip(columns.sample, columns.epoch, columns.value, strict=True)
    return {(sample, epoch): value for sample, epoch, value in rows if (sample, epoch) in scored}
