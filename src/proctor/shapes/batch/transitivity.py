"""Where is one shape relative to another that it is not described next to?"""

from __future__ import annotations

import numpy as np

from proctor.shapes.batch.canvas import Canvas, others, place_kinds
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams
from proctor.shapes.descriptions import RELATIONS
from proctor.shapes.tasks.transitivity import LINE, OPPOSITES, QUESTION, WORDS

LEFT, RIGHT, ABOVE, BELOW = range(4)  # numbers of the answers
_OPPOSITES = np.array([list(WORDS).index(OPPOSITES[side]) for side in WORDS])
_FAR = 1000  # further than any shape is from another


class TransitivityMaker(Maker):
    brings_description = True

    def write_phrases(self) -> None:
        names = self.board.names
        self._heading = self.book.add([RELATIONS])
        self._said = self.book.add(
            "\n" + LINE.format(shape, words, before) for words in WORDS.values() for shape in names for before in names
        )
        self._where, self._relative = self.book.add_pair(QUESTION, names)
        self._apart = _pairs_apart(self.n)

    def draw_shapes(self, streams: Streams, wanted: Integers) -> Canvas:
        lines = self.board.cells
        row, column = 1 + streams.below(lines - 2), 1 + streams.below(lines - 2)
        left, right = streams.below(column), column + 1 + streams.below(lines - 1 - column)
        below, above = streams.below(row), row + 1 + streams.below(lines - 1 - row)
        rows = np.stack([row, streams.below(lines), streams.below(lines), above, below], axis=1)
        cross = rows * lines + np.stack([column, left, right, column, column], axis=1)
        cells = np.hstack([cross, streams.sample(others(cross, lines**2), self.n - cross.shape[1])])
        return place_kinds(streams.sample(len(self.board.kinds), self.n), streams, self.board, cells)

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        side, distance = self._chains(canvas, streams)
        lines = self._describe(canvas, side, distance, streams.sample(len(WORDS), len(WORDS)))
        self.skip_wanted_answers(streams)
        # The arm from its far end on the side of the answer, through the pivot, to its other end.
        opposite = _OPPOSITES[wanted]
        place = np.where(side == wanted[:, None], -distance, np.where(side == opposite[:, None], distance, _FAR))
        order = np.argsort(np.hstack([np.zeros((len(place), 1), np.int64), place]), axis=1)
        length = 1 + np.count_nonzero(place != _FAR, axis=1)
        pair = self._apart[length, streams.below((length - 1) * (length - 2) // 2)]
        asked = np.take_along_axis(canvas.kinds, np.take_along_axis(order, pair, axis=1), axis=1)
        return lines, [self._where + asked[:, 0], self._relative + asked[:, 1]]

    def _chains(self, canvas: Canvas, streams: Streams) -> tuple[Integers, Integers]:
        """The side of each shape but the pivot, and its distance from the pivot that way."""
        across, up = canvas.x[:, 1:] - canvas.x[:, :1], canvas.y[:, 1:] - canvas.y[:, :1]
        beside = np.empty(across.shape, np.bool_)
        beside[:, : len(WORDS)] = [True, True, False, False]
        for column in range(len(WORDS), self.n - 1):
            beside[:, column] = streams.below(2)
        side = np.where(beside, np.where(across < 0, LEFT, RIGHT), np.where(up < 0, BELOW, ABOVE))
        return side, np.abs(np.where(beside, across, up))

    def _describe(self, canvas: Canvas, side: Integers, distance: Integers, sides: Integers) -> list[Column]:
        """Chain by chain in the order of the sides, each from the pivot outwards."""
        turn = np.argsort(sides, axis=1)
        order = np.argsort(np.take_along_axis(turn, side, axis=1) * _FAR + distance, axis=1)
        side, shape = (np.take_along_axis(part, order, axis=1) for part in (side, canvas.kinds[:, 1:]))
        # All four sides have a chain, so the first shape's side is never that of the last.
        before = np.where(side == np.roll(side, 1, axis=1), np.roll(shape, 1, axis=1), canvas.kinds[:, :1])
        kinds = len(self.board.kinds)
        return [self._heading, self._said + (side * kinds + shape) * kinds + before]


def _pairs_apart(n: int) -> Integers:
    """For arms of 0 … n shapes, the pairs of places with others between them."""
    pairs = np.zeros((n + 1, n * n // 2, 2), np.int64)
    for arm in range(3, n + 1):
        apart = [(i, j) for i in range(arm) for j in range(i + 2, arm)]
        pairs[arm, : len(apart)] = apart
    return pairs
