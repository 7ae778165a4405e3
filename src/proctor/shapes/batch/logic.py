"""Is a statement about the canvas true, with either … or, and, not?"""

from __future__ import annotations

from itertools import product

import numpy as np

from proctor.shapes.batch.canvas import Canvas, as_set, value_table
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams, choose
from proctor.shapes.tasks.logic import MANY, PARTS, QUESTION, SENTENCES, shapes_to_see, state, truths_of_left

# What may be true of the parts before the last, by sentence and by whether all of them are; and how many such cases
# there are. The last part comes next; what a sentence of two parts has in the third column is not used.
_TRUTHS = np.zeros((len(SENTENCES), 2, 2 ** (PARTS - 1), PARTS), np.bool_)
_CASES = np.zeros((len(SENTENCES), 2), np.int64)
for _number, _sentence in enumerate(SENTENCES):
    for _left in (False, True):
        for _case, _truths in enumerate(truths_of_left(_sentence, _left)):
            _TRUTHS[_number, int(_left), _case, : len(_truths)] = _truths
            _CASES[_number, int(_left)] += 1
_LAST = np.array([sentence.count("{}") - 1 for sentence in SENTENCES])  # column


class LogicMaker(Maker):
    def write_phrases(self) -> None:
        values = value_table(self.board).values
        sentences = [QUESTION.format(sentence).split("{}") for sentence in SENTENCES]
        # Before, between and after the parts; where there are two, nothing stands for the third.
        around = [[*words[:-1], *[""] * (PARTS + 1 - len(words)), words[-1]] for words in sentences]
        self._around = [self.book.add(words) for words in zip(*around, strict=True)]
        flags = product((False, True), repeat=PARTS)
        cases = list(product(product(range(MANY + 1), repeat=PARTS), flags))
        self._shapes_to_see = np.array(
            [
                shapes_to_see(self.n, counts[: last + 1], sentence, denied[: last + 1])
                for sentence, last in zip(SENTENCES, _LAST.tolist(), strict=True)
                for counts, denied in cases
            ]
        ).reshape(len(SENTENCES), *[MANY + 1] * PARTS, *[2] * PARTS)
        self._nothing_said = self.book.add([""])
        self._parts = self.book.add(state(*pair, denied) for denied in (False, True) for pair in values)

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        self.skip_wanted_answers(streams)
        table, row = value_table(self.board), np.arange(len(wanted))
        sentence, left = streams.below(len(SENTENCES)), streams.below(2)
        truths = _TRUTHS[sentence, left, streams.below(_CASES[sentence, left])]
        truths[row, _LAST[sentence]] = left == wanted  # Yes is answer 0: then the other side is true
        denied = np.stack([streams.below(2) for _ in range(PARTS)], axis=1)
        exist = truths != denied
        counts = table.count(as_set(canvas.kinds))
        present = counts > 0
        number = np.add.reduceat(present, table.starts, axis=1, dtype=np.int8)
        sizes = np.diff(table.starts, append=len(table.values))
        of_pattern = table.pattern == choose((number >= PARTS) & (sizes - number >= PARTS), streams)[:, None]
        things = np.empty((len(row), PARTS), np.int64)
        for part in range(PARTS):
            things[:, part] = choose((present == exist[:, part, None]) & of_pattern, streams)
            of_pattern[row, things[:, part]] = False
        seen = np.minimum(counts[row[:, None], things], MANY)
        self._seen = self._shapes_to_see[sentence, *seen.T, *denied.T.astype(np.int64)]
        parts = self._parts + len(table.values) * denied + things
        parts = np.where(np.arange(PARTS) <= _LAST[sentence][:, None], parts, self._nothing_said)
        words = [self._around[number] + sentence for number in range(PARTS + 1)]
        return [], [column for pair in zip(words, parts.T, strict=False) for column in pair] + words[-1:]

    def evidence(self, canvas: Canvas, wanted: Integers) -> Integers:
        return self.lines_to_mention(self._seen)
