"""Shapes in a line are swapped: which one stands where in the end?"""

from __future__ import annotations

import numpy as np

from proctor.shapes.batch.canvas import Canvas, past, place_kinds
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams, pick
from proctor.shapes.tasks.shuffle_tracking import HEADING, QUESTION, SCALE, SWAP, kept_of_scale, name_place


class ShuffleTrackingMaker(Maker):
    brings_description = True
    constant_evidence = True

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
        swaps = [streams.sample(self.n, 2) for _ in range(self.task.settings.events)]
        self.skip_wanted_answers(streams)
        for pair in self._with_a_part_for(np.argmax(line == wanted[:, None], axis=1), swaps, streams):
            a, b = np.take_along_axis(line, pair, axis=1).T
            lines += [self._swapped + a, self._with + b]
            np.put_along_axis(line, pair, np.stack([b, a], axis=1), axis=1)
        return lines, [self._questions + np.argmax(line == wanted[:, None], axis=1)]

    def _with_a_part_for(self, place: Integers, swaps: list[Integers], streams: Streams) -> list[Integers]:
        line = np.tile(np.arange(self.n), (len(place), 1))
        for pair in swaps:
            np.put_along_axis(line, pair, np.take_along_axis(line, pair[:, ::-1], axis=1), axis=1)
        moved = line != np.arange(self.n)
        count = np.count_nonzero(moved, axis=1)
        kept = streams.below(SCALE) < kept_of_scale(self.n, len(swaps))
        other = pick(moved, streams.below(np.maximum(1, count)))
        exchanged = ~kept & ~moved[np.arange(len(place)), place] & (count > 0)
        a, b = np.where(exchanged, place, -1)[:, None], np.where(exchanged, other, -1)[:, None]
        return [np.where(pair == a, b, np.where(pair == b, a, pair)) for pair in swaps]
