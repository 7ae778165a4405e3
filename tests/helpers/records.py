"""Records, as tests compare them."""

from __future__ import annotations

from typing import Any

import msgspec


def plain(records: Any) -> list[dict[str, Any]]:
    """Records without what no two runs have in common: the time they took."""
    rows = [msgspec.to_builtins(record) for record in records]
    for row in rows:
        del row["timing"]
        for output in row["outputs"]:
            del output["seconds"]
    return rows
