"""The schema of the store, as migrations from each version to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from proctor.core.types import Record
from proctor.store.database import Database
from proctor.store.search import search_row

BATCH = 1_000


class Migration(NamedTuple):
    statements: tuple[str, ...]
    fill: Callable[[Database], None] | None = None  # computes from existing rows what SQL cannot


def migrate(database: Database, version: int) -> None:
    """Run the missing migrations inside the caller's transaction."""
    for migration in MIGRATIONS[version:]:
        for statement in migration.statements:
            database.execute(statement)
        if migration.fill is not None:
            migration.fill(database)
    database.set_version(SCHEMA_VERSION)


def _fill_searched(database: Database) -> None:
    for batch in _bodies(database):
        rows = [search_row(run, msgspec.json.decode(body, type=Record)) for run, body in batch]
        database.execute_many("INSERT INTO searched (run, sample, epoch, words, metadata) VALUES (?, ?, ?, ?, ?)", rows)


def _bodies(database: Database) -> Iterator[list[tuple[str, bytes]]]:
    last = ("", -1, -1)
    while rows := database.execute(
        "SELECT run, sample, epoch, body FROM records WHERE (run, sample, epoch) > (?, ?, ?) "
        f"ORDER BY run, sample, epoch LIMIT {BATCH}",
        last,
    ):
        yield [(run, body) for run, _, _, body in rows]
        last = rows[-1][:3]


MIGRATIONS = [
    Migration(
        (
            """
            CREATE TABLE runs (
                id TEXT PRIMARY KEY,
                task TEXT NOT NULL,
                candidate TEXT NOT NULL,
                status TEXT NOT NULL,
                created {real} NOT NULL,
                body {blob} NOT NULL
            )
            """,
            "CREATE INDEX runs_by_time ON runs (created)",
            # The primary key prevents duplicates.
            """
            CREATE TABLE records (
                run TEXT NOT NULL REFERENCES runs (id),
                sample BIGINT NOT NULL,
                sample_id TEXT NOT NULL,
                epoch BIGINT NOT NULL,
                state TEXT NOT NULL,
                outcome TEXT NOT NULL,
                value {real},
                digest {blob} NOT NULL,
                body {blob} NOT NULL,
                PRIMARY KEY (run, sample, epoch)
            )
            """,
            "CREATE INDEX records_by_outcome ON records (run, outcome, sample)",
        )
    ),
    Migration(
        (
            "ALTER TABLE runs ADD COLUMN tags TEXT NOT NULL DEFAULT '[]'",
            "ALTER TABLE records ADD COLUMN cluster TEXT NOT NULL DEFAULT ''",
            # A covering index in the order of the samples, for lists, filters and comparisons.
            "DROP INDEX records_by_outcome",
            "CREATE INDEX records_in_brief ON records (run, sample, epoch, state, outcome, value, digest{covered})",
            # A table of its own, because a search scans all rows and need not read the bodies.
            """
            CREATE TABLE searched (
                run TEXT NOT NULL REFERENCES runs (id),
                sample BIGINT NOT NULL,
                epoch BIGINT NOT NULL,
                words TEXT NOT NULL,
                metadata TEXT NOT NULL,
                PRIMARY KEY (run, sample, epoch)
            )
            """,
            # Append-only; the number orders the reviews.
            """
            CREATE TABLE reviews (
                number {number},
                run TEXT NOT NULL REFERENCES runs (id),
                sample BIGINT NOT NULL,
                epoch BIGINT NOT NULL,
                author TEXT NOT NULL,
                created {real} NOT NULL,
                kind TEXT NOT NULL,
                body TEXT NOT NULL
            )
            """,
            "CREATE INDEX reviews_by_run ON reviews (run, number)",
            # The files of runs, for stores without a shared folder.
            """
            CREATE TABLE artifacts (
                run TEXT NOT NULL REFERENCES runs (id),
                name TEXT NOT NULL,
                part BIGINT NOT NULL,
                body {blob} NOT NULL,
                PRIMARY KEY (run, name, part)
            )
            """,
        ),
        _fill_searched,
    ),
]

SCHEMA_VERSION = len(MIGRATIONS)
