"""Positions along an axis, for tasks that ask for the leftmost shape, or the third highest."""

from __future__ import annotations

import numpy as np

from proctor.shapes.batch.canvas import Canvas
from proctor.shapes.batch.phrases import Phrasebook
from proctor.shapes.batch.streams import Integers, Streams
from proctor.shapes.places import SIDES, name_place


def add_places(book: Phrasebook, question: str, n: int) -> int:
    """The question for each rank along x, and then along y."""
    return book.add(question.format(name_place(index, n, axis)) for axis in SIDES for index in range(n))


def draw_place(canvas: Canvas, kinds: Integers, streams: Streams) -> Integers:
    """As `places.draw_place`, for the shape of its kind in each row: the number of one of those questions."""
    axis = streams.below(len(SIDES))
    along = np.where(axis[:, None] == 0, canvas.x, canvas.y)
    own = along[np.arange(len(along)), canvas.find(kinds)]
    number: Integers = axis * along.shape[1] + np.count_nonzero(along < own[:, None], axis=1)
    return number
