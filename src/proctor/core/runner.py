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
    BudgetExhaustedError,
    ChangedSampleError,
    ModelError,
    ProctorError,
    StoreError,
    StoreWriteError,
    TaskError,
    TooManyErrorsError,
)
from proctor.core.task import Task, mark_truncated, take_samples
from proctor.core.types import Output, Prompt, Record, Run, Sample, SampleError, Score, Status, Timing, Usage
from proctor.metrics.precision import PrecisionMonitor, SequentialTally, order_key
from proctor.metrics.summary import Tally, summarise
from proctor.store.store import Store
from proctor.store.writer import Writer

T = TypeVar("T", Output, Score)

ERROR_LIMIT, ERROR_SHARE = 20, 0.1  # the default of --max-errors
YIELD_SECONDS = 0.005  # how often a worker lets the event loop handle signals and deadlines


class Observer:
    """Receives the events of a run. This one ignores them; a progress display shows them."""

    def __enter__(self) -> Observer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def estimated(self, estimate: str) -> None:
        pass

    def started(self, run: Run, done: int) -> None:
        pass

    def recorded(self, record: Record) -> None:
        pass


class RunContext(Struct, frozen=True):
    """What a run works with, besides its candidate."""

    task: Task
    config: RunConfig
    store: Store
    observer: Observer
    budget: Budget


async def run_samples(run: Run, candidate: Candidate, context: RunContext) -> Run:
    """Runs the samples of a stored run that are not scored yet, and stores its final status."""
    started = time.monotonic()
    budget = context.budget

    def finish(status: Status, reason: str = "") -> Run:
        seconds = run.seconds + time.monotonic() - started
        provenance = run.provenance | candidate.provenance() | budget.account()
        finished = msgspec.structs.replace(run, provenance=provenance, seconds=seconds)
        return finish_run(finished, context, status, reason)

    try:
        loop = RunLoop(run, candidate, context)
        with Writer(context.store, run) as writer:
            await loop.run_all(writer)
    except BaseException as error:
        is_interrupt = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
        with suppress(StoreError, StoreWriteError, TaskError):  # report the first error
            finished = finish("interrupted" if is_interrupt else "failed", str(error))
            if isinstance(error, ProctorError):
                error.run = finished
        raise
    if budget.exhausted and loop.stopped_early:
        reason = f"{budget.reason}; raise the limit and continue: proctor resume {run.id}"
        return finish("interrupted", reason)
    return finish("done", loop.verdict)


