"""Where runs and records are kept."""

from __future__ import annotations

import os
from pathlib import Path

from proctor.config import user_path
from proctor.errors import StoreError
from proctor.store.database import Mode
from proctor.store.sqlite import Sqlite
from proctor.store.store import Store

DEFAULT = "proctor-runs"


def open_store(name: str | None = None, mode: Mode = "create") -> Store:
    """The store of this URL or path, of $PROCTOR_STORE, or the one in the working directory."""
    return Store(Sqlite(store_folder(name), mode))


def store_url(name: str | None = None) -> str:
    """What opens this store from any working directory."""
    return str(store_folder(name).absolute())


def place_of(url: str, short: bool = False) -> str:
    """A store in words, for people; a folder as it is seen from here, where it is short."""
    here = Path.cwd()
    return str(Path(url).relative_to(here)) if short and Path(url).is_relative_to(here) else url


def store_folder(name: str | None) -> Path:
    place = name or os.environ.get("PROCTOR_STORE") or DEFAULT
    if "://" in place:
        scheme, _, rest = place.partition("://")
        if scheme not in ("file", "sqlite"):
            raise StoreError(f"No store of kind {scheme!r}: give a folder, for example --store {DEFAULT}.")
        place = rest
    return user_path(place)
