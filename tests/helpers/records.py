"""Records compared across runs."""

from __future__ import annotations

from typing import Any

import msgspec


def strip_times(records: Any) -> list[dict[str, Any]]:
    """Records as objects without their times, which differ in every run."""
    rows = [msgspec.to_builtins(record) for record in records]
    for row in rows:
        del row["timing"]
        for output in row["outputs"]:
            del output["seconds"]
    return rows
