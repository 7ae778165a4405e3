"""Synthetic runs of any size for tests of the results page, with texts that attempt injection."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

import msgspec

from proctor.core.types import Message, Output, Record, Run, Sample, SampleError, Score, Timing, Usage
from proctor.metrics.statistics import score_mean
from proctor.store.store import Store

HOSTILE = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
    "<svg onload='window.hacked = 1'></svg> [link](javascript:window.hacked=1) {{7*7}} ${7*7} \u202egnp.exe\x00\x1b[31m"
)
CUT_OFF = "<think>To add the two numbers, first"


def make_record(index: int, value: float | None, answer: str = "", words: str = "", epoch: int = 0) -> Record:
    """A record of a synthetic task; without a value it failed."""
    sample = Sample(
        id=f"made-{index}",
        index=index,
        input=(Message("system", "You are sitting an exam."), Message("user", words or f"What is {index} + {index}?")),
        target=str(2 * index),
        metadata={"odd": index % 2, "level": "easy" if index % 3 else "hard"},
    )
    output = Output(answer or str(2 * index if value else index), Usage(20, 3, 0.0001), seconds=0.25 + index % 7 / 10)
    if value is None:
        error = SampleError("model", "ModelError", "the server did not answer")
        return Record(sample, epoch, (), None, error, Timing(1.0, 0.5, 0.0))
    if answer == CUT_OFF:
        score = Score(0, "truncated", None, "the output reached its most tokens before an answer", 1)
        return Record(sample, epoch, (msgspec.structs.replace(output, finish="length"),), score, None, Timing(1.0))
    score = Score(value, "" if answer != "unreadable" else "unparsed", output.text, "" if value else "not the sum")
    return Record(sample, epoch, (output,), score, None, Timing(1.0, 0.5, 0.01))


def make_run(
    store: Store,
    run_id: str,
    n: int,
    make: Callable[[int], Record],
    *,
    candidate: str = "made/model",
    task: str = "made/sums",
    created: float = 1_700_000_000.0,
    tags: Iterable[str] = (),
) -> Run:
    """Store a run with its records and metrics."""
    run = Run(
        run_id,
        task,
        "1",
        candidate,
        {"task": task, "model": candidate, "seed": 0, "settings": {}, "tags": list(tags), "max_tokens": 64},
        {},
        created,
        total=n,
    )
    store.save(run)
    records = [make(index) for index in range(n)]
    for start in range(0, n, 5_000):
        store.write(run, [(record, _digest(record.sample)) for record in records[start : start + 5_000]])
    values = _values(records)
    counts: dict[str, int] = {}
    for record in records:
        if record.score:
            counts[record.outcome] = counts.get(record.outcome, 0) + 1
    run = msgspec.structs.replace(
        run,
        status="done",
        n=len(values),
        errors=n - len(values),
        outcomes=counts,
        outputs=sum(len(record.outputs) for record in records if record.score),
        truncated=sum(record.score.truncated for record in records if record.score),
        metrics={"accuracy": score_mean(values)},
        groups={
            "level": {
                level: {"accuracy": score_mean(_values(record for record in records if _has_level(record, level)))}
                for level in ("easy", "hard")
            }
        },
        usage=Usage(20 * n, 3 * n, 0.0001 * n),
        seconds=12.5,
    )
    store.save(run)
    return run


def _has_level(record: Record, level: str) -> bool:
    return bool(record.sample.metadata["level"] == level)


def _values(records: Iterable[Record]) -> list[float]:
    return [record.score.value for record in records if record.score and record.score.value is not None]


def _digest(sample: Sample) -> bytes:
    return hashlib.sha256(msgspec.json.encode(sample, order="deterministic")).digest()[:16]
