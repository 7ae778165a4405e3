"""Where is one shape relative to another, by their coordinates?"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from proctor.shapes.batch.canvas import Canvas, past, place_kinds
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams, choose
from proctor.shapes.canvas import Shape
from proctor.shapes.tasks.coordinate import DIRECTIONS, QUESTION, direction

# The signs of the differences in x and y that go with each direction.
_SIGNS = {
    direction(Shape("", "", "", x, y), Shape("", "", "", 0, 0)): (x, y)
    for x in (-1, 0, 1)
    for y in (-1, 0, 1)
    if (x, y) != (0, 0)
}
_SIGNS_X, _SIGNS_Y = np.array([_SIGNS[answer] for answer in DIRECTIONS], np.int8).T[:, :, None]


class CoordinateMaker(Maker):
    constant_evidence = True

    def write_phrases(self) -> None:
        self._where, self._relative = self.book.add_pair(QUESTION, self.board.names)
        self._first, self._second = np.array(list(permutations(range(self.n), 2))).T

    def draw_shapes(self, streams: Streams, wanted: Integers) -> Canvas:
        lines = self.board.cells
        rows, columns = streams.sample(lines, 2), streams.sample(lines, 2)
        corners = np.stack([rows[:, i] * lines + columns[:, j] for i in (0, 1) for j in (0, 1)], axis=1)
        cells = np.hstack([corners, past(corners, streams.sample(lines**2 - 4, self.n - 4))])
        canvas = place_kinds(streams.sample(len(self.board.kinds), self.n), streams, self.board, cells)
        canvas.y[:, 1] = canvas.y[:, 0]
        canvas.x[:, 2] = canvas.x[:, 0]
        return canvas.ordered(streams.sample(self.n, self.n))

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        self.skip_wanted_answers(streams)
        a, b = self._first, self._second
        x, y = canvas.x.astype(np.int8), canvas.y.astype(np.int8)
        across, up = np.sign(x[:, a] - x[:, b]), np.sign(y[:, a] - y[:, b])
        pair = choose((across == _SIGNS_X[wanted]) & (up == _SIGNS_Y[wanted]), streams)
        row = np.arange(len(pair))
        return [], [self._where + canvas.kinds[row, a[pair]], self._relative + canvas.kinds[row, b[pair]]]