class RunLoop:
    """One execution of a run: a few workers share one lazy queue of samples."""

    def __init__(self, run: Run, candidate: Candidate, context: RunContext) -> None:
        self._run, self._candidate = run, candidate
        self._task, self._config = context.task, context.config
        self._observer, self._budget = context.observer, context.budget
        self.stopped_early = False  # the budget left samples over
        store, until_ci = context.store, context.config.until_ci
        self._scored = store.scored(run)
        self._answered = store.answered(run)
        self._precision: PrecisionMonitor | None = None
        self._values: dict[tuple[int, int], float | None] = {}
        if until_ci is not None:
            self._precision = PrecisionMonitor(until_ci, context.config.epochs)
            self._values = _stored_values(store, run, self._scored)
        self._finished = len(self._scored)
        self._next_yield = 0.0
        self._errors = 0
        self._last_error: SampleError

    async def run_all(self, writer: Writer) -> None:
        self._observer.started(self._run, len(self._scored))
        queue = self._queue()
        active = 0

        def start_workers(workers: asyncio.TaskGroup) -> None:
            nonlocal active
            while active < self._max_samples():
                active += 1
                workers.create_task(work(workers))
                if not self._candidate.batches_requests:
                    # This worker starts the next one: if all began at once,
                    # the first answer would arrive only after the last request.
                    break

        async def work(workers: asyncio.TaskGroup) -> None:
            nonlocal active
            for sample, epoch, digest in queue:
                start_workers(workers)  # the candidate's concurrency may have grown
                try:
                    record = await self._run_sample(sample, epoch, digest, writer)
                except BudgetExhaustedError:
                    self.stopped_early = True
                    break
                self._note(record)
                if time.monotonic() >= self._next_yield:  # a model that never awaits must not block others
                    await asyncio.sleep(0)
                    self._next_yield = time.monotonic() + YIELD_SECONDS
                if active > self._max_samples():
                    break
            active -= 1

        try:
            async with self._budget.deadline(), asyncio.TaskGroup() as workers:
                start_workers(workers)
        except TimeoutError:
            self.stopped_early = True
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        if 0 < self._errors == self._finished:
            self._stop()  # the run is too short for ERROR_LIMIT, and no sample has a score

    def _max_samples(self) -> int:
        return self._task.samples_at_once(self._candidate, self._config)

    def _queue(self) -> Iterator[tuple[Sample, int, bytes]]:
        """The samples to run. A resume creates all samples again; stored ones must match."""
        for sample in self._samples():
            digest = sample_digest(sample)
            for epoch in range(self._config.epochs):
                stored = self._scored.get((sample.index, epoch))
                if stored is None:
                    if self._budget.exhausted:
                        self.stopped_early = True
                        return
                    yield sample, epoch, digest
                elif stored != digest:
                    raise ChangedSampleError(
                        f"Sample {sample.id} differs from the one that this run stored: the task "
                        "or its data changed. Start a new run."
                    )

    def _samples(self) -> Iterable[Sample]:
        """All samples; with --until-ci as many as the precision takes."""
        samples: Iterable[Sample] = take_samples(self._task, self._config)
        if self._precision is None:
            return samples
        if self._task.fixed:
            seed = self._config.seed
            samples = sorted(samples, key=lambda s: order_key(s.index, seed, fixed=True))
        return self._precision.until_reached(samples, self._values)

    def _note(self, record: Record) -> None:
        self._observer.recorded(record)
        self._count_error(record)
        if self._precision is not None:
            self._precision.add(record.sample.index, record.score.value if record.score else None)

    @property
    def verdict(self) -> str:
        """Why a run with --until-ci ended."""
        return self._precision.verdict if self._precision is not None else ""

    async def _run_sample(self, sample: Sample, epoch: int, digest: bytes, writer: Writer) -> Record:
        """Asks, judges and stores. The one place where an exception becomes a record."""
        record = self._answered.pop((sample.index, epoch), None)
        if record is None or sample_digest(record.sample) != digest:
            record = Record(sample, epoch, timing=Timing(started=time.time()))
        stage: Literal["ask", "judge"] = "ask"
        try:
            clock, done = time.perf_counter() - record.timing.ask, record.outputs
            answers = self._task.ask(sample, epoch, self._candidate, self._config, done)
            async with aclosing(answers) as outputs:
                async for output in outputs:
                    record = _with_output(record, output, time.perf_counter() - clock)
                    writer.put(record, digest)  # a crash while waiting for the next loses nothing
            if self._config.generation_only:
                return record
            stage = "judge"
            record = await self._judge(record)
        except ProctorError:
            raise  # concerns the whole run: the store is full, the server refuses the key
        except ModelError as error:
            record = _with_error(record, "model", error)
        except (Exception, SystemExit) as error:
            record = _with_error(record, stage, error)
        except asyncio.CancelledError as error:
            if _is_being_cancelled():
                raise
            record = _with_error(record, stage, error)  # only a future of the task was cancelled
        writer.put(record, digest)
        return record

    async def _judge(self, record: Record) -> Record:
        clock = time.perf_counter()
        score = await self._task.judge(record.sample, record.outputs)
        if not isinstance(score, Score):
            raise TypeError(f"{self._task.name} must return a Score, not {score!r}")
        timing = msgspec.structs.replace(record.timing, judge=time.perf_counter() - clock)
        score = mark_truncated(score, record.outputs)
        return msgspec.structs.replace(record, score=_round_trip(score, Score), timing=timing)

    def _count_error(self, record: Record) -> None:
        """Stops the run after too many errors."""
        self._finished += 1
        if record.error is None:
            return
        self._errors += 1
        self._last_error = record.error
        if self._config.max_errors is not None:
            too_many = self._errors >= self._config.max_errors
        else:
            too_many = self._errors >= ERROR_LIMIT and self._errors > ERROR_SHARE * self._finished
        if too_many:
            self._stop()

    def _stop(self) -> None:
        raise TooManyErrorsError(
            f"Stopped after {self._errors} failed samples of {self._finished}; the last: "
            f"{self._last_error.type}: {self._last_error.message}. Remove the cause, then "
            f"continue: proctor resume {self._run.id}"
        )


