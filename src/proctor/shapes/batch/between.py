"""Is one shape between two others?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proctor.shapes.batch.canvas import Canvas
from proctor.shapes.batch.existence import YES
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams
from proctor.shapes.canvas import HALF_WIDTH
from proctor.shapes.tasks.between import AXES, QUESTION, TRIES, ranks_to_ask


class BetweenMaker(Maker):
    constant_evidence = True

    def write_phrases(self) -> None:
        names = self.board.names
        start, between, end, rest = QUESTION.replace("{}", "{0}", 1).split("{}")
        self._asked = self.book.add(start.format(words) + name for words in AXES.values() for name in names)
        self._between = self.book.add(between + name for name in names)
        self._end = self.book.add(end + name + rest for name in names)

    def draw_shapes(self, streams: Streams, wanted: Integers) -> Canvas:
        rows, ranks = np.arange(len(streams)), np.array(ranks_to_ask(self.n))
        way = ranks[streams.below(len(ranks))]
        self._ranks = np.take_along_axis(np.sort(streams.sample(self.n, 1 + int(ranks[0].max())), axis=1), way, axis=1)
        self._axis, self._backwards = streams.below(len(AXES)), streams.below(2) == 1
        self._four = np.empty((len(rows), 4), np.int64)
        canvas = Canvas(*(np.empty((len(rows), self.n), np.int64) for _ in Canvas._fields))
        drawn = np.empty(len(rows), np.uint64)  # filled at the first try
        for _ in range(TRIES):
            part = streams.part(rows)
            for whole, new in zip(canvas, super().draw_shapes(part, wanted[rows]), strict=True):
                whole[rows] = new
            self._four[rows] = self._among(canvas, rows)
            drawn[rows] = part.drawn
            streams.drawn = drawn
            rows = rows[self._touches(canvas, rows)]
        exchanging = streams.below(2) == 1
        exchanging[rows] = False
        self._exchange(canvas, np.nonzero(exchanging)[0])
        return canvas

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        self.skip_wanted_answers(streams)
        yes_end, asked, end, no_end = np.take_along_axis(canvas.kinds, self._four, axis=1).T
        ends = streams.shuffled(np.stack([end, np.where(wanted == YES, yes_end, no_end)], axis=1))
        asked = self._asked + self._axis * len(self.board.names) + asked
        return [], [asked, self._between + ends[:, 0], self._end + ends[:, 1]]

    def _among(self, canvas: Canvas, rows: NDArray[np.intp]) -> Integers:
        """The columns of the shapes that have the ranks asked about."""
        order = np.argsort(np.where(self._axis[rows, None] == 0, canvas.x[rows], canvas.y[rows]), axis=1)
        order = np.where(self._backwards[rows, None], order[:, ::-1], order)
        return np.take_along_axis(order, self._ranks[rows], axis=1)

    def _exchange(self, canvas: Canvas, rows: NDArray[np.intp]) -> None:
        """Two shapes of each of these rows get each other's place along the axis that is not asked about."""
        a, b = self._four[rows, 0], self._four[rows, 3]
        for number, places in enumerate((canvas.y, canvas.x)):
            mine = self._axis[rows] == number
            row, one, other = rows[mine], a[mine], b[mine]
            places[row, one], places[row, other] = places[row, other], places[row, one]

    def _touches(self, canvas: Canvas, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Whether one of the two would then touch another shape."""
        moved = Canvas(*(places.copy() for places in canvas))
        self._exchange(moved, rows)
        half = np.array([HALF_WIDTH[size] for size, _, _ in self.board.kinds])[canvas.kinds[rows]]
        touching = np.zeros(len(rows), np.bool_)
        for column in (0, 3):
            own = self._four[rows, column][:, None]
            x, y, width = (np.take_along_axis(part, own, axis=1) for part in (moved.x[rows], moved.y[rows], half))
            near = np.maximum(abs(moved.x[rows] - x), abs(moved.y[rows] - y)) <= half + width
            touching |= np.count_nonzero(near, axis=1) > 1  # itself is always near
        return touching
