"""Is there a shape of this kind on the canvas?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proctor.shapes.batch.canvas import Canvas, as_set, value_table
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams, choose
from proctor.shapes.patterns import name_values, with_article
from proctor.shapes.tasks.existence import QUESTION

YES = 0


class ExistenceMaker(Maker):
    def write_phrases(self) -> None:
        values = value_table(self.board).values
        self._questions = self.book.add(QUESTION.format(with_article(name_values(*pair))) for pair in values)

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        self.skip_wanted_answers(streams)
        value = self._draw_existing(as_set(canvas.kinds), wanted == YES, streams)
        return [], [self._questions + value]

    def evidence(self, canvas: Canvas, wanted: Integers) -> Integers:
        return np.where(wanted == YES, 1, self.lines_to_mention(np.full_like(wanted, self.n)))

    def _draw_existing(self, kinds: Integers, exists: NDArray[np.bool_], streams: Streams) -> Integers:
        table = value_table(self.board)
        present = table.count(kinds) > 0
        incomplete = ~np.logical_and.reduceat(present, table.starts, axis=1)
        pattern = choose(incomplete, streams)
        of_pattern = table.pattern == pattern[:, None]
        there, not_there = choose(present & of_pattern, streams), choose(~present & of_pattern, streams)
        return np.where(exists, there, not_there)
