"""A store for a team: a PostgreSQL database that many machines read and write at once."""

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

# A machine that vanishes without a word is missed after a minute, here and on the server, which then ends its holds.
KEEPALIVES: dict[str, int] = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
SESSION = {
    "search_path": "proctor",
    **{f"tcp_{key}": value for key, value in KEEPALIVES.items()},
    # What is asked for in order lies in that order in an index. Of a run that has just been written the server does
    # not know yet how large it is, and would gather and sort all of it for every page.
    "enable_bitmapscan": "off",
    "enable_sort": "off",
}
DEFAULTS: dict[str, int | str] = {"connect_timeout": 10, "application_name": "proctor", **KEEPALIVES}

LOCK_TIMEOUT = 5  # seconds in which a busy server notices that the process which held a run was killed

MIGRATION = int.from_bytes(b"proctor")  # the key of the lock under which tables change


class PostgresDatabase(Database):
    failure = psycopg.Error
    dialect: ClassVar[dict[str, str]] = {
        "blob": "BYTEA",
        "real": "DOUBLE PRECISION",
        "number": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "find": "strpos",
        # Large bodies are kept apart from the rows anyway, and an entry of an index must not grow with an id.
        "covered": "",
    }

    def __init__(self, url: str, mode: Mode = "create") -> None:
        super().__init__()
        self.url = url
        self.location = server_location(url)
        self.mode = mode
        self.artifacts = ArtifactTable(self)
        self._held: set[str] = set()
        self._lost = ""  # the run that another process took over while there was no connection
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
        # Whoever forgets to close a store leaves no session behind on the server.
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
        # Which transactions have ended and which are under way: another text after every one that wrote.
        return str(self.execute("SELECT pg_current_snapshot()::text")[0][0])

    def check(self) -> None:
        """A server that takes a transaction has it."""

    def reconnect(self) -> bool:
        if not self._db.closed:
            return False
        with self._lock:
            if not self._lost:
                self._connect()
                self._lost = next((run_id for run_id in self._held if not self._take(run_id)), "")
            if self._lost:
                self._db.close()  # for good: nothing of this process may get between the other one's records
                raise psycopg.OperationalError(
                    f"the connection was lost, and meanwhile another process has gone on with run {self._lost}"
                )
        return True

    @contextmanager
    def lock_run(self, run_id: str) -> Iterator[bool]:
        """The server lets go of what was held through a connection that has ended."""
        if not self._take(run_id):
            yield False
            return
        self._held.add(run_id)
        try:
            yield True
        finally:
            self._held.discard(run_id)
            with suppress(psycopg.Error):
                self.execute("SELECT pg_advisory_unlock(?)", (_lock_key(run_id),))

    def _take(self, run_id: str) -> bool:
        try:
            with self.transaction():
                self.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}s'")
                self.execute("SELECT pg_advisory_lock(?)", (_lock_key(run_id),))
        except psycopg.errors.LockNotAvailable:
            return False
        return True

    def is_locked(self, run_id: str) -> bool:
        key = _lock_key(run_id)
        held = self.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
            "AND classid::bigint = ? AND objid::bigint = ?",
            (key >> 32, key & 0xFFFFFFFF),
        )
        return held != [(0,)]

    def close(self) -> None:
        self._db.close()


def server_location(url: str) -> str:
    """The address without password and options; refuses one from which a password could not be told apart."""
    try:
        parts = urlsplit(url)
        given = conninfo_to_dict(url)
        clear = url.count("@") == parts.netloc.count("@") <= 1 and not re.search("%(?![0-9A-Fa-f]{2})", url)
    except (ValueError, psycopg.Error):
        clear = False
    if not clear:
        # Nothing of it is repeated: whatever it is, there may be a password in it.
        raise StoreError(
            "The address of the store cannot be understood: expected postgresql://USER:PASSWORD@HOST:PORT/DATABASE, "
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
    """The number of a run's lock, in the 63 bits that need no sign."""
    return int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:8]) >> 1


def _to_psycopg(sql: str) -> bytes:
    return sql.replace("?", "%s").encode()


def _storable(values: Sequence[Any]) -> list[Any]:
    # PostgreSQL has no NUL in a text; the body of a record, in which it is written \u0000, keeps it.
    return [value.replace("\0", "") if isinstance(value, str) else value for value in values]
