"""The run loop: task → samples → candidate → outputs → score → record → metrics."""

from __future__ import annotations

import asyncio
import hashlib
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Literal, Protocol

import msgspec

from proctor.config import RunConfig
from proctor.errors import HopelessRunError, ModelError, ProctorError, StoreWriteError, TaskError
from proctor.metrics.summary import summarise
from proctor.models.model import Model
from proctor.store.sqlite import Store
from proctor.store.writer import Writer
from proctor.task import Task
from proctor.types import Output, Record, Run, Sample, SampleError, Score, Status, Timing, Usage

Outputs = tuple[Output, ...]
_decode_sample = msgspec.json.Decoder(Sample).decode

HOPELESS_ERRORS, HOPELESS_SHARE = 20, 0.1  # the default of --max-errors


class Observer(Protocol):
    """Told what happens while it happens: a progress display."""

    def started(self, run: Run, done: int) -> None: ...

    def recorded(self, record: Record) -> None: ...


async def run_exam(run: Run, task: Task, model: Model, config: RunConfig, store: Store, observer: Observer) -> Run:
    """Runs what is not yet done of a stored run; whatever happens, the run is left with its status."""
    started = time.monotonic()

    def close(status: Status, reason: str = "") -> Run:
        seconds = run.seconds + time.monotonic() - started
        return close_run(run, task, config, store, status, reason, seconds)

    try:
        sitting = Sitting(run, task, model, config, store, observer)
        with Writer(store, run) as writer:
            await sitting.examine_all(writer)
    except BaseException as error:
        stopped_by_hand = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
        with suppress(StoreWriteError, TaskError):  # the first error is the one to tell
            close("interrupted" if stopped_by_hand else "failed", str(error))
        raise
    return close("done")


class Sitting:
    """One go at a run: a few workers share one lazy queue of samples."""

    def __init__(self, run: Run, task: Task, model: Model, config: RunConfig, store: Store, observer: Observer) -> None:
        self._run, self._task, self._model, self._config, self._observer = run, task, model, config, observer
        self._scored = store.scored(run)
        self._answered = store.answered(run)
        self._finished = len(self._scored)
        self._errors = 0

    async def examine_all(self, writer: Writer) -> None:
        self._observer.started(self._run, len(self._scored))
        queue = self._queue()

        async def work() -> None:
            for sample, epoch, digest in queue:
                record = await self._examine(sample, epoch, digest, writer)
                self._observer.recorded(record)
                self._stop_if_hopeless(record)
                await asyncio.sleep(0)  # a model that never waits must not starve the others

        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(self._config.concurrency):
                    workers.create_task(work())
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None

    def _queue(self) -> Iterator[tuple[Sample, int, bytes]]:
        """Samples still to be examined. All are made again on a resume, and must be what they were."""
        last = -1
        try:
            for sample in self._task.samples(self._config):
                if not isinstance(sample, Sample):
                    raise TaskError(f"{self._task.name}: {sample!r} is not a Sample.")
                digest = sample_digest(sample)
                if sample.index <= last:
                    raise TaskError(f"{self._task.name}: sample {sample.id} has index {sample.index} after {last}.")
                last = sample.index
                for epoch in range(self._config.epochs):
                    before = self._scored.get((sample.index, epoch))
                    if before is None:
                        yield sample, epoch, digest
                    elif before != digest:
                        raise TaskError(
                            f"Sample {sample.id} is not what it was when the run began: the task or its data has "
                            "changed. Start a new run."
                        )
        except ProctorError:
            raise
        except (Exception, SystemExit) as error:
            raise TaskError(f"{self._task.name} failed to make its next sample: {_describe(error)}") from error

    async def _examine(self, sample: Sample, epoch: int, digest: bytes, writer: Writer) -> Record:
        """Ask, judge, store. The one place where a failure becomes a record instead of an exception."""
        record = self._answered.pop((sample.index, epoch), None)
        if record is None or sample_digest(record.sample) != digest:
            record = Record(sample, epoch, timing=Timing(started=time.time()))
        stage: Literal["ask", "judge"] = "ask"
        try:
            if not record.outputs:
                record = await self._asked(record)
                writer.put(record, digest)  # an answer is not lost while it waits for its judge
            stage = "judge"
            record = await self._judged(record)
        except ProctorError:
            raise  # concerns the whole run: the store is full, the server refuses the key
        except ModelError as error:
            record = _failed(record, SampleError("model", type(error).__name__, str(error)))
        except (Exception, SystemExit) as error:
            where = "".join(traceback.format_exception(error)[-3:]).strip()
            record = _failed(record, SampleError(stage, type(error).__name__, str(error), where))
        writer.put(record, digest)
        return record

    async def _asked(self, record: Record) -> Record:
        clock = time.perf_counter()
        outputs = _storable(await self._task.ask(record.sample, record.epoch, self._model, self._config), Outputs)
        timing = Timing(record.timing.started, ask=time.perf_counter() - clock)
        return msgspec.structs.replace(record, outputs=outputs, timing=timing)

    async def _judged(self, record: Record) -> Record:
        clock = time.perf_counter()
        score = await self._task.judge(record.sample, record.outputs)
        if not isinstance(score, Score):
            raise TypeError(f"{self._task.name} must give a Score, not {score!r}")
        score = _storable(score, Score)
        timing = msgspec.structs.replace(record.timing, judge=time.perf_counter() - clock)
        return msgspec.structs.replace(record, score=score, timing=timing)

    def _stop_if_hopeless(self, record: Record) -> None:
        self._finished += 1
        if record.error is None:
            return
        self._errors += 1
        if self._config.max_errors is not None:
            hopeless = self._errors >= self._config.max_errors
        else:
            hopeless = self._errors >= HOPELESS_ERRORS and self._errors > HOPELESS_SHARE * self._finished
        if hopeless:
            raise HopelessRunError(
                f"Stopped after {self._errors} failed samples of {self._finished}; the last: {record.error.type}: "
                f"{record.error.message}. When the cause is mended: proctor resume {self._run.id}"
            )


