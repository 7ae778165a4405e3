"""Canvases as arrays: a row for each canvas, a column for each shape."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from proctor.shapes.batch.streams import BITS, Integers, Streams
from proctor.shapes.canvas import Board
from proctor.shapes.patterns import PATTERNS, Pattern, Values, all_values, kinds_with

_CHUNK = 12  # bits of a set of kinds that are looked up at once


class Canvas(NamedTuple):
    kinds: Integers  # numbers in the board's list of kinds
    x: Integers
    y: Integers

    def ordered(self, order: Integers) -> Canvas:
        """The same shapes, listed in this order."""
        return Canvas(*(np.take_along_axis(part, order, axis=1) for part in self))

    def of_rows(self, rows: NDArray[np.intp]) -> Canvas:
        return Canvas(*(part[rows] for part in self))

    def find(self, kinds: Integers) -> Integers:
        """Where the shape of its kind is listed in each row."""
        column: Integers = np.argmax(self.kinds == kinds[:, None], axis=1)
        return column


def draw_canvas(n: int, streams: Streams, board: Board) -> Canvas:
    return place_kinds(streams.sample(len(board.kinds), n), streams, board)


def draw_with_selected(selected: Integers, n: int, streams: Streams, board: Board) -> Canvas:
    """As `ShapeTask` draws it: the selected kind of each row among others."""
    others = past(selected[:, None], streams.sample(len(board.kinds) - 1, n - 1))
    return place_kinds(streams.shuffled(np.hstack([selected[:, None], others])), streams, board)


def place_kinds(kinds: Integers, streams: Streams, board: Board, cells: Integers | None = None) -> Canvas:
    if cells is None:
        cells = streams.sample(board.cells**2, kinds.shape[1])
    row, column = np.divmod(cells, board.cells)
    middle = board.cells // 2
    x = (column - middle) * board.pitch + _offsets(column, row, streams, board)
    y = (row - middle) * board.pitch + _offsets(row, column, streams, board)
    return Canvas(kinds, x, y)


def _offsets(line: Integers, cell: Integers, streams: Streams, board: Board) -> Integers:
    step = 1 + streams.below(board.cells - 1)
    starts = np.stack([streams.below(board.cells) for _ in range(board.cells)], axis=1)
    start = np.take_along_axis(starts, line, axis=1)
    return (start + step[:, None] * cell) % board.cells - board.jitter


def past(taken: Integers, numbers: Integers) -> Integers:
    """The n-th of those that a row has not taken, for each of its numbers n."""
    for column in np.sort(taken, axis=1).T:
        numbers += numbers >= column[:, None]
    return numbers


def as_set(kinds: Integers) -> Integers:
    """The kinds of each row as one number, a bit for each kind."""
    joined: Integers = np.bitwise_or.reduce(np.int64(1) << kinds, axis=1)
    return joined


class ValueTable:
    """All values of all patterns of a board in one line, with the kinds that have them."""

    def __init__(self, board: Board) -> None:
        self.values: list[tuple[Pattern, Values]] = [(p, v) for p in PATTERNS for v in all_values(board, p)]
        self.pattern = np.array([PATTERNS.index(p) for p, _ in self.values])
        self.starts = np.searchsorted(self.pattern, np.arange(len(PATTERNS)))  # where each pattern begins
        numbers = {kind: number for number, kind in enumerate(board.kinds)}
        self.kinds = [[numbers[kind] for kind in kinds_with(board, p, v)] for p, v in self.values]
        self.sets = np.array([sum(1 << kind for kind in kinds) for kinds in self.kinds])
        bits = BITS.astype(np.uint8)
        # How many kinds of each chunk of a set have each of the values.
        self._counts = []
        for low in range(0, len(board.kinds), _CHUNK):
            part = (self.sets >> low & ((1 << _CHUNK) - 1)).astype(np.uint16)
            chunk = np.arange(1 << _CHUNK, dtype=np.uint16)[:, None] & part
            self._counts.append(bits[chunk & 0xFF] + bits[chunk >> 8])

    def count(self, sets: Integers) -> NDArray[np.uint8]:
        """How many kinds of each set have each of the values."""
        total: NDArray[np.uint8] = self._counts[0][sets & ((1 << _CHUNK) - 1)]
        for number, counts in enumerate(self._counts[1:], 1):
            total += counts[sets >> (number * _CHUNK) & ((1 << _CHUNK) - 1)]
        return total


@cache
def value_table(board: Board) -> ValueTable:
    return ValueTable(board)
