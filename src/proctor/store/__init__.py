"""The results store: runs, records and reviews in SQLite or PostgreSQL."""

from __future__ import annotations

import os
from pathlib import Path

from proctor.core.config import user_path
from proctor.core.errors import StoreError
from proctor.core.extras import import_extra
from proctor.store.database import Database, Mode
from proctor.store.sqlite import SqliteDatabase
from proctor.store.store import Store

DEFAULT = "proctor-runs"
SERVERS = ("postgresql", "postgres")


def open_store(name: str | None = None, mode: Mode = "create") -> Store:
    """Open the store at this URL or path, else at $PROCTOR_STORE, else in the working directory."""
    return Store(open_database(name, mode))


def open_database(name: str | None, mode: Mode) -> Database:
    """Open the database of a store without migrating it."""
    url = _resolve_name(name)
    if not is_server(url):
        return SqliteDatabase(user_path(url), mode)
    import_extra("psycopg", "A store on a PostgreSQL server", "postgres")
    from proctor.store.postgres import PostgresDatabase

    return PostgresDatabase(url, mode)


def store_url(name: str | None = None) -> str:
    """The URL or path of a store for any working directory; may contain a password."""
    url = _resolve_name(name)
    return url if is_server(url) else str(user_path(url).absolute())


def store_location(url: str, short: bool = False) -> str:
    """The location of a store for messages, without a password; `short` makes paths relative."""
    if is_server(url):
        from proctor.store.postgres import server_location

        return server_location(url)
    here = Path.cwd()
    return str(Path(url).relative_to(here)) if short and Path(url).is_relative_to(here) else url


def is_server(url: str) -> bool:
    return url.partition("://")[0] in SERVERS and "://" in url


def _resolve_name(name: str | None) -> str:
    """The path of a store, or the URL of its server."""
    url = name or os.environ.get("PROCTOR_STORE") or DEFAULT
    scheme, colon, rest = url.partition("://")
    if not colon or scheme in SERVERS:
        return url
    if scheme not in ("file", "sqlite"):
        raise StoreError(
            f"Unknown kind of store {scheme!r}: pass a folder, for example --store {DEFAULT}, or the URL of a server, "
            "postgresql://HOST/DATABASE."
        )
    return rest
