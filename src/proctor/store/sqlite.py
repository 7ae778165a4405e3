"""Runs and records in one SQLite file that many processes may read and write at once."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TextIO
from urllib.parse import quote

import msgspec

from proctor.errors import StoreError, StoreWriteError, UnknownNameError
from proctor.store.schema import MIGRATIONS, SCHEMA_VERSION
from proctor.types import Record, Run

LOCK_PATIENCE = 60.0  # seconds to wait for other writers, whose batches take milliseconds

_encode = msgspec.json.Encoder().encode
_decode_record = msgspec.json.Decoder(Record).decode
_decode_run = msgspec.json.Decoder(Run).decode


Mode = Literal["create", "write", "read"]


class Store:
    """A folder with `runs.db`, and a lock for every run that is being worked on."""

    def __init__(self, folder: Path, mode: Mode = "create") -> None:
        self.folder = folder
        self.path = folder / "runs.db"
        if mode != "create" and not self.path.exists():
            raise StoreError(f"No store at {folder}: run an exam first, or name another with --store.")
        try:
            if mode == "read":
                self._db = connect_to_read(self.path)
            else:
                folder.mkdir(parents=True, exist_ok=True)
                self._db = connect(self.path)
            self._migrate(may_write=mode != "read")
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"Cannot use the store {folder}: {error}. Name another with --store.") from None

    def close(self) -> None:
        self._db.close()

    def _migrate(self, may_write: bool) -> None:
        version = self._version()
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"The store {self.folder} was written by a newer proctor (store version {version}, this one knows "
                f"{SCHEMA_VERSION}): upgrade with pip install -U proctor, or name another store."
            )
        if version == SCHEMA_VERSION:
            return
        if not may_write:
            raise StoreError(f"Nothing is in the store {self.folder} yet: its first run is just being begun.")
        with transaction(self._db):
            # Asked again under the lock: another process may have been faster.
            version = self._version()
            for statements in MIGRATIONS[version:]:
                for statement in statements:
                    self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version = {max(version, SCHEMA_VERSION)}")

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    # -- runs ---------------------------------------------------------------------------------

    def save(self, run: Run) -> None:
        """Insert the run, or replace what is known of it."""
        with _reported(self.path), transaction(self._db):
            self._db.execute(
                "INSERT INTO runs (id, task, candidate, status, created, body) VALUES (?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET status = excluded.status, body = excluded.body",
                (run.id, run.task, run.candidate, run.status, run.created, _encode(run)),
            )

    def runs(self) -> list[Run]:
        """All runs, newest first."""
        rows = self._db.execute("SELECT body FROM runs ORDER BY created DESC, id DESC")
        return [_decode_run(body) for (body,) in rows]

    def run(self, name: str) -> Run:
        """The run with this id, or the only one whose id starts so; `latest` is the newest."""
        if name == "latest":
            rows = self._db.execute("SELECT body FROM runs ORDER BY created DESC, id DESC LIMIT 1").fetchall()
        else:
            rows = self._db.execute(
                "SELECT body FROM runs WHERE id = ? OR substr(id, 1, ?) = ? ORDER BY id = ? DESC LIMIT 2",
                (name, len(name), name, name),
            ).fetchall()
        found = [_decode_run(body) for (body,) in rows]
        if not found:
            known = [i for (i,) in self._db.execute("SELECT id FROM runs")]
            raise UnknownNameError("run", name, known, "`proctor list runs` shows all.")
        if len(found) > 1 and found[0].id != name:
            raise StoreError(f"{name!r} could be {found[0].id} or {found[1].id}: type more of the id.")
        return found[0]

    @contextmanager
    def hold(self, run_id: str) -> Iterator[None]:
        """Only one process at a time works on a run; the system lets go of a killed one's hold."""
        path = self.folder / "locks" / run_id
        try:
            path.parent.mkdir(exist_ok=True)
            file = _lock(path)
        except OSError as error:
            raise StoreError(f"Cannot use the store {self.folder}: {error}. Name another with --store.") from None
        if file is None:
            raise StoreError(f"Run {run_id} is still being worked on by another process.")
        with file:
            try:
                yield
            finally:
                with suppress(OSError):
                    path.unlink()

    def status(self, run: Run) -> str:
        """The run's status; a run that nobody holds any more was killed, whatever it last said."""
        if run.status != "running":
            return run.status
        try:
            with (self.folder / "locks" / run.id).open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return "running"
        except OSError:
            pass
        return "killed"

    # -- records ------------------------------------------------------------------------------

    def records(self, run: Run) -> Iterator[Record]:
        """All records of a run in the order of the exam."""
        rows = self._db.execute("SELECT body FROM records WHERE run = ? ORDER BY sample, epoch", (run.id,))
        for (body,) in rows:
            yield _decode_record(body)

    def scored(self, run: Run) -> dict[tuple[int, int], bytes]:
        """Which samples have been scored, as (index, epoch), each with the digest of what was asked."""
        rows = self._db.execute(
            "SELECT sample, epoch, digest FROM records WHERE run = ? AND state = 'scored'", (run.id,)
        )
        return {(sample, epoch): digest for sample, epoch, digest in rows}

    def values(self, run: Run) -> dict[tuple[int, int], float | None]:
        """The scores' values, where there are scores, by (index, epoch)."""
        rows = self._db.execute(
            "SELECT sample, epoch, value FROM records WHERE run = ? AND state = 'scored'", (run.id,)
        )
        return {(sample, epoch): value for sample, epoch, value in rows}

    def answered(self, run: Run) -> dict[tuple[int, int], Record]:
        """Records with outputs that still need more of them, or their judge."""
        rows = self._db.execute("SELECT body FROM records WHERE run = ? AND state != 'scored'", (run.id,))
        records = [record for (body,) in rows if (record := _decode_record(body)).outputs]
        return {(record.sample.index, record.epoch): msgspec.structs.replace(record, error=None) for record in records}

    def sample_digests(self, run: Run) -> Iterator[bytes]:
        """What was asked, sample by sample in the order of the exam."""
        rows = self._db.execute("SELECT digest FROM records WHERE run = ? GROUP BY sample ORDER BY sample", (run.id,))
        for (digest,) in rows:
            yield digest

    def counts(self, run: Run) -> dict[str, int]:
        """Records by outcome; failed ones count as 'error'."""
        rows = self._db.execute("SELECT outcome, count(*) FROM records WHERE run = ? GROUP BY outcome", (run.id,))
        return dict(rows.fetchall())


