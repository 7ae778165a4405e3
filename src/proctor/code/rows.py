"""Loads the rows of a data set: from the hub, a file, or an installed package."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from proctor.core.config import user_path
from proctor.core.errors import MissingDataError, UsageError
from proctor.core.extras import import_extra

Row = dict[str, Any]
Rows = Sequence[Row]
T = TypeVar("T")


class GivenRows:
    """A data file that replaces the data set of a task."""

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.was_loaded = False
        self.loaded: dict[str, Any] = {}
        """Data sets loaded from the hub, for workers without a network."""

    @contextmanager
    def offered(self) -> Iterator[None]:
        token = _GIVEN.set(self)
        try:
            yield
        finally:
            _GIVEN.reset(token)


_GIVEN: ContextVar[GivenRows | None] = ContextVar("given", default=None)
_ALONE: ContextVar[tuple[str | None, Rows]] = ContextVar("alone", default=(None, ()))


@contextmanager
def alone(path: str | None, rows: Rows) -> Iterator[None]:
    """Restricts the data set at this path to these rows."""
    token = _ALONE.set((path, rows))
    try:
        yield
    finally:
        _ALONE.reset(token)


class Table(Sequence[Any]):
    """Rows with the most used methods of `datasets.Dataset`; delegates the others to it."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = list(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def __getitem__(self, key: Any) -> Any:
        """A row by index, a column by name; several rows as a dict of columns."""
        if isinstance(key, str):
            if key not in self.column_names:
                raise KeyError(key)
            return [row.get(key) for row in self._rows]
        if isinstance(key, slice):
            key = range(len(self))[key]
        if isinstance(key, Iterable):
            return self.select(key).to_dict()
        return self._rows[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # looked up by copy and pickle
            raise AttributeError(name)
        try:
            datasets = import_extra("datasets", f"A data set's {name!r}, for rows that come from a file,", "hub")
        except UsageError as error:
            raise AttributeError(str(error)) from None
        return getattr(datasets.Dataset.from_list(self._rows), name)

    @cached_property
    def column_names(self) -> list[str]:
        return list(dict.fromkeys(name for row in self._rows for name in row))

    @property
    def num_rows(self) -> int:
        return len(self)

    def select(self, indices: Iterable[int]) -> Table:
        return Table(self._rows[index] for index in indices)

    def filter(self, function: Callable[..., Any], with_indices: bool = False, **_: Any) -> Table:
        return Table(row for index, row in enumerate(self._rows) if function(row, *([index] if with_indices else [])))

    def map(self, function: Callable[..., Row], with_indices: bool = False, **_: Any) -> Table:
        return Table(
            {**row, **function(dict(row), *([index] if with_indices else []))} for index, row in enumerate(self._rows)
        )

    def shuffle(self, seed: int | None = None, **_: Any) -> Table:
        return Table(random.Random(seed).sample(self._rows, len(self)))

    def sort(self, column_names: str, reverse: bool = False, **_: Any) -> Table:
        return Table(sorted(self._rows, key=lambda row: row[column_names], reverse=reverse))

    def add_column(self, name: str, column: Iterable[Any], **_: Any) -> Table:
        return Table({**row, name: value} for row, value in zip(self._rows, column, strict=True))

    def to_list(self) -> list[Row]:
        return list(self._rows)

    def to_dict(self) -> dict[str, list[Any]]:
        return {name: self[name] for name in self.column_names}


def pick(rows: Rows, indices: Sequence[int]) -> Rows:
    """Selects rows, keeping the type of the data set."""
    picked: Rows = rows.select(indices) if hasattr(rows, "select") else [rows[index] for index in indices]
    return picked


class Splits(dict[str, Rows]):
    """Rows without splits: each split has all of them."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(test=rows)
        self._rows = rows

    def __missing__(self, split: str) -> Rows:
        return self._rows


def load_dataset(path: str | None, name: str | None = None, split: str | None = None, **options: Any) -> Any:
    """Loads one split, or all splits by name, from the --data file or the hub."""
    offered = _GIVEN.get()
    alone_in, few = _ALONE.get()
    if path is not None and path == alone_in:
        return few if split else Splits(few)
    if offered is not None and offered.file is not None:
        offered.was_loaded = True
        rows = Table(read_rows(offered.file))
        return rows if split else Splits(rows)
    key = repr((path, name, split, sorted(options.items())))
    if offered is not None and key in offered.loaded:
        return offered.loaded[key]
    if not path:
        raise MissingDataError("This task names no data set: pass its rows with --data FILE.")
    dataset = _from_hub(f"{path} ({name})" if name else path, path, name, split=split, **options)
    if offered is not None:
        offered.loaded[key] = dataset
    return dataset


def load_files(path: str, files: Sequence[str]) -> Rows:
    """Loads JSON files of a data set with a loading script, which `datasets` does not run."""
    urls = [f"hf://datasets/{path}/{file}" for file in files]
    rows: Rows = _from_hub(path, "json", data_files=urls, split="train")
    return rows


def _from_hub(what: str, *arguments: Any, **options: Any) -> Any:
    advice = f"or pass the rows of {what} with --data FILE.jsonl."
    try:
        hub: Callable[..., Any] = import_extra("datasets", f"The data set {what}", "hub").load_dataset
    except UsageError as error:
        raise MissingDataError(f"{str(error).removesuffix('.')} – {advice}") from None
    try:
        return hub(*arguments, **options)
    except Exception as error:  # many kinds: network, name, permission
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise MissingDataError(
            f"The data set {what} cannot be loaded from the hub ({reason}): check the network, {advice}"
        ) from None


def packaged_file(package: str, file: str) -> Path | None:
    """A data file of an installed package, found without importing it."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for path in (Path(folder) / file, Path(folder).parent / file):
            if path.is_file():
                return path
    return None


def read_rows(file: str | Path) -> list[Row]:
    """All rows of a .jsonl, .json or .parquet file; the first two also compressed as .gz."""
    path = user_path(str(file))
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    try:
        if endings[-1:] == [".parquet"]:
            return _parquet_rows(path)
        content = path.read_bytes()
        if endings[-1:] == [".gz"]:
            content = gzip.decompress(content)
    except OSError as error:
        raise UsageError(f"Cannot read the rows in {path}: {error.strerror or error}.") from None
    except EOFError:
        raise UsageError(f"Cannot read the rows in {path}: the file ends too early.") from None
    rows = _json_rows(content, path) if ".json" in endings else _jsonl_rows(content, path)
    if not rows:
        raise UsageError(f"{path} has no rows.")
    return rows


def _json_rows(content: bytes, path: Path) -> list[Row]:
    try:
        return _decode(content, list[Row])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a JSON list of rows: {error}.") from None


def _jsonl_rows(content: bytes, path: Path) -> list[Row]:
    rows = []
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            rows.append(_decode(line, Row))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"{path}, line {number}: not a row in JSON: {error}.") from None
    return rows


def _decode(content: bytes, kind: type[T]) -> T:
    """Decodes JSON, also with NaN, Infinity and lone surrogates."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        try:
            return msgspec.convert(_encodable(json.loads(content)), kind)
        except (ValueError, RecursionError):
            pass
        raise


def _encodable(value: Any) -> Any:
    """Replaces lone surrogates, which cannot be stored or sent to a model."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return value


def _parquet_rows(path: Path) -> list[Row]:
    parquet = import_extra("pyarrow.parquet", "Reading .parquet", "parquet")
    from pyarrow import ArrowInvalid

    try:
        rows: list[Row] = parquet.read_table(path).to_pylist()
    except ArrowInvalid as error:
        raise UsageError(f"{path} is not a Parquet file: {error}.") from None
    return rows
