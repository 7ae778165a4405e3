"""Are there as many shapes of one kind as of another?"""

from __future__ import annotations

import numpy as np

from proctor.shapes.batch.canvas import Canvas, as_set, value_table
from proctor.shapes.batch.existence import YES
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams, choose, pick
from proctor.shapes.patterns import PATTERNS, capacity, name_values
from proctor.shapes.tasks.comparison import QUESTION, TWICE, shapes_to_see


class ComparisonMaker(Maker):
    def write_phrases(self) -> None:
        table = value_table(self.board)
        self._values = int(table.starts[-1])  # all but those of single kinds
        self._pattern = table.pattern[: self._values]
        self._starts = table.starts[:-1]
        # A number that values share is at most the capacity of a pattern with enough of them.
        self._numbers = np.arange(1 + max(len(kinds) for kinds in table.kinds[: self._values]))
        # By pattern, and by the two numbers; those that cannot be are never looked up.
        capacities, numbers = (capacity(self.board, pattern) for pattern in PATTERNS), range(len(self._numbers))
        self._shapes_to_see = np.array(
            [[[shapes_to_see(self.n, (a, b), most) for b in numbers] for a in numbers] for most in capacities]
        )
        names = [name_values(*pair, plural=True) for pair in table.values[: self._values]]
        self._as_many, self._as = self.book.add_pair(QUESTION, names)

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        self.skip_wanted_answers(streams)
        counts = value_table(self.board).count(as_set(canvas.kinds))[:, : self._values]
        often = np.stack(
            [np.add.reduceat(counts == number, self._starts, axis=1, dtype=np.int8) for number in self._numbers], axis=2
        )
        shared = often >= TWICE  # of each row and pattern, the numbers that values have in common
        above_zero = np.count_nonzero(shared[:, :, 1:], axis=2) >= 2
        shared[above_zero.any(axis=1), :, 0] = False
        pattern = choose(np.count_nonzero(shared, axis=2) >= 2, streams)
        mine = shared[np.arange(len(pattern)), pattern]
        total = np.count_nonzero(mine, axis=1)
        place = streams.below(total)
        other_place = 1 + streams.below(total - 1)  # as `Stream.sample` draws the second of two
        number, other = pick(mine, place), pick(mine, np.where(other_place == place, 0, other_place))
        fitting = self._pattern == pattern[:, None]
        first = choose(fitting & (counts == number[:, None]), streams)
        fitting[np.arange(len(first)), first] = False
        other = np.where(wanted == YES, number, other)
        second = choose(fitting & (counts == other[:, None]), streams)
        self._seen = self._shapes_to_see[pattern, number, other]
        return [], [self._as_many + first, self._as + second]

    def evidence(self, canvas: Canvas, wanted: Integers) -> Integers:
        return self.lines_to_mention(self._seen)
