"""Which shape is nearest to this one, or third farthest from it?"""

from __future__ import annotations

import numpy as np

from proctor.shapes.batch.canvas import Canvas, draw_with_selected, past
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.retries import Flags, Rows, draw_first, redraw
from proctor.shapes.batch.streams import Integers, Streams
from proctor.shapes.tasks.nearest import QUESTION, TRIES, name_rank


class NearestMaker(Maker):
    constant_evidence = True

    def write_phrases(self) -> None:
        others = self.n - 1
        head, tail = QUESTION.split("{} the ")
        self._ranks = self.book.add(f"{head}{name_rank(index, others)} the " for index in range(others))
        self._references = self.book.add(tail.format(name) for name in self.board.names)

    def draw_shapes(self, streams: Streams, wanted: Integers) -> Canvas:
        """Canvases are drawn again until a shape drawn blindly can be the reference."""
        whole = Canvas(*(np.empty((len(streams), self.n), np.int64) for _ in Canvas._fields))

        def attempt(rows: Rows, part: Streams) -> Flags:
            canvas = draw_with_selected(wanted[rows], self.n, part, self.board)
            for all_rows, drawn in zip(whole, canvas, strict=True):
                all_rows[rows] = drawn
            return _is_reference(canvas, _but(canvas.find(wanted[rows]), part.below(self.n - 1)))

        redraw(attempt, TRIES, streams)
        return whole

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        selected, row = canvas.find(wanted), np.arange(len(wanted))

        def fits(rows: Rows, number: Integers) -> Flags:
            return _is_reference(canvas.of_rows(rows), _but(selected[rows], number))

        self._reference = reference = _but(selected, draw_first(self.n - 1, fits, streams))
        distance = _squared_distances(canvas, reference)
        nearer = np.count_nonzero(distance < distance[row, selected][:, None], axis=1)  # with the reference itself
        return [], [self._ranks + nearer - 1, self._references + canvas.kinds[row, reference]]

    def choices(self, canvas: Canvas, wanted: Integers) -> list[Column]:
        """All but the reference."""
        others = past(self._reference[:, None], np.tile(np.arange(self.n - 1), (len(wanted), 1)))
        return [self.names_of(np.take_along_axis(canvas.kinds, others, axis=1))]


def _but(selected: Integers, number: Integers) -> Integers:
    """The n-th shape of those that are not selected."""
    return number + (number >= selected)


def _squared_distances(canvas: Canvas, reference: Integers) -> Integers:
    row = np.arange(len(reference))
    across, up = (along - along[row, reference][:, None] for along in (canvas.x, canvas.y))
    return across * across + up * up


def _is_reference(canvas: Canvas, reference: Integers) -> Flags:
    """Whether no two shapes are equally far from it."""
    distances = np.sort(_squared_distances(canvas, reference).astype(np.int16), axis=1)
    different: Flags = (distances[:, 1:] != distances[:, :-1]).all(axis=1)
    return different