def close_run(
    run: Run, task: Task, config: RunConfig, store: Store, status: Status, reason: str, seconds: float
) -> Run:
    """The run with its totals and metrics, computed from what is in the store, and stored."""
    outcomes: Counter[str] = Counter()
    usage = Usage()
    asked = hashlib.sha256()

    def watched() -> Iterator[Record]:
        nonlocal usage
        for record in store.records(run):
            outcomes[record.outcome] += 1
            usage += record.usage
            asked.update(sample_digest(record.sample))
            yield record

    try:
        metrics, groups = summarise(watched(), task.tally, (*task.group_by, *config.group_by))
    except (Exception, SystemExit) as error:
        failure = f"{task.name} failed to sum up run {run.id}: {_describe(error)}"
        store.save(msgspec.structs.replace(run, status="failed", reason=failure, seconds=seconds))
        raise TaskError(failure) from error
    errors = outcomes.pop("error", 0)
    outcomes.pop("answered", None)
    run = msgspec.structs.replace(
        run,
        status=status,
        reason=reason,
        n=outcomes.total(),
        errors=errors,
        outcomes=dict(sorted(outcomes.items())),
        metrics=metrics,
        groups=groups,
        usage=usage,
        seconds=seconds,
        provenance=run.provenance | {"samples_sha256": asked.hexdigest()},
    )
    store.save(run)
    return run


def sample_digest(sample: Sample) -> bytes:
    """Tells samples apart; refuses one that could not be read back from the store."""
    encoded = msgspec.json.encode(sample, order="deterministic")
    _decode_sample(encoded)
    return hashlib.sha256(encoded).digest()[:16]


def _storable(value: Any, kind: Any) -> Any:
    """What a task returned, as it will be read back from the store; fails on what could not be."""
    return msgspec.json.decode(msgspec.json.encode(value), type=kind)


def _failed(record: Record, error: SampleError) -> Record:
    return msgspec.structs.replace(record, score=None, error=error)


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
