"""Is one shape between two others?"""

from __future__ import annotations

import numpy as np

from proctor.shapes.batch.canvas import Canvas
from proctor.shapes.batch.existence import YES
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams
from proctor.shapes.tasks.between import AXES, QUESTION, TRIES


class BetweenMaker(Maker):
    def write_phrases(self) -> None:
        names = self.board.names
        start, between, end, rest = QUESTION.replace("{}", "{0}", 1).split("{}")
        self._asked = self.book.add(start.format(words) + name for words in AXES.values() for name in names)
        self._between = self.book.add(between + name for name in names)
        self._end = self.book.add(end + name + rest for name in names)

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        self.skip_wanted_answers(streams)
        axis, four = self._draw_four(canvas, streams)
        first, second, third, last = np.take_along_axis(canvas.kinds, four, axis=1).T
        ends = streams.shuffled(np.stack([third, np.where(wanted == YES, first, last)], axis=1))
        asked = self._asked + axis * len(self.board.names) + second
        return [], [asked, self._between + ends[:, 0], self._end + ends[:, 1]]

    def _draw_four(self, canvas: Canvas, streams: Streams) -> tuple[Integers, Integers]:
        """The axis of each row and the columns of its four shapes, drawn again where they will not do."""
        axis, four = np.empty(len(streams), np.int64), np.empty((len(streams), 4), np.int64)
        drawn = np.empty(len(streams), np.uint64)
        rows = np.arange(len(streams))
        for _ in range(TRIES):
            part = streams.part(rows)
            axis[rows] = part.below(len(AXES))
            five = part.sample(self.n, 5)
            along, across = (
                np.take_along_axis(np.where(axis[rows, None] == number, canvas.x[rows], canvas.y[rows]), five, axis=1)
                for number in (0, 1)
            )
            order = np.argsort(along, axis=1)
            order = np.where((part.below(2) == 1)[:, None], order[:, ::-1], order)[:, [0, 1, 2, 4]]
            four[rows] = np.take_along_axis(five, order, axis=1)
            first, second, third, last = np.take_along_axis(across, order, axis=1).T
            drawn[rows] = part.drawn
            rows = rows[((first < second) != (last < second)) | ((first < third) != (last < third))]
            streams.drawn = drawn
        return axis, four
