"""Where is one shape relative to another that it is not described next to?"""

from __future__ import annotations

import msgspec
import numpy as np

from proctor.shapes.batch.canvas import Canvas
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams
from proctor.shapes.descriptions import RELATIONS_HEADING
from proctor.shapes.places import AXES, RELATIONS
from proctor.shapes.tasks.coordinate import QUESTION
from proctor.shapes.tasks.transitivity import LINE, pairs_apart
from proctor.shapes.typed import QUESTIONS


class TransitivityMaker(Maker):
    brings_description = True

    def write_phrases(self) -> None:
        names = self.board.names
        self._heading = self.book.add([RELATIONS_HEADING])
        self._lines_of_neighbours = self.book.add(
            "\n" + LINE.format(a, words, b) for words in RELATIONS.values() for a in names for b in names
        )
        self._where, self._relative = self.book.add_pair(QUESTION, names)
        self._apart = np.array(pairs_apart(self.n))
        self._sides = self.book.add_json(msgspec.json.encode(answers).decode()[1:-1] for answers in AXES.values())

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        # The answers are Left, Right, Below, Above: an axis each two, the lower coordinate first.
        axis, upper = np.divmod(wanted, 2)
        along = np.where(axis[:, None] == 0, canvas.x, canvas.y)
        row = np.take_along_axis(canvas.kinds, np.argsort(along, axis=1), axis=1)
        lines = self._describe(row, axis, streams)
        streams.skip(QUESTIONS - 1)  # the answers of the other questions
        places = self._apart[streams.below(len(self._apart))]
        self._distance: Integers = places[:, 1] - places[:, 0]
        low, high = np.take_along_axis(row, places, axis=1).T
        a, b = np.where(upper, high, low), np.where(upper, low, high)
        return lines, [self._where + a, self._relative + b]

    def evidence(self, canvas: Canvas, wanted: Integers) -> Integers:
        return self._distance

    def choices(self, canvas: Canvas, wanted: Integers) -> list[Column]:
        return [self._sides + wanted // 2]

    def _describe(self, row: Integers, axis: Integers, streams: Streams) -> list[Column]:
        before, after, kinds = row[:, :-1], row[:, 1:], len(self.board.kinds)
        turned = np.stack([streams.below(2) for _ in range(self.n - 1)], axis=1)
        first, second = np.where(turned, after, before), np.where(turned, before, after)
        said = ((2 * axis[:, None] + turned) * kinds + first) * kinds + second
        return [self._heading, streams.shuffled(self._lines_of_neighbours + said)]
