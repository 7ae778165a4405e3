"""Shapes turn to other colours: which one has the shape at this place in the end?"""

from __future__ import annotations

import math

import numpy as np

from proctor.shapes.batch.canvas import Canvas, place_kinds
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import BITS, NTH_BIT, Integers, Streams, choose
from proctor.shapes.tasks.recolour_tracking import EVENT, GROUPS, QUESTION


class RecolourTrackingMaker(Maker):
    def write_phrases(self) -> None:
        board = self.board
        self._turns = self.book.add(
            "\n" + EVENT.format(name, colour) for name in board.names for colour in board.colours
        )
        bound = range(-board.bound, board.bound + 1)
        to_x, from_y = QUESTION.split(", ")
        self._to_x = self.book.add(to_x.format(x) + ", " for x in bound)
        self._from_y = self.book.add(from_y.format(y) for y in bound)
        kinds = [board.kinds.index((size, colour, form)) for size, form in GROUPS for colour in board.colours]
        self._kinds = np.array(kinds)  # by group and colour

    def draw_shapes(self, streams: Streams, wanted: Integers) -> Canvas:
        """The history is drawn backwards. What `ask` needs of it is kept."""
        kinds = _Kinds(len(self.board.colours), streams)
        shapes = kinds.draw(self.n)
        self._colours_now = shapes % kinds.colours
        row, self._lines = np.arange(len(shapes)), list[Column]()
        for _ in range(self.task.settings.events):
            index = streams.below(self.n)
            group, after = np.divmod(shapes[row, index], kinds.colours)
            before = kinds.add(group)
            kinds.remove(group, after)
            shapes[row, index] = changed = group * kinds.colours + before
            self._lines.insert(0, self._turns + self._kinds[changed] * kinds.colours + after)
        return place_kinds(self._kinds[shapes], streams, self.board)

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        self.skip_wanted_answers(streams)
        asked, row = choose(self._colours_now == wanted[:, None], streams), np.arange(len(wanted))
        x, y = canvas.x[row, asked], canvas.y[row, asked]
        return self._lines, [self._to_x + x + self.board.bound, self._from_y + y + self.board.bound]


class _Kinds:
    """Which colours there are of each group, which is a size and a form: a bit for each colour."""

    def __init__(self, colours: int, streams: Streams) -> None:
        self.colours, self._streams = colours, streams
        self._row = np.arange(len(streams))
        self._present = np.zeros((len(streams), len(GROUPS)), np.int64)

    def draw(self, n: int) -> Integers:
        """As `draw_kinds`: each shape as group * colours + colour."""
        together = self.colours - 1
        groups = self._streams.sample(len(GROUPS), math.ceil(n / together))
        groups = self._streams.shuffled(groups[:, np.arange(n) % groups.shape[1]])
        colours = np.empty_like(groups)
        colours[:, : self.colours] = self._streams.sample(self.colours, self.colours)
        for i in range(self.colours):
            self._present[self._row, groups[:, i]] |= 1 << colours[:, i]
        for i in range(self.colours, n):
            colours[:, i] = self.add(groups[:, i])
        return self._streams.shuffled(groups * self.colours + colours)

    def add(self, group: Integers) -> Integers:
        """A colour that the group does not have: it has it from now on."""
        present = self._present[self._row, group]
        free = ~present & ((1 << self.colours) - 1)
        colour: Integers = NTH_BIT[free, self._streams.below(BITS[free])]
        self._present[self._row, group] = present | 1 << colour
        return colour

    def remove(self, group: Integers, colour: Integers) -> None:
        self._present[self._row, group] ^= 1 << colour
