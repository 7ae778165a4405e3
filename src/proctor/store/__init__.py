"""Where runs and records are kept."""

from __future__ import annotations

import os
from pathlib import Path

from proctor.config import user_path
from proctor.errors import StoreError
from proctor.store.sqlite import Mode, Store

DEFAULT = "proctor-runs"


def open_store(url: str | None = None, mode: Mode = "create") -> Store:
    return Store(store_folder(url), mode)


def store_folder(url: str | None) -> Path:
    """The folder named by the URL or path, by $PROCTOR_STORE, or the one in the working directory."""
    place = url or os.environ.get("PROCTOR_STORE") or DEFAULT
    if "://" in place:
        scheme, _, rest = place.partition("://")
        if scheme not in ("file", "sqlite"):
            raise StoreError(f"No store of kind {scheme!r}: give a folder, for example --store {DEFAULT}.")
        place = rest
    return user_path(place)
