"""The store: runs, their records and reviews, in SQL that all supported databases understand."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
from msgspec import Struct

from proctor.core.config import MAX_COUNT
from proctor.core.errors import StoreError, StoreWriteError, UnknownNameError, UsageError
from proctor.core.types import Output, Record, Run
from proctor.store.database import Database, Row
from proctor.store.reviews import StoredReviews, apply_review
from proctor.store.schema import SCHEMA_VERSION, migrate
from proctor.store.search import (
    as_text,
    conditions_on_outcome,
    conditions_on_words,
    metadata_key,
    search_row,
    value_after,
)
from proctor.store.types import Neighbours, RecordColumns, RecordFilter, RecordKey, RecordSummary, Review

T = TypeVar("T")

BATCH = 1_000  # records per query
ANSWER_LENGTH = 200  # characters of an answer in a summary
CACHED_SEARCHES = 8  # searches whose results are cached until the store changes

_encode = msgspec.json.Encoder().encode
_decode_record = msgspec.json.Decoder(Record).decode
_decode_run = msgspec.json.Decoder(Run).decode
_decode_review_body = msgspec.json.Decoder(bool | float | str).decode


class _ScoreBrief(Struct):
    answer: Any


class _RecordBrief(Struct):
    """The part of a record's body that a summary decodes."""

    outputs: tuple[Output, ...] = ()
    score: _ScoreBrief | None = None


_decode_brief = msgspec.json.Decoder(_RecordBrief).decode


