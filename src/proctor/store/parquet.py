"""Records as a Parquet table, written in row groups so that memory does not grow with the run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import IO, Any

import msgspec

from proctor.core.extras import import_extra
from proctor.core.types import Record, Run

GROUP = 4096  # records in a row group


def write_parquet(run: Run, records: Iterable[Record], file: IO[bytes]) -> None:
    """Write a row per record; the file's metadata has the run as JSON under the key `proctor`."""
    parquet = import_extra("pyarrow.parquet", "Writing Parquet", "parquet")
    from pyarrow import Table

    schema = _schema().with_metadata({"proctor": msgspec.json.encode(run)})
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for rows in _groups(records):
            writer.write_table(Table.from_pylist(rows, schema=schema))


def _schema() -> Any:
    import pyarrow as pa

    output = pa.struct(
        {
            "text": pa.string(),
            "finish": pa.string(),
            "seconds": pa.float64(),
            "attempts": pa.int32(),
            "cached": pa.bool_(),
            "input_tokens": pa.int64(),
            "output_tokens": pa.int64(),
            "cost": pa.float64(),
        }
    )
    error = pa.struct({"kind": pa.string(), "type": pa.string(), "message": pa.string(), "where": pa.string()})
    return pa.schema(
        {
            "id": pa.string(),
            "index": pa.int64(),
            "epoch": pa.int32(),
            "cluster": pa.string(),
            "input": pa.string(),
            "target": pa.string(),
            "outputs": pa.list_(output),
            "score": pa.float64(),
            "outcome": pa.string(),
            "answer": pa.string(),
            "why": pa.string(),
            "error": error,
            "input_tokens": pa.int64(),
            "output_tokens": pa.int64(),
            "cost": pa.float64(),
            "started": pa.timestamp("us", tz="UTC"),
            "ask_seconds": pa.float64(),
            "judge_seconds": pa.float64(),
            "metadata": pa.string(),
        }
    )


def _groups(records: Iterable[Record]) -> Iterator[list[dict[str, Any]]]:
    rows = map(_row, records)
    while group := list(islice(rows, GROUP)):
        yield group


def _row(record: Record) -> dict[str, Any]:
    sample, score, usage = record.sample, record.score, record.usage
    return {
        "id": sample.id,
        "index": sample.index,
        "epoch": record.epoch,
        "cluster": sample.cluster,
        "input": _as_text(sample.input),
        "target": _as_text(sample.target),
        "outputs": [
            {
                "text": output.text,
                "finish": output.finish,
                "seconds": output.seconds,
                "attempts": output.attempts,
                "cached": output.cached,
                "input_tokens": output.usage.input_tokens,
                "output_tokens": output.usage.output_tokens,
                "cost": output.usage.cost,
            }
            for output in record.outputs
        ],
        "score": score.value if score else None,
        "outcome": record.outcome,
        "answer": _as_text(score.answer) if score else None,
        "why": score.why if score else None,
        "error": msgspec.to_builtins(record.error),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost": usage.cost,
        "started": datetime.fromtimestamp(record.timing.started, UTC) if record.timing.started else None,
        "ask_seconds": record.timing.ask,
        "judge_seconds": record.timing.judge,
        "metadata": _as_text(sample.metadata),
    }


def _as_text(value: Any) -> str | None:
    """Text as it is, other values as JSON."""
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
