"""A store in a folder: a SQLite file for concurrent processes, and a lock file per run."""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, TextIO
from urllib.parse import quote

from proctor.core.errors import StoreError
from proctor.store.artifacts import ArtifactFolder
from proctor.store.database import Database, Mode, Row

MAX_VALUES = 999  # per statement, in every version of SQLite
LOCK_TIMEOUT = 60.0  # seconds; the batches of other writers take milliseconds


class SqliteDatabase(Database):
    failure = sqlite3.Error
    dialect: ClassVar[dict[str, str]] = {
        "blob": "BLOB",
        "real": "REAL",
        "number": "INTEGER PRIMARY KEY",
        "find": "instr",
        # More columns for the covering index, so that reads skip the rows and their large bodies.
        "covered": ", sample_id, cluster",
    }

    def __init__(self, folder: Path, mode: Mode = "create") -> None:
        super().__init__()
        self.folder = folder
        self.path = folder / "runs.db"
        self.url = str(folder.absolute())
        self.location = str(folder)
        self.mode = mode
        self.artifacts = ArtifactFolder(folder / "artifacts")
        if mode != "create" and not self.path.exists():
            raise StoreError(f"No store at {folder}: run a task first, or pass another with --store.")
        try:
            if mode == "read":
                self._db = _connect_to_read(self.path)
            else:
                folder.mkdir(parents=True, exist_ok=True)
                self._db = _connect(self.path)
            self._file = self.path.stat().st_ino
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"Cannot use the store {folder}: {error}. Pass another with --store.") from None

    def _execute(self, sql: str, values: Sequence[Any]) -> list[Row]:
        return self._db.execute(sql, values).fetchall()

    def _execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        # Many rows per statement: the driver releases the GIL for each statement and then waits
        # to get it back. With one row per statement, a busy thread would starve the writer.
        before, placeholders, after = re.split(r"(?<=VALUES )(\([?, ]+\))", sql)
        batch = MAX_VALUES // placeholders.count("?")
        for start in range(0, len(rows), batch):
            part = rows[start : start + batch]
            statement = before + ", ".join([placeholders] * len(part)) + after
            self._db.execute(statement, [value for row in part for value in row])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        # IMMEDIATE takes the write lock now; a deferred transaction could fail at its first write.
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:  # a full disk has already rolled it back
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    @contextmanager
    def migration(self) -> Iterator[None]:
        reading = self._db
        if self.mode == "read":
            self._db = _connect(self.path)
        try:
            with self.transaction():
                yield
        finally:
            if self._db is not reading:
                self._db.close()
                self._db = reading

    def set_version(self, version: int) -> None:
        self._db.execute(f"PRAGMA user_version = {version}")

    def change_mark(self) -> str:
        # data_version counts the commits of other connections, total_changes those of this one.
        return f"{self.execute('PRAGMA data_version')[0][0]}-{self._db.total_changes}"

    def check(self) -> None:
        if self.path.stat().st_ino != self._file:
            raise FileNotFoundError("the store was removed or replaced")

    @contextmanager
    def lock_run(self, run_id: str) -> Iterator[bool]:
        """The kernel releases the lock of a killed process."""
        path = self.folder / "locks" / run_id
        try:
            path.parent.mkdir(exist_ok=True)
            file = _lock(path)
        except OSError as error:
            raise StoreError(f"Cannot use the store {self.folder}: {error}. Pass another with --store.") from None
        if file is None:
            yield False
            return
        with file:
            try:
                yield True
            finally:
                with suppress(OSError):
                    path.unlink()

    def is_locked(self, run_id: str) -> bool:
        try:
            with (self.folder / "locks" / run_id).open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            pass
        return False

    def close(self) -> None:
        self._db.close()

    def __del__(self) -> None:
        # Since Python 3.13, the driver warns about unclosed connections.
        if hasattr(self, "_db"):
            self._db.close()


def _lock(path: Path) -> TextIO | None:
    """The locked file, or None if another process holds the lock."""
    while True:
        file = path.open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        # The previous holder may have removed the file between open and flock.
        with suppress(FileNotFoundError):
            if os.fstat(file.fileno()).st_ino == path.stat().st_ino:
                return file
        file.close()


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False)
    try:
        _set_wal_mode(db)
        # A committed batch survives a power failure; at a few commits per second this is cheap.
        db.execute("PRAGMA synchronous = FULL")
    except BaseException:
        db.close()
        raise
    return db


def _set_wal_mode(db: sqlite3.Connection) -> None:
    # Unlike other statements, this one does not wait for locks.
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _connect_to_read(path: Path) -> sqlite3.Connection:
    """Open for reading, also on a read-only file system."""
    uri = f"file:{quote(str(path.absolute()))}"
    for options in ("mode=ro", "immutable=1"):
        db = sqlite3.connect(
            f"{uri}?{options}", uri=True, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
        )
        try:
            db.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.Error as error:
            db.close()
            if options == "immutable=1" or not isinstance(error, sqlite3.OperationalError):
                raise
        else:
            break
    return db
