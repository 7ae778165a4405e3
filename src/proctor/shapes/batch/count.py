"""How many shapes of this kind are on the canvas?"""

from __future__ import annotations

import numpy as np

from proctor.shapes.batch.canvas import Canvas, as_set, place_kinds, value_table
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams, choose
from proctor.shapes.patterns import PATTERNS, all_values, capacity, name_values
from proctor.shapes.tasks.count import QUESTION, largest_count, patterns_for


class CountMaker(Maker):
    def write_phrases(self) -> None:
        table = value_table(self.board)
        self._most = largest_count(self.board, self.n)
        self._patterns = patterns_for(self.board, self.n, self._most)
        self._capacities = np.array([capacity(self.board, pattern) for pattern in PATTERNS])
        self._questions = self.book.add(
            QUESTION.format(name_values(pattern, values, plural=True)) for pattern, values in table.values
        )

    def draw_shapes(self, streams: Streams, wanted: Integers) -> Canvas:
        pattern = streams.below(len(self._patterns))
        kinds = np.empty((len(streams), self.n), np.int64)
        drawn = np.empty(len(streams), np.uint64)
        for number in range(len(self._patterns)):  # each pattern takes another number of draws
            rows = np.nonzero(pattern == number)[0]
            part = streams.part(rows)
            kinds[rows] = self._draw_kinds(number, part)
            drawn[rows] = part.drawn
        streams.drawn = drawn
        return place_kinds(streams.shuffled(kinds), streams, self.board)

    def _draw_kinds(self, number: int, streams: Streams) -> Integers:
        """Kinds of which the values of this pattern occur 0, 1, 2 … times, and others to fill up."""
        table, pattern, most = value_table(self.board), self._patterns[number], self._most
        start = table.starts[PATTERNS.index(pattern)]
        size = len(all_values(self.board, pattern))
        having = np.array(table.kinds[start : start + size])
        values = streams.sample(size, size)
        kinds = [streams.sample(having[values[:, occurring]], occurring) for occurring in range(most + 1)]
        rest = having[values[:, most + 1 :]].reshape(len(streams), having[most + 1 :].size)
        kinds.append(streams.sample(rest, self.n - most * (most + 1) // 2))
        return np.hstack(kinds)

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        self.skip_wanted_answers(streams)
        table = value_table(self.board)
        counts = table.count(as_set(canvas.kinds))
        every = (2 << self._most) - 1  # a bit for each answer
        occurring = np.bitwise_or.reduceat(np.int64(1) << counts, table.starts, axis=1)
        self._asked = pattern = choose((occurring & every) == every, streams)
        of_pattern = table.pattern == pattern[:, None]
        values = [choose((counts == number) & of_pattern, streams) for number in range(self._most + 1)]
        return [], [self._questions + np.choose(wanted, values)]

    def evidence(self, canvas: Canvas, wanted: Integers) -> Integers:
        return self.lines_to_mention(np.where(wanted == self._capacities[self._asked], wanted, self.n))
