"""A store in a PostgreSQL database, for concurrent access from several machines."""

from __future__ import annotations

import hashlib
import re
import weakref
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, ClassVar
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from proctor.core.errors import StoreError
from proctor.store.artifacts import ArtifactTable
from proctor.store.database import Database, Mode, Row

# Client and server detect a dead peer after a minute; the server then releases its run locks.
KEEPALIVES: dict[str, int] = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
SESSION = {
    "search_path": "proctor",
    **{f"tcp_{key}": value for key, value in KEEPALIVES.items()},
    # Ordered queries have an index in that order. Without statistics on a new run, the server
    # would choose to scan and sort all of it for every page.
    "enable_bitmapscan": "off",
    "enable_sort": "off",
}
DEFAULTS: dict[str, int | str] = {"connect_timeout": 10, "application_name": "proctor", **KEEPALIVES}

LOCK_TIMEOUT = 5  # seconds; a busy server needs a moment to notice that the lock's holder was killed

MIGRATION = int.from_bytes(b"proctor")  # the advisory lock of migrations


class PostgresDatabase(Database):
    failure = psycopg.Error
    dialect: ClassVar[dict[str, str]] = {
        "blob": "BYTEA",
        "real": "DOUBLE PRECISION",
        "number": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "find": "strpos",
        # Not needed: large bodies are stored outside the rows. And an index entry has a maximum size.
        "covered": "",
    }

    def __init__(self, url: str, mode: Mode = "create") -> None:
        super().__init__()
        self.url = url
        self.location = server_location(url)
        self.mode = mode
        self.artifacts = ArtifactTable(self)
        self._locked: set[str] = set()
        self._lost = ""  # the run that another process locked while the connection was lost
        try:
            self._connect()
        except psycopg.Error as error:
            raise StoreError(f"Cannot use the store {self.location}: {self.describe_error(error)}.") from None

    def _connect(self) -> None:
        given = conninfo_to_dict(self.url)
        db = psycopg.connect(
            make_conninfo(self.url, **{key: value for key, value in DEFAULTS.items() if key not in given}),
            autocommit=True,
        )
        try:
            for key, value in SESSION.items():
                db.execute(f"SET {key} = {value}".encode())
            db.execute(b"SET default_transaction_read_only = " + (b"on" if self.mode == "read" else b"off"))
        except BaseException:
            db.close()
            raise
        self._db = db
        # A store that was not closed must leave no session on the server.
        weakref.finalize(self, db.close)

    def describe_error(self, error: Exception) -> str:
        """The driver's first line, without the password that a server or library might repeat."""
        text = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        password = conninfo_to_dict(self.url).get("password")
        return text.replace(str(password), "…") if password else text

    def _execute(self, sql: str, values: Sequence[Any]) -> list[Row]:
        with self._db.cursor(binary=True) as cursor:
            cursor.execute(_to_psycopg(sql), _storable(values))
            return cursor.fetchall() if cursor.description else []

    def _execute_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._db.cursor() as cursor:
            cursor.executemany(_to_psycopg(sql), [_storable(row) for row in rows])

    def _transaction(self) -> AbstractContextManager[Any]:
        return self._db.transaction()

    def version(self) -> int:
        if self.execute("SELECT to_regclass('proctor.store_version')") == [(None,)]:
            return 0
        ((version,),) = self.execute("SELECT version FROM store_version")
        return int(version)

    @contextmanager
    def migration(self) -> Iterator[None]:
        with self.transaction():
            self.execute("SET TRANSACTION READ WRITE")
            self.execute("SELECT pg_advisory_xact_lock(?)", (MIGRATION,))
            self.execute("CREATE SCHEMA IF NOT EXISTS proctor")
            yield

    def set_version(self, version: int) -> None:
        self.execute("CREATE TABLE IF NOT EXISTS store_version (version INTEGER NOT NULL)")
        self.execute("DELETE FROM store_version")
        self.execute("INSERT INTO store_version (version) VALUES (?)", (version,))

    def change_mark(self) -> str:
        # The snapshot of transaction ids changes with every transaction that writes.
        return str(self.execute("SELECT pg_current_snapshot()::text")[0][0])

    def check(self) -> None:
        """Nothing to check: the server confirms each commit."""

    def reconnect(self) -> bool:
        if not self._db.closed:
            return False
        with self._lock:
            if not self._lost:
                self._connect()
                self._lost = next((run_id for run_id in self._locked if not self._try_lock(run_id)), "")
            if self._lost:
                self._db.close()  # permanently, so that this process writes nothing into the run
                raise psycopg.OperationalError(
                    f"the connection was lost, and meanwhile another process has resumed run {self._lost}"
                )
        return True

    @contextmanager
    def lock_run(self, run_id: str) -> Iterator[bool]:
        """The server releases the locks of a closed connection."""
        if not self._try_lock(run_id):
            yield False
            return
        self._locked.add(run_id)
        try:
            yield True
        finally:
            self._locked.discard(run_id)
            with suppress(psycopg.Error):
                self.execute("SELECT pg_advisory_unlock(?)", (_lock_key(run_id),))

    def _try_lock(self, run_id: str) -> bool:
        try:
            with self.transaction():
                self.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}s'")
                self.execute("SELECT pg_advisory_lock(?)", (_lock_key(run_id),))
        except psycopg.errors.LockNotAvailable:
            return False
        return True

    def is_locked(self, run_id: str) -> bool:
        key = _lock_key(run_id)
        locks = self.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
            "AND classid::bigint = ? AND objid::bigint = ?",
            (key >> 32, key & 0xFFFFFFFF),
        )
        return locks != [(0,)]

    def close(self) -> None:
        self._db.close()


def server_location(url: str) -> str:
    """The URL without password and options; refuses a URL whose password cannot be identified."""
    try:
        parts = urlsplit(url)
        given = conninfo_to_dict(url)
        clear = url.count("@") == parts.netloc.count("@") <= 1 and not re.search("%(?![0-9A-Fa-f]{2})", url)
    except (ValueError, psycopg.Error):
        clear = False
    if not clear:
        # The URL is not quoted, because it may contain a password.
        raise StoreError(
            "The URL of the store cannot be parsed: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE, "
            "with %40 for @, %2F for / and %3A for : in a password."
        )
    host = str(given.get("host") or "")
    user = f"{given['user']}@" if given.get("user") else ""
    port = f":{given['port']}" if given.get("port") else ""
    database = given.get("dbname") or ""
    if host.startswith("/"):  # the folder of a Unix socket
        return f"postgresql://{user}{port}/{database}?host={host}"
    return f"postgresql://{user}{f'[{host}]' if ':' in host else host}{port}/{database}"


def _lock_key(run_id: str) -> int:
    """The key of a run's advisory lock, a nonnegative 64-bit integer."""
    return int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:8]) >> 1


def _to_psycopg(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


def _storable(values: Sequence[Any]) -> list[Any]:
    # PostgreSQL rejects NUL in text; the body of a record keeps it as \u0000.
    return [value.replace("\0", "") if isinstance(value, str) else value for value in values]