class Store:
    """Used by the thread that opened it, and by its writer."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cached_keys: dict[tuple[str, bytes], list[RecordKey]] = {}
        self._cached_at = ""
        try:
            self._migrate()
        except database.failure as error:
            database.close()
            reason = database.describe_error(error)
            raise StoreError(f"Cannot use the store {self.location}: {reason}. Pass another with --store.") from None
        except BaseException:
            database.close()
            raise

    @property
    def url(self) -> str:
        """Opens this store from any working directory; may contain a password."""
        return self._database.url

    @property
    def location(self) -> str:
        """The location of the store for messages, without a password."""
        return self._database.location

    def close(self) -> None:
        self._database.close()

    def _migrate(self) -> None:
        version = self._database.version()
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"The store {self.location} was written by a newer proctor (store version {version}, this one knows "
                f"{SCHEMA_VERSION}): upgrade with pip install -U proctor, or pass another store."
            )
        if version == SCHEMA_VERSION:
            return
        if version == 0 and self._database.mode != "create":
            raise StoreError(f"The store {self.location} is still empty: its first run is just starting.")
        try:
            with self._database.migration():
                # Checked again under the lock: another process may have migrated it.
                if (version := self._database.version()) < SCHEMA_VERSION:
                    migrate(self._database, version)
        except (self._database.failure, msgspec.MsgspecError) as error:
            if version == 0:
                raise
            reason = self._database.describe_error(error)
            raise StoreError(
                f"The store {self.location} was written by an older proctor (store version {version}, now it is "
                f"{SCHEMA_VERSION}) and could not be migrated: {reason}. Open it once where it is writable."
            ) from None

    def _read(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        with self._reading():
            return self._with_reconnect(lambda: self._database.execute(sql, values))

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except self._database.failure as error:
            raise StoreError(
                f"Reading the store {self.location} failed: {self._database.describe_error(error)}."
            ) from None

    def _write(self, work: Callable[[], object]) -> None:
        """Do the work in one transaction."""

        def transact() -> None:
            with self._database.transaction():
                work()

        try:
            self._with_reconnect(transact)
            self._database.check()
        except (self._database.failure, OSError) as error:
            raise StoreWriteError(
                f"Writing to {self.location} failed: {self._database.describe_error(error)}."
            ) from None

    def _with_reconnect(self, work: Callable[[], T]) -> T:
        """Repeat the work once if the connection was lost."""
        try:
            return work()
        except self._database.failure:
            if not self._database.reconnect():
                raise
            return work()

    def change_mark(self) -> str:
        """A text that differs after every change of the store; cheap enough to poll."""
        with self._reading():
            return self._with_reconnect(self._database.change_mark)

    # -- runs ---------------------------------------------------------------------------------

    def save(self, run: Run) -> None:
        """Insert or update the run."""
        tags = _encode(run.tags).decode()
        row = (run.id, run.task, run.candidate, run.status, run.created, tags, _encode(run))
        self._write(
            lambda: self._database.execute(
                "INSERT INTO runs (id, task, candidate, status, created, tags, body) VALUES (?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET status = excluded.status, tags = excluded.tags, body = excluded.body",
                row,
            )
        )

    def runs(self) -> list[Run]:
        """All runs, newest first."""
        rows = self._read("SELECT body FROM runs ORDER BY created DESC, id DESC")
        return [_decode_run(body) for (body,) in rows]

    def run(self, name: str) -> Run:
        """The run with this id or unique prefix of an id; `latest` is the newest."""
        if name == "latest":
            rows = self._read("SELECT body FROM runs ORDER BY created DESC, id DESC LIMIT 1")
        else:
            rows = self._read(
                "SELECT body FROM runs WHERE substr(id, 1, ?) = ? ORDER BY length(id), id LIMIT 2", (len(name), name)
            )
        found = [_decode_run(body) for (body,) in rows]
        if not found:
            known = [i for (i,) in self._read("SELECT id FROM runs")]
            raise UnknownNameError("run", name, known, "`proctor list runs` shows all.")
        if len(found) > 1 and found[0].id != name:
            raise StoreError(f"{name!r} could be {found[0].id} or {found[1].id}: type more of the id.")
        return found[0]

    @contextmanager
    def lock_run(self, run_id: str) -> Iterator[None]:
        """Lock the run for this process; the lock of a killed process is released."""
        with ExitStack() as stack:
            with self._reading():
                locked = stack.enter_context(self._database.lock_run(run_id))
            if not locked:
                raise StoreError(f"Run {run_id} is in use by another process.")
            yield

    def status(self, run: Run) -> str:
        """The run's status; a running run without a lock was killed."""
        if run.status != "running":
            return run.status
        with self._reading():
            locked = self._with_reconnect(lambda: self._database.is_locked(run.id))
        return "running" if locked else "killed"

    # -- records, whole -----------------------------------------------------------------------

    def write(self, run: Run, records: Iterable[tuple[Record, bytes]]) -> None:
        """Insert or replace records with the digests of their samples, in one transaction."""
        rows, searched = [], []
        for record, digest in records:
            rows.append(_row(run.id, record, digest))
            searched.append(search_row(run.id, record))

        def work() -> None:
            self._database.execute_many(
                "INSERT INTO records (run, sample, epoch, sample_id, cluster, state, outcome, value, digest, body) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, sample, epoch) DO UPDATE SET "
                "sample_id = excluded.sample_id, cluster = excluded.cluster, state = excluded.state, "
                "outcome = excluded.outcome, value = excluded.value, digest = excluded.digest, body = excluded.body",
                rows,
            )
            self._database.execute_many(
                "INSERT INTO searched (run, sample, epoch, words, metadata) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (run, sample, epoch) DO UPDATE SET words = excluded.words, metadata = excluded.metadata",
                searched,
            )

        # Files first, so that a stored record can be resumed on another machine.
        starts = tuple(_artifact_prefix(row[1], row[2]) for row in rows)
        self._with_files(lambda: self._database.artifacts.save(run.id, starts))
        self._write(work)

    def records(self, run: Run, reviewed: bool = False) -> Iterator[Record]:
        """All records of a run in the order of the samples; `reviewed` applies the scores of reviews."""
        scores = StoredReviews(self.reviews(run)).scores if reviewed else {}
        last: RecordKey = (-1, -1)
        while rows := self._read(
            "SELECT sample, epoch, body FROM records WHERE run = ? AND (sample, epoch) > (?, ?) "
            f"ORDER BY sample, epoch LIMIT {BATCH}",
            (run.id, *last),
        ):
            for sample, epoch, body in rows:
                record = _decode_record(body)
                reviews = scores.get((sample, epoch))
                yield apply_review(record, reviews[-1]) if reviews else record
            last = rows[-1][:2]

    def record(self, run: Run, sample: int, epoch: int = 0) -> Record:
        query = "SELECT body FROM records WHERE run = ? AND sample = ? AND epoch = ?"
        # Databases reject larger integers, and no sample has such an index.
        rows = self._read(query, (run.id, sample, epoch)) if max(abs(sample), abs(epoch)) <= MAX_COUNT else []
        if not rows:
            raise UsageError(f"Run {run.id} has no record of sample {sample} in epoch {epoch}.")
        return _decode_record(rows[0][0])

    def sample_index(self, run: Run, name: str) -> int:
        """The index of the sample with this id; a number may also be the index itself."""
        rows = self._read("SELECT sample FROM records WHERE run = ? AND sample_id = ? LIMIT 1", (run.id, name))
        if rows:
            return int(rows[0][0])
        if name.isascii() and name.isdigit():
            return int(name)
        raise UsageError(f"Run {run.id} has no sample {name!r}.")

    def scored(self, run: Run) -> dict[RecordKey, bytes]:
        """The keys of the scored records, with the digests of their samples."""
        rows = self._read("SELECT sample, epoch, digest FROM records WHERE run = ? AND state = 'scored'", (run.id,))
        return {(sample, epoch): digest for sample, epoch, digest in rows}

    def answered(self, run: Run) -> dict[RecordKey, Record]:
        """Records with outputs that are incomplete or not scored yet."""
        rows = self._read("SELECT body FROM records WHERE run = ? AND state != 'scored'", (run.id,))
        records = [record for (body,) in rows if (record := _decode_record(body)).outputs]
        return {(record.sample.index, record.epoch): msgspec.structs.replace(record, error=None) for record in records}

    def sample_digests(self, run: Run) -> Iterator[bytes]:
        """The digests of all samples, in their order."""
        rows = self._read("SELECT sample, digest FROM records WHERE run = ? ORDER BY sample, epoch", (run.id,))
        last = None
        for sample, digest in rows:
            if sample != last:
                yield digest
            last = sample

    # -- records, in brief --------------------------------------------------------------------

    def counts(self, run: Run) -> dict[str, int]:
        """Records by outcome; failed ones count as 'error'."""
        rows = self._read(
            "SELECT outcome, count(*) FROM records WHERE run = ? GROUP BY outcome ORDER BY outcome", (run.id,)
        )
        return {outcome: count for outcome, count in rows}  # noqa: C416 - a row is any tuple

    def progress(self, run: Run) -> tuple[int, int]:
        """The numbers of scored and failed records; those of a running run are counted now."""
        if run.status != "running":
            return run.n, run.errors
        counts = self.counts(run)
        errors = counts.pop("error", 0)
        counts.pop("answered", 0)
        return sum(counts.values()), errors

    def columns(self, run: Run) -> RecordColumns:
        rows = self._read(
            "SELECT sample, sample_id, epoch, outcome, value, digest, cluster FROM records WHERE run = ? "
            "ORDER BY sample, epoch",
            (run.id,),
        )
        return RecordColumns(*zip(*rows, strict=True)) if rows else RecordColumns()

    def metadata(self, run: Run, key: str) -> dict[int, str]:
        """The samples' values of a metadata key as text, by sample index."""
        rows = self._read(
            "SELECT sample, metadata FROM searched WHERE run = ? AND {find}(metadata, ?) > 0",
            (run.id, mark := metadata_key(key)),
        )
        return {sample: value_after(mark, metadata) for sample, metadata in rows}

    def count(self, run: Run, record_filter: RecordFilter) -> int:
        return len(self._find_keys(run, record_filter))

    def summaries(self, run: Run, record_filter: RecordFilter, start: int, limit: int) -> list[RecordSummary]:
        """A page of the matching records, in the order of the samples."""
        keys = self._find_keys(run, record_filter)[start : start + limit]
        if not keys:
            return []
        reviews = StoredReviews(self.reviews(run))
        rows = self._read(
            f"WITH page (sample, epoch) AS (VALUES {', '.join(['(?, ?)'] * len(keys))}) "
            "SELECT r.sample, r.epoch, r.sample_id, r.outcome, r.value, r.cluster, r.body FROM page "
            "JOIN records r ON r.run = ? AND r.sample = page.sample AND r.epoch = page.epoch",
            (*(number for key in keys for number in key), run.id),
        )
        return [_summarise(row, reviews) for row in sorted(rows)]

    def neighbours(self, run: Run, record_filter: RecordFilter, sample: int, epoch: int) -> Neighbours:
        keys = self._find_keys(run, record_filter)
        position = bisect_left(keys, (sample, epoch))
        following = position + (keys[position : position + 1] == [(sample, epoch)])
        return Neighbours(
            position,
            keys[position - 1] if position else None,
            keys[following] if following < len(keys) else None,
        )

    def _find_keys(self, run: Run, record_filter: RecordFilter) -> list[RecordKey]:
        """The keys of all matching records, in order; cached until the store changes, for scrolling."""
        if (mark := self.change_mark()) != self._cached_at:
            self._cached_keys.clear()
            self._cached_at = mark
        cache_key = (run.id, _encode(record_filter))
        if cache_key not in self._cached_keys:
            if len(self._cached_keys) == CACHED_SEARCHES:
                del self._cached_keys[next(iter(self._cached_keys))]
            self._cached_keys[cache_key] = self._search(run, record_filter)
        return self._cached_keys[cache_key]

    def _search(self, run: Run, record_filter: RecordFilter) -> list[RecordKey]:
        keys: list[RecordKey] | None = None
        conditions, values = conditions_on_words(record_filter)
        if conditions:
            keys = self._select_keys("searched", run, conditions, values)
        if record_filter.outcome or keys is None:
            matching = self._select_keys("records", run, *conditions_on_outcome(record_filter.outcome))
            keys = matching if keys is None else sorted(set(keys).intersection(matching))
        if record_filter.starred or record_filter.commented:
            reviews = StoredReviews(self.reviews(run))
            if record_filter.starred:
                keys = [key for key in keys if key in reviews.stars]
            if record_filter.commented:
                keys = [key for key in keys if key in reviews.comments]
        return keys

    def _select_keys(self, table: str, run: Run, conditions: Sequence[str], values: Sequence[Any]) -> list[RecordKey]:
        where = " AND ".join(["run = ?", *conditions])
        return self._read(f"SELECT sample, epoch FROM {table} WHERE {where} ORDER BY sample, epoch", (run.id, *values))

    # -- files --------------------------------------------------------------------------------

    def artifact_folder(self, run: Run) -> Path:
        """The folder on this machine to which a run writes its files."""
        return self._database.artifacts.folder(run.id)

    @contextmanager
    def working_folder(self, run: Run) -> Iterator[Path]:
        """The same folder while the run executes, with the stored files of unfinished samples."""
        unfinished = self._read("SELECT sample, epoch FROM records WHERE run = ? AND state != 'scored'", (run.id,))
        if unfinished:
            starts = tuple(_artifact_prefix(sample, epoch) for sample, epoch in unfinished)
            self._with_files(lambda: self._database.artifacts.fetch(run.id, starts))
        try:
            yield self.artifact_folder(run)
        except BaseException:
            with suppress(StoreWriteError):  # report the first error
                self._with_files(lambda: self._database.artifacts.finish_run(run.id))
            raise
        self._with_files(lambda: self._database.artifacts.finish_run(run.id))

    def _with_files(self, work: Callable[[], T]) -> T:
        try:
            return self._with_reconnect(work)
        except (self._database.failure, OSError) as error:
            reason = self._database.describe_error(error)
            raise StoreWriteError(f"Copying files of the run to or from {self.location} failed: {reason}.") from None

    def artifacts(self, run: Run, sample: int, epoch: int = 0) -> list[str]:
        """The names of the files of all attempts at a sample."""
        return self._with_files(lambda: self._database.artifacts.names(run.id, (_artifact_prefix(sample, epoch),)))

    def open_artifact(self, run: Run, name: str) -> tuple[int, BinaryIO]:
        """The size of a file, and the file."""
        return self._with_files(lambda: self._database.artifacts.open(run.id, name))

    # -- reviews ------------------------------------------------------------------------------

    def reviews(self, run: Run) -> list[Review]:
        """All reviews ever stored, oldest first."""
        rows = self._read(
            "SELECT run, sample, epoch, author, kind, body, created FROM reviews WHERE run = ? ORDER BY number",
            (run.id,),
        )
        return [
            Review(run_id, sample, epoch, author, kind, _decode_review_body(body), created)
            for run_id, sample, epoch, author, kind, body, created in rows
        ]

    def add_review(self, review: Review) -> Review:
        """Store the review with the current time. Reviews are never deleted: a later one supersedes it."""
        review = msgspec.structs.replace(review, created=time.time())
        row = (
            review.run,
            review.sample,
            review.epoch,
            review.author,
            review.kind,
            _encode(review.body).decode(),
            review.created,
        )
        self._write(
            lambda: self._database.execute(
                "INSERT INTO reviews (run, sample, epoch, author, kind, body, created) VALUES (?, ?, ?, ?, ?, ?, ?)",
                row,
            )
        )
        return review


