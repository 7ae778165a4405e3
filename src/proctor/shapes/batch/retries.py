"""Draws that some rows repeat, until what was drawn fits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from proctor.core.errors import TaskError
from proctor.shapes.batch.canvas import past
from proctor.shapes.batch.streams import Integers, Streams

Rows = NDArray[np.intp]
Flags = NDArray[np.bool_]


def redraw(attempt: Callable[[Rows, Streams], Flags], tries: int, streams: Streams) -> None:
    """Calls `attempt` with numbers of rows and their streams, again with those for which it returned False."""
    rows = np.arange(len(streams))
    for _ in range(tries):
        part = streams.part(rows)
        fits = attempt(rows, part)
        streams.put_back(rows, part)
        rows = rows[~fits]
        if not len(rows):
            return
    raise TaskError(f"nothing that fits was drawn in {tries} tries.")


def draw_first(pool: int, fits: Callable[[Rows, Integers], Flags], streams: Streams) -> Integers:
    """`Stream.first` of range(pool) for each row. `fits` gets numbers of rows, and a candidate for each of them."""
    chosen = np.empty(len(streams), np.int64)
    tried = np.empty((len(streams), 0), np.int64)

    def attempt(rows: Rows, part: Streams) -> Flags:
        nonlocal tried
        candidate = past(tried, part.below(pool - tried.shape[1])[:, None])
        chosen[rows] = candidate[:, 0]
        fitting = fits(rows, candidate[:, 0])
        tried = np.hstack([tried, candidate])[~fitting]
        return fitting

    redraw(attempt, pool, streams)
    return chosen
