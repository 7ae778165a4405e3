"""The rows of a data set: from the hub, from a file of the user's, or from an installed package."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from proctor.config import user_path
from proctor.errors import MissingExtraError, UsageError

Row = dict[str, Any]
Rows = Sequence[Row]


class GivenRows:
    """A file that takes the place of whatever data set a task asks for."""

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.asked_for = False

    @contextmanager
    def offered(self) -> Iterator[None]:
        token = _GIVEN.set(self)
        try:
            yield
        finally:
            _GIVEN.reset(token)


_GIVEN: ContextVar[GivenRows | None] = ContextVar("given", default=None)


class Splits(dict[str, Rows]):
    """Rows without a division into splits: each split is all of them."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(test=rows)
        self._rows = rows

    def __missing__(self, split: str) -> Rows:
        return self._rows


def load_dataset(path: str | None, name: str | None = None, split: str | None = None, **options: Any) -> Any:
    """The rows of one split, or all splits by name: from the file that was given, else from the hub."""
    offered = _GIVEN.get()
    if offered is not None and offered.file is not None:
        offered.asked_for = True
        rows = read_rows(offered.file)
        return rows if split else Splits(rows)
    if not path:
        raise UsageError("This task names no data set: give the problems with --data FILE.")
    what = f"{path} ({name})" if name else path
    advice = f"or give the rows of {what} as a file: --data FILE.jsonl."
    try:
        hub: Callable[..., Any] = real_module("datasets").load_dataset
    except ImportError:
        raise MissingDataError(f"{MissingExtraError(f'The data set {what}', 'hub')} – {advice}") from None
    try:
        return hub(path, name, split=split, **options)
    except Exception as error:  # whatever the hub's client makes of a missing network, name or right
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise MissingDataError(
            f"The data set {what} cannot be had from the hub ({reason}): check the network, {advice}"
        ) from None


class MissingDataError(UsageError):
    """The problems of a task are not here."""


def real_module(name: str) -> Any:
    """The package itself, where something of ours stands in for it."""
    stand_in = sys.modules.get(name)
    if not getattr(stand_in, "stands_in", False):
        return import_module(name)
    real = getattr(stand_in, "real", None)
    if real is None:
        raise ImportError(name)
    return real()


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
        return msgspec.json.decode(content, type=list[Row])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a JSON list of rows: {error}.") from None


def _jsonl_rows(content: bytes, path: Path) -> list[Row]:
    rows = []
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            rows.append(msgspec.json.decode(line, type=Row))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"{path}, line {number}: not a row in JSON: {error}.") from None
    return rows


def _parquet_rows(path: Path) -> list[Row]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("Reading .parquet", "parquet") from None
    try:
        rows: list[Row] = pyarrow.parquet.read_table(path).to_pylist()
    except pyarrow.ArrowInvalid as error:
        raise UsageError(f"{path} is not a Parquet file: {error}.") from None
    return rows
