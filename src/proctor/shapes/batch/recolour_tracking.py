"""Colours change places: which one has the shape at this place in the end?"""

from __future__ import annotations

import numpy as np

from proctor.shapes.batch.canvas import Canvas, place_kinds
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams, choose
from proctor.shapes.tasks.recolour_tracking import EVENT, QUESTION


class RecolourTrackingMaker(Maker):
    constant_evidence = True

    def write_phrases(self) -> None:
        board = self.board
        self._exchanges = self.book.add("\n" + EVENT.format(a, b) for a in board.colours for b in board.colours)
        bound = range(-board.bound, board.bound + 1)
        to_x, from_y = QUESTION.split(", ")
        self._to_x = self.book.add(to_x.format(x) + ", " for x in bound)
        self._from_y = self.book.add(from_y.format(y) for y in bound)
        self._colour_of = np.array([board.colours.index(colour) for _, colour, _ in board.kinds])

    def draw_shapes(self, streams: Streams, wanted: Integers) -> Canvas:
        """As `draw_kinds`."""
        drawn = streams.sample(len(self.board.kinds), len(self.board.kinds))
        colours, row = self._colour_of[drawn], np.arange(len(drawn))
        rank = np.full(drawn.shape, len(self.board.colours))  # the first of each colour, then the others as they came
        for colour in range(len(self.board.colours)):
            rank[row, np.argmax(colours == colour, axis=1)] = colour
        chosen = np.argsort(rank, axis=1, kind="stable")[:, : self.n]
        kinds = streams.shuffled(np.take_along_axis(drawn, chosen, axis=1))
        return place_kinds(kinds, streams, self.board)

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        lines: list[Column] = []
        number = len(self.board.colours)
        row = np.arange(len(wanted))
        now = np.tile(np.arange(number), (len(wanted), 1))  # by the colour that a shape had at the beginning
        was = now.copy()  # by the colour that it has
        for _ in range(self.task.settings.events):
            a, b = streams.sample(number, 2).T
            lines.append(self._exchanges + a * number + b)
            first, second = was[row, a], was[row, b]
            was[row, a], was[row, b] = second, first
        now[row[:, None], was] = np.arange(number)
        self.skip_wanted_answers(streams)
        colours = np.take_along_axis(now, self._colour_of[canvas.kinds], axis=1)
        asked = choose(colours == wanted[:, None], streams)
        x, y = canvas.x[row, asked], canvas.y[row, asked]
        return lines, [self._to_x + x + self.board.bound, self._from_y + y + self.board.bound]
