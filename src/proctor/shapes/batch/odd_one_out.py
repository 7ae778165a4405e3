"""Seen from one shape, two of three others are in the same direction: which is the odd one out?"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.shapes.batch.canvas import Canvas, past, place_kinds
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.retries import Flags, Rows, redraw
from proctor.shapes.batch.streams import Integers, Streams, choose, choose_bit
from proctor.shapes.tasks.odd_one_out import QUESTION, SEARCHED, TRIES
from proctor.shapes.typed import QUESTIONS


class OddOneOutMaker(Maker):
    constant_evidence = True

    def write_phrases(self) -> None:
        pieces = QUESTION.split("{}")
        self._named = [self.book.add(piece + name for name in self.board.names) for piece in pieces[:-1]]
        self._which = self.book.add(pieces[-1:])
        self._searched = np.array(list(combinations(range(min(SEARCHED, self.n)), 3))).T
        pairs = np.array(list(combinations(range(1, self.n), 2))).T
        self._with_first = np.vstack([np.zeros_like(pairs[:1]), pairs])

    def draw_shapes(self, streams: Streams, wanted: Integers) -> Canvas:
        spots, fitting = self._draw_spots(streams)
        row, column = np.arange(len(streams)), np.arange(self.n)
        triple = choose(fitting, streams)
        spot = self._searched[streams.below(3), triple][:, None]
        others = past(wanted[:, None], streams.sample(len(self.board.kinds) - 1, self.n - 1))
        kinds = others[row[:, None], np.minimum(column - (column > spot), self.n - 2)]
        kinds[row, spot[:, 0]] = wanted
        return Canvas(kinds, spots.x, spots.y).ordered(streams.sample(self.n, self.n))

    def _draw_spots(self, streams: Streams) -> tuple[Canvas, Flags]:
        """Positions, and which of the triples searched can be asked about: one at least."""
        whole = Canvas(*(np.zeros((len(streams), self.n), np.int64) for _ in Canvas._fields))
        fitting = np.empty((len(streams), self._searched.shape[1]), np.bool_)

        def attempt(rows: Rows, part: Streams) -> Flags:
            spots = place_kinds(whole.kinds[rows], part, self.board)
            whole.x[rows], whole.y[rows] = spots.x, spots.y
            fitting[rows] = found = BatchDirectionViews(spots.x, spots.y).fitting(self._searched)
            fits: Flags = np.any(found, axis=1)
            return fits

        redraw(attempt, TRIES, streams)
        return whole, fitting

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        row = np.arange(len(wanted))
        # The selected shape comes first now, the others stay in their order.
        others = past(canvas.find(wanted)[:, None], np.tile(np.arange(self.n - 1), (len(row), 1)))
        canvas = canvas.ordered(np.hstack([canvas.find(wanted)[:, None], others]))
        views = BatchDirectionViews(canvas.x, canvas.y)
        triple = self._with_first[:, choose(views.fitting(self._with_first), streams)]
        streams.skip(QUESTIONS - 1)  # the odd ones of the other questions
        pivot = choose_bit(views.pivots_of_first(triple), streams)
        named = streams.shuffled(triple.T)
        kinds = [canvas.kinds[row, column] for column in (pivot, *named.T)]
        self._three = np.stack(kinds[1:], axis=1)
        return [], [*(words + kind for words, kind in zip(self._named, kinds, strict=True)), self._which]

    def choices(self, canvas: Canvas, wanted: Integers) -> list[Column]:
        """The three, in the order of the canvas."""
        place = np.stack([canvas.find(kind) for kind in self._three.T], axis=1)
        return [self.names_of(np.take_along_axis(self._three, np.argsort(place, axis=1), axis=1))]


class BatchDirectionViews:
    """As in the task. Arrays have a row for each shape or triple here, and a column for each canvas."""

    def __init__(self, x: Integers, y: Integers) -> None:
        n = x.shape[1]
        kind = np.dtype(f"u{next(size for size in (1, 2, 4, 8) if n <= 8 * size)}")  # the smallest that holds all bits
        self._bits = np.array([1 << shape for shape in range(n)], kind)
        left, below = (_before(along.T.astype(np.int8), self._bits) for along in (x, y))
        self._parting = (left[:, None] ^ left) | (below[:, None] ^ below)

    def fitting(self, triples: Integers) -> Flags:
        """Whether each of the three can be the odd one; a row for each canvas, a column for each triple."""
        (ab, bc, ca), others = self._partings(triples), self._others(triples)[:, None]
        fits = (ab & ca & ~bc & others != 0) & (ab & bc & ~ca & others != 0) & (bc & ca & ~ab & others != 0)
        return np.ascontiguousarray(fits.T)

    def pivots_of_first(self, triple: Integers) -> Integers:
        """The shapes from which the first of the three is the odd one, for a triple of each canvas."""
        ab, bc, ca = self._partings(triple, np.arange(triple.shape[1]))
        pivots: Integers = (ab & ca & ~bc & self._others(triple)).astype(np.int64)[:, None]
        return pivots

    def _partings(self, triples: Integers, *canvas: Integers) -> list[NDArray[Any]]:
        a, b, c = triples
        return [self._parting[(*pair, *canvas)] for pair in ((a, b), (b, c), (c, a))]

    def _others(self, triples: Integers) -> NDArray[Any]:
        others: NDArray[Any] = ~np.bitwise_or.reduce(self._bits[triples], axis=0)
        return others


def _before(along: NDArray[np.int8], bits: NDArray[Any]) -> NDArray[Any]:
    """For each shape, the set of those with a smaller coordinate."""
    before = np.zeros(along.shape, bits.dtype)
    for other, bit in zip(along, bits, strict=True):
        before |= (other < along) * bit
    return before
