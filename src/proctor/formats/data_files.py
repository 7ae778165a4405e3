"""Data files: samples as JSON lines or as a Parquet table, written atomically."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from errno import EISDIR
from pathlib import Path
from typing import IO, Any

import msgspec

from proctor.core.config import user_path
from proctor.core.errors import TaskError, UsageError
from proctor.core.extras import import_extra

PARQUET_ROWS = 8192  # per row group

Write = Callable[[Iterable[bytes], IO[bytes]], None]


def shard_of(text: str, n: int) -> range:
    """The indices of shard K of M ('3/8'): consecutive parts of range(n)."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"A shard is K/M, from 1/M to M/M, as in 3/8; got {text!r}.")
    number, shards = int(match[1]), int(match[2])
    return range(n * (number - 1) // shards, n * number // shards)


def write_data(lines: Iterable[bytes], path: str) -> None:
    """Writes JSON lines in the format of the file's suffix; `-` is standard output."""
    if path == "-":
        _write_lines(lines, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    write, target = writer_for(path), user_path(path)
    # Under another name until it is complete.
    part = target.with_name(f"{target.name}.part")
    try:
        if target.is_dir():  # checked before the samples are made
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        with part.open("wb") as file:
            write(lines, file)
        os.replace(part, target)
    except OSError as error:
        raise UsageError(f"Cannot write {path}: {error.strerror}.") from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_images(
    lines: Iterable[bytes], draw: Callable[[dict[str, Any]], bytes], folder: Path, ending: str
) -> Iterator[bytes]:
    """Draws the image of each line into the folder, and adds its file name to the line."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for piece in lines:
            for line in piece.splitlines():
                row = msgspec.json.decode(line)
                row["image"] = f"{row['id']}.{ending}"
                _write_image(folder / row["image"], draw(row))
                yield msgspec.json.encode(row) + b"\n"
    except OSError as error:
        raise UsageError(f"Cannot write to {folder}: {error.strerror}.") from None


def _write_image(path: Path, data: bytes) -> None:
    if path.exists() and path.read_bytes() != data:
        raise UsageError(f"{path} is another image: use a folder of its own for each data set.")
    path.write_bytes(data)


def writer_for(path: str) -> Write:
    ending = Path(path).suffix
    if path == "-" or ending in (".jsonl", ".ndjson"):
        return _write_lines
    if ending == ".parquet":
        import_extra("pyarrow.parquet", "Writing Parquet", "parquet")  # checked before the samples are made
        return _write_parquet
    raise UsageError(f"No format for {path}: use a name that ends in .jsonl or .parquet.")


def _write_lines(lines: Iterable[bytes], file: IO[bytes]) -> None:
    file.writelines(lines)


def _write_parquet(lines: Iterable[bytes], file: IO[bytes]) -> None:
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    writer = None
    try:
        for rows in _row_groups(lines):
            table = pyarrow.Table.from_pylist(rows, schema=writer.schema if writer else None)
            if writer is None:
                writer = ParquetWriter(file, table.schema, compression="zstd")
            writer.write_table(table)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise TaskError(f"The samples do not fit one table: {error}. Write .jsonl instead.") from None
    finally:
        if writer is not None:
            writer.close()


def _row_groups(lines: Iterable[bytes]) -> Iterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    for piece in lines:
        rows += map(_table_row, piece.splitlines())
        while len(rows) >= PARQUET_ROWS:
            yield rows[:PARQUET_ROWS]
            del rows[:PARQUET_ROWS]
    yield rows


def _table_row(line: bytes) -> dict[str, Any]:
    """A row with fixed columns: objects, whose keys may differ, become JSON text."""
    row: dict[str, Any] = msgspec.json.decode(line)
    return {
        key: msgspec.json.encode(value).decode() if isinstance(value, dict) else value for key, value in row.items()
    }
