"""Is a statement about the canvas true, with and, or and not?"""

from __future__ import annotations

from itertools import product

import numpy as np

from proctor.shapes.batch.canvas import Canvas, as_set, value_table
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams, choose
from proctor.shapes.tasks.logic import MANY, QUESTION, SENTENCES, fitting_truths, shapes_to_see, state

# What may be true of the two parts, by sentence and answer; and how many such cases there are.
_TRUTHS = np.zeros((len(SENTENCES), 2, 3, 2), np.bool_)
_CASES = np.zeros((len(SENTENCES), 2), np.int64)
for _number, _sentence in enumerate(SENTENCES):
    for _answer, _text in enumerate(("Yes", "No")):
        _fitting = fitting_truths(_sentence, _text)
        _TRUTHS[_number, _answer, : len(_fitting)] = _fitting
        _CASES[_number, _answer] = len(_fitting)


class LogicMaker(Maker):
    def write_phrases(self) -> None:
        values = value_table(self.board).values
        sentences = [QUESTION.format(sentence).split("{}") for sentence in SENTENCES]
        self._around = [self.book.add(words) for words in zip(*sentences, strict=True)]  # before, between and after
        numbers = range(MANY + 1)
        cases = product(SENTENCES, numbers, numbers, (False, True), (False, True))
        self._shapes_to_see = np.array(
            [shapes_to_see(self.n, (a, b), sentence, (no, also_no)) for sentence, a, b, no, also_no in cases]
        ).reshape(len(SENTENCES), len(numbers), len(numbers), 2, 2)
        self._parts = self.book.add(state(*pair, denied) for denied in (False, True) for pair in values)

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        self.skip_wanted_answers(streams)
        table, row = value_table(self.board), np.arange(len(wanted))
        sentence = streams.below(len(SENTENCES))
        truths = _TRUTHS[sentence, wanted, streams.below(_CASES[sentence, wanted])]
        denied = np.stack([streams.below(2), streams.below(2)], axis=1)
        exist = truths != denied
        counts = table.count(as_set(canvas.kinds))
        present = counts > 0
        number = np.add.reduceat(present, table.starts, axis=1, dtype=np.int8)
        sizes = np.diff(table.starts, append=len(table.values))
        of_pattern = table.pattern == choose((number >= 2) & (sizes - number >= 2), streams)[:, None]
        first = choose((present == exist[:, :1]) & of_pattern, streams)
        of_pattern[row, first] = False
        second = choose((present == exist[:, 1:]) & of_pattern, streams)
        self._seen = self._shapes_to_see[
            sentence,
            np.minimum(counts[row, first], MANY),
            np.minimum(counts[row, second], MANY),
            denied[:, 0],
            denied[:, 1],
        ]
        before, between, after = (words + sentence for words in self._around)
        parts = self._parts + len(table.values) * denied + np.stack([first, second], axis=1)
        return [], [before, parts[:, 0], between, parts[:, 1], after]

    def evidence(self, canvas: Canvas, wanted: Integers) -> Integers:
        return self.lines_to_mention(self._seen)
