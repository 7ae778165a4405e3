"""A response cache that cannot lie: it answers only a request equal in everything that shaped the response."""

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

REQUEST_FORMAT = 1  # raised when requests are sent differently, so that old responses are not taken for new ones

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
        question = _encode_request(identity, request)
        with self._tolerant():
            found = self._db.execute("SELECT request, output FROM responses WHERE key = ?", (_hash(question),))
            row = found.fetchone()
            # The whole question is compared, not its hash alone.
            if row is not None and row[0] == question:
                output = msgspec.json.decode(row[1], type=Output)
                return msgspec.structs.replace(output, cached=True, seconds=0.0)
        return None

    def put(self, identity: dict[str, str], request: Request, output: Output) -> None:
        question = _encode_request(identity, request)
        with self._tolerant():
            self._db.execute(
                "INSERT OR REPLACE INTO responses VALUES (?, ?, ?, ?)",
                (_hash(question), question, msgspec.json.encode(output), time.time()),
            )

    @contextmanager
    def _tolerant(self) -> Iterator[None]:
        """A cache that fails is only slower: it must not cost an answer that has been paid for."""
        try:
            yield
        except (sqlite3.Error, msgspec.DecodeError) as error:
            if not self._failed:
                logger.warning("The response cache fails, the run goes on without: %s", error)
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
    # The sample itself is left out on purpose: a model sees the prompt alone.
    parts: tuple[Any, ...] = (REQUEST_FORMAT, identity, request.prompt, request.sampling, request.number)
    if request.schema is not None:
        parts += (request.schema,)
    return msgspec.json.encode(parts, order="sorted")


def _hash(question: bytes) -> bytes:
    return hashlib.sha256(question).digest()