def _lock(path: Path) -> TextIO | None:
    """The locked file, or None while another process holds it."""
    while True:
        file = path.open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        # Whoever held it before may have removed the file between our opening and our locking it.
        with suppress(FileNotFoundError):
            if os.fstat(file.fileno()).st_ino == path.stat().st_ino:
                return file
        file.close()


def connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=LOCK_PATIENCE, isolation_level=None)
    # Changing the journal mode does not wait for other writers as ordinary statements do.
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    # A committed batch survives a power cut too; with a few commits a second that costs nothing.
    db.execute("PRAGMA synchronous = FULL")
    return db


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Also where nothing may be written, on a read-only disk for example."""
    place = f"file:{quote(str(path.absolute()))}"
    for options in ("mode=ro", "immutable=1"):
        db = sqlite3.connect(f"{place}?{options}", uri=True, timeout=LOCK_PATIENCE, isolation_level=None)
        try:
            db.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.OperationalError:
            db.close()
            if options == "immutable=1":
                raise
        else:
            break
    return db


@contextmanager
def _reported(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise StoreWriteError(f"Writing to {path} failed: {error}.") from None


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    # Immediate: a writer queues for its turn at the start instead of failing in the middle.
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if db.in_transaction:  # a full disk ends the transaction by itself
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def write_records(db: sqlite3.Connection, run_id: str, records: Iterable[tuple[Record, bytes]]) -> None:
    """Insert or replace records, each with the digest of its sample, in one transaction."""
    rows = [_row(run_id, record, digest) for record, digest in records]
    with transaction(db):
        db.executemany(
            "INSERT OR REPLACE INTO records (run, sample, sample_id, epoch, state, outcome, value, digest, body) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )


def _row(run_id: str, record: Record, digest: bytes) -> tuple[Any, ...]:
    state = "scored" if record.score else "failed" if record.error else "answered"
    value = record.score.value if record.score else None
    sample = record.sample
    body = _encode(record)
    return (run_id, sample.index, sample.id, record.epoch, state, record.outcome, value, digest, body)
