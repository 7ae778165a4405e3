"""Where runs and records are kept."""

from __future__ import annotations

import os
from pathlib import Path

from proctor.errors import StoreError
from proctor.store.sqlite import Store

DEFAULT = "proctor-runs"


def open_store(url: str | None = None, *, create: bool = True) -> Store:
    """The store named by the URL or path, by $PROCTOR_STORE, or in the working directory."""
    place = url or os.environ.get("PROCTOR_STORE") or DEFAULT
    if "://" in place:
        scheme, _, rest = place.partition("://")
        if scheme not in ("file", "sqlite"):
            raise StoreError(f"No store of kind {scheme!r}: give a folder, for example --store {DEFAULT}.")
        place = rest
    return Store(Path(place).expanduser(), create=create)
