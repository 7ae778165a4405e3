"""The response cache: its key contains everything that shapes a response."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from proctor.core.errors import StoreError
from proctor.core.types import Output
from proctor.models.base import Request

logger = logging.getLogger(__name__)

REQUEST_FORMAT = 1  # increased when requests are sent differently, which invalidates old responses

_SCHEMA = """
CREATE TABLE IF NOT EXISTS responses (
    key BLOB PRIMARY KEY, request BLOB NOT NULL, output BLOB NOT NULL, stored REAL NOT NULL
) WITHOUT ROWID
"""


class ResponseCache:
    """Responses in one SQLite file, keyed by model identity, prompt, sampling settings and sample number."""

    def __init__(self, path: Path) -> None:
        self._failed = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = _connect(path)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"Cannot open the response cache {path}: {error}. Run without --cache.") from None

    def get(self, identity: dict[str, str], request: Request) -> Output | None:
        encoded = _encode_request(identity, request)
        with self._ignoring_failures():
            cursor = self._db.execute("SELECT request, output FROM responses WHERE key = ?", (_hash(encoded),))
            row = cursor.fetchone()
            # The whole request is compared, because hashes may collide.
            if row is not None and row[0] == encoded:
                output = msgspec.json.decode(row[1], type=Output)
                return msgspec.structs.replace(output, cached=True, seconds=0.0)
        return None

    def put(self, identity: dict[str, str], request: Request, output: Output) -> None:
        encoded = _encode_request(identity, request)
        with self._ignoring_failures():
            self._db.execute(
                "INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?)",
                (_hash(encoded), encoded, msgspec.json.encode(output), time.time()),
            )

    @contextmanager
    def _ignoring_failures(self) -> Iterator[None]:
        """A failing cache must not lose a response that has been paid for."""
        try:
            yield
        except (sqlite3.Error, msgspec.DecodeError) as error:
            if not self._failed:
                logger.warning("The response cache fails, the run continues without it: %s", error)
            self._failed = True

    def close(self) -> None:
        self._db.close()


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=30, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute(_SCHEMA)
    except BaseException:
        db.close()
        raise
    return db


def _encode_request(identity: dict[str, str], request: Request) -> bytes:
    # Without the sample, because a model receives only the prompt.
    parts: tuple[Any, ...] = (REQUEST_FORMAT, identity, request.prompt, request.sampling, request.number)
    if request.schema is not None:
        parts += (request.schema,)
    return msgspec.json.encode(parts, order="sorted")


def _hash(encoded: bytes) -> bytes:
    return hashlib.sha256(encoded).digest()
