"""The tables of the store, as the steps that lead from each version to the next."""

from __future__ import annotations

MIGRATIONS: list[list[str]] = [
    [
        """
        CREATE TABLE runs (
            id TEXT PRIMARY KEY,
            task TEXT NOT NULL,
            candidate TEXT NOT NULL,
            status TEXT NOT NULL,
            created REAL NOT NULL,
            body BLOB NOT NULL
        )
        """,
        "CREATE INDEX runs_by_time ON runs (created)",
        # The key makes a duplicate impossible, whatever the writer does.
        """
        CREATE TABLE records (
            run TEXT NOT NULL REFERENCES runs (id),
            sample INTEGER NOT NULL,
            sample_id TEXT NOT NULL,
            epoch INTEGER NOT NULL,
            state TEXT NOT NULL,
            outcome TEXT NOT NULL,
            value REAL,
            digest BLOB NOT NULL,
            body BLOB NOT NULL,
            PRIMARY KEY (run, sample, epoch)
        )
        """,
        "CREATE INDEX records_by_outcome ON records (run, outcome, sample)",
    ],
]

SCHEMA_VERSION = len(MIGRATIONS)
