"""Which shape is nearest to this one, or third farthest from it?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proctor.errors import TaskError
from proctor.shapes.batch.canvas import Canvas, draw_with_selected
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams, draw_first
from proctor.shapes.tasks.nearest import QUESTION, TRIES, name_rank


class NearestMaker(Maker):
    def write_phrases(self) -> None:
        others = self.n - 1
        head, tail = QUESTION.split("{} the ")
        self._ranks = self.book.add(f"{head}{name_rank(index, others)} the " for index in range(others))
        self._references = self.book.add(tail.format(name) for name in self.board.names)

    def draw_shapes(self, streams: Streams, wanted: Integers) -> Canvas:
        """Canvases are drawn again until a shape drawn blindly can be the reference."""
        rows = np.arange(len(streams))
        whole = Canvas(*(np.empty((len(rows), self.n), np.int64) for _ in Canvas._fields))
        for _ in range(TRIES):
            part = streams.part(rows)
            canvas = draw_with_selected(wanted[rows], self.n, part, self.board)
            kept = _is_reference(canvas, _but(canvas.find(wanted[rows]), part.below(self.n - 1)))
            streams.put_back(rows, part)
            for all_rows, drawn in zip(whole, canvas, strict=True):
                all_rows[rows] = drawn
            rows = rows[~kept]
            if not len(rows):
                return whole
        raise TaskError(f"no canvas of {self.n} shapes without equal distances in {TRIES} tries.")

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        selected, row = canvas.find(wanted), np.arange(len(wanted))

        def fits(rows: NDArray[np.intp], number: Integers) -> NDArray[np.bool_]:
            return _is_reference(canvas.of_rows(rows), _but(selected[rows], number))

        reference = _but(selected, draw_first(self.n - 1, fits, streams))
        distance = _squared_distances(canvas, reference)
        nearer = np.count_nonzero(distance < distance[row, selected][:, None], axis=1)  # with the reference itself
        return [], [self._ranks + nearer - 1, self._references + canvas.kinds[row, reference]]


def _but(selected: Integers, number: Integers) -> Integers:
    """The n-th shape of those that are not selected."""
    return number + (number >= selected)


def _squared_distances(canvas: Canvas, reference: Integers) -> Integers:
    row = np.arange(len(reference))
    across, up = (along - along[row, reference][:, None] for along in (canvas.x, canvas.y))
    return across * across + up * up


def _is_reference(canvas: Canvas, reference: Integers) -> NDArray[np.bool_]:
    """Whether no two shapes are equally far from it."""
    distances = np.sort(_squared_distances(canvas, reference).astype(np.int16), axis=1)
    different: NDArray[np.bool_] = (distances[:, 1:] != distances[:, :-1]).all(axis=1)
    return different