def finish_run(run: Run, context: RunContext, status: Status, reason: str) -> Run:
    """Stores the run with its totals and metrics, computed from the stored records."""
    task, config, store = context.task, context.config, context.store
    outcomes: Counter[str] = Counter()
    errors = outputs = truncated = 0
    usage = Usage()

    def counted_records() -> Iterator[Record]:
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
        order = partial(order_key, seed=config.seed, fixed=task.fixed)
        return SequentialTally(task.tally(), task.metric, config.until_ci, order)

    try:
        keys = (*task.group_by, *config.group_by)
        metrics, groups = summarise(counted_records(), tally, keys)
    except (Exception, SystemExit) as error:
        failure = f"{task.name} failed to sum up run {run.id}: {type(error).__name__}: {error}"
        store.save(msgspec.structs.replace(run, status="failed", reason=failure))
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
        provenance=run.provenance | {"samples_sha256": samples_sha256},
    )
    store.save(run)
    return run


class _SampleContent(Struct):
    """The fields that identify a sample: all but its cluster."""

    id: str
    index: int
    input: Prompt
    target: Any
    seed: int
    choices: tuple[str, ...]
    metadata: dict[str, Any]


_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode


def sample_digest(sample: Sample) -> bytes:
    s = sample
    content = _SampleContent(s.id, s.index, s.input, s.target, s.seed, s.choices, s.metadata)
    return hashlib.sha256(_encode_sorted(content)).digest()[:16]


def _with_output(record: Record, output: Output, seconds: float) -> Record:
    timing = Timing(record.timing.started, ask=seconds)
    return msgspec.structs.replace(record, outputs=(*record.outputs, _round_trip(output, Output)), timing=timing)


_DECODERS: dict[type, Callable[[bytes], Any]] = {kind: msgspec.json.Decoder(kind).decode for kind in (Output, Score)}


def _round_trip(value: T, kind: type[T]) -> T:
    """The value as the store will return it; raises if it cannot be stored."""
    stored: T = _DECODERS[kind](_encode(value))
    return stored


def _with_error(record: Record, kind: Literal["model", "ask", "judge"], error: BaseException) -> Record:
    where = "" if kind == "model" else "".join(traceback.format_exception(error)[-3:]).strip()
    try:
        message = str(error)
    except Exception as second:  # str() of a broken exception raises
        message = f"(its text is not available: {type(second).__name__})"
    fault = SampleError(kind, type(error).__name__, _encodable(message), _encodable(where))
    return msgspec.structs.replace(record, score=None, error=fault)


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()


def _is_being_cancelled() -> bool:
    worker = asyncio.current_task()
    return worker is not None and worker.cancelling() > 0


def _stored_values(store: Store, run: Run, scored: Container[tuple[int, int]]) -> dict[tuple[int, int], float | None]:
    """The values of the scored records, by sample and epoch."""
    columns = store.columns(run)
    rows = zip(columns.sample, columns.epoch, columns.value, strict=True)
    return {(sample, epoch): value for sample, epoch, value in rows if (sample, epoch) in scored}