def _artifact_prefix(sample: int, epoch: int) -> str:
    """The prefix of the folders of all attempts at a sample."""
    return f"{sample:06}-{epoch}-"


def _summarise(row: Row, reviews: StoredReviews) -> RecordSummary:
    sample, epoch, sample_id, outcome, value, cluster, body = row
    brief = _decode_brief(body)
    answer = as_text(brief.score.answer) if brief.score else ""
    if not answer and brief.outputs:
        answer = brief.outputs[-1].text
    return RecordSummary(
        sample=sample,
        sample_id=sample_id,
        epoch=epoch,
        outcome=outcome,
        value=value,
        answer=" ".join(answer[:ANSWER_LENGTH].split()),
        cluster=cluster,
        starred=(sample, epoch) in reviews.stars,
        comments=len(reviews.comments.get((sample, epoch), ())),
        seconds=sum(output.seconds for output in brief.outputs),
        tokens=sum(output.usage.input_tokens + output.usage.output_tokens for output in brief.outputs),
    )


def _row(run_id: str, record: Record, digest: bytes) -> Row:
    state = "scored" if record.score else "failed" if record.error else "answered"
    value = record.score.value if record.score else None
    sample = record.sample
    return (
        run_id,
        sample.index,
        record.epoch,
        sample.id,
        sample.cluster,
        state,
        record.outcome,
        value,
        digest,
        _encode(record),
    )
