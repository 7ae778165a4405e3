"""Records as files: JSON lines, one JSON array, or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from proctor.types import Record


def row(record: Record) -> dict[str, Any]:
    """The exported form of a record."""
    score = record.score
    built: dict[str, Any] = msgspec.to_builtins(
        {
            "id": record.sample.id,
            "index": record.sample.index,
            "epoch": record.epoch,
            "input": record.sample.input,
            "target": record.sample.target,
            "outputs": record.outputs,
            "score": score.value if score else None,
            "outcome": record.outcome,
            "answer": score.answer if score else None,
            "why": score.why if score else "",
            "error": record.error,
            "usage": record.usage,
            "timing": record.timing,
            "metadata": record.sample.metadata,
        }
    )
    return built


def flat_row(record: Record) -> dict[str, Any]:
    """One value per column, for tables."""
    return {
        "id": record.sample.id,
        "index": record.sample.index,
        "epoch": record.epoch,
        "target": record.sample.target,
        "output": record.outputs[0].text if record.outputs else None,
        "answer": record.score.answer if record.score else None,
        "score": record.score.value if record.score else None,
        "outcome": record.outcome,
        "error": record.error.message if record.error else None,
        "input_tokens": record.usage.input_tokens,
        "output_tokens": record.usage.output_tokens,
        "cost": record.usage.cost,
        "seconds": record.timing.ask,
        **{f"metadata.{key}": value for key, value in record.sample.metadata.items()},
    }


def as_jsonl(records: Iterable[Record]) -> Iterator[bytes]:
    for record in records:
        yield msgspec.json.encode(row(record)) + b"\n"


def as_json(records: Iterable[Record]) -> Iterator[bytes]:
    separator = b"["
    for record in records:
        yield separator + msgspec.json.encode(row(record))
        separator = b",\n"
    yield b"]\n" if separator != b"[" else b"[]\n"


def as_csv(records: Iterable[Record]) -> Iterator[bytes]:
    # The columns are those of the first record: all samples of a task carry the same metadata.
    writer = None
    for record in records:
        text = io.StringIO()
        flat = flat_row(record)
        if writer is None:
            columns = list(flat)
            csv.DictWriter(text, columns).writeheader()
        writer = csv.DictWriter(text, columns, extrasaction="ignore")
        writer.writerow(flat)
        yield text.getvalue().encode()


FORMATS: dict[str, Callable[[Iterable[Record]], Iterator[bytes]]] = {
    "jsonl": as_jsonl,
    "json": as_json,
    "csv": as_csv,
}
