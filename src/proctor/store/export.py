"""Records as files: JSON lines, one JSON array, or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from proctor.core.types import Record


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
        "output": "\n\n".join(output.text for output in record.outputs),
        "answer": record.score.answer if record.score else None,
        "score": record.score.value if record.score else None,
        "outcome": record.outcome,
        "error": record.error.message if record.error else None,
        "input_tokens": record.usage.input_tokens,
        "output_tokens": record.usage.output_tokens,
        "cost": record.usage.cost,
        "seconds": sum(output.seconds for output in record.outputs),
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
    for number, record in enumerate(records):
        text = io.StringIO()
        writer = csv.writer(text)
        columns = flat_row(record)
        if number == 0:
            writer.writerow([*columns, "metadata"])
        # As JSON in one column, because the keys of samples may differ.
        writer.writerow([*columns.values(), msgspec.json.encode(record.sample.metadata).decode()])
        yield text.getvalue().encode()


FORMATS: dict[str, Callable[[Iterable[Record]], Iterator[bytes]]] = {
    "jsonl": as_jsonl,
    "json": as_json,
    "csv": as_csv,
}
