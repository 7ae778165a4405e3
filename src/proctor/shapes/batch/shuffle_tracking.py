"""Shapes in a line are swapped: which one stands where in the end?"""

from __future__ import annotations

import numpy as np

from proctor.shapes.batch.canvas import Canvas, past, place_kinds
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams
from proctor.shapes.tasks.shuffle_tracking import HEADING, QUESTION, SWAP, name_place
from proctor.shapes.typed import QUESTIONS


class ShuffleTrackingMaker(Maker):
    brings_description = True

    def write_phrases(self) -> None:
        names = self.board.names
        self._heading = self.book.add([f"{HEADING} "])
        self._listed = self.book.add(f"{name}, " for name in names)
        self._listed_last = self.book.add(f"{name}." for name in names)
        self._swapped, self._with = self.book.add_pair("\n" + SWAP, names)
        self._questions = self.book.add(QUESTION.format(name_place(place, self.n)) for place in range(self.n))

    def draw_shapes(self, streams: Streams, wanted: Integers) -> Canvas:
        selected = wanted[:, None]
        drawn = past(selected, streams.sample(len(self.board.kinds) - 1, self.n - 1))
        return place_kinds(streams.shuffled(np.hstack([selected, drawn])), streams, self.board)

    def choices(self, canvas: Canvas, wanted: Integers) -> list[Column]:
        return [self.names_of(canvas.kinds)]

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        line = canvas.ordered(np.argsort(-canvas.y, axis=1)).kinds
        listed = self._listed + line
        listed[:, -1] += self._listed_last - self._listed
        lines: list[Column] = [self._heading, listed]
        row = np.arange(len(line))
        for _ in range(self.task.settings.events):
            i, j = streams.sample(self.n, 2).T
            a, b = line[row, i], line[row, j]
            lines += [self._swapped + a, self._with + b]
            line[row, i], line[row, j] = b, a
        streams.skip(min(QUESTIONS, self.n))
        return lines, [self._questions + np.argmax(line == wanted[:, None], axis=1)]
