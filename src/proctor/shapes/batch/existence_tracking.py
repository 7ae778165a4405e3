"""Shapes are added and removed, one by one and in groups: is this one there in the end?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proctor.shapes.batch.canvas import Canvas, past, value_table
from proctor.shapes.batch.existence import YES
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams, choose
from proctor.shapes.patterns import name_values
from proctor.shapes.tasks.existence_tracking import ADDITION, GROUP_REMOVAL, GROUP_RETURN, QUESTION, REMOVAL, WAYS

NEVER, LISTED, REMOVED, ADDED = range(4)  # how a shape was mentioned last
_WAYS = np.array([{"listed": LISTED, "removed": REMOVED, "added": ADDED}[way] for way in WAYS])


class ExistenceTrackingMaker(Maker):
    def write_phrases(self) -> None:
        names = self.board.names
        self._additions = self.book.add("\n" + ADDITION.format(name) for name in names)
        self._removals = self.book.add("\n" + REMOVAL.format(name) for name in names)
        table = value_table(self.board)
        self._groups = int(table.starts[-1])  # all values but those of single kinds
        groups = [name_values(*pair, plural=True) for pair in table.values[: self._groups]]
        self._group_removals = self.book.add("\n" + GROUP_REMOVAL.format(group) for group in groups)
        self._group_returns = self.book.add("\n" + GROUP_RETURN.format(group) for group in groups)
        self._in_group = np.array([[kind in kinds for kind in range(len(names))] for kinds in table.kinds])
        self._questions = self.book.add(QUESTION.format(name) for name in names)

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        way, mentions, lines = self._history(canvas.kinds, streams)
        asked = mentions == way[:, None]
        group = self._group_that_parts(asked, streams)
        returns = way == REMOVED
        lines.append(np.where(returns, self._group_returns, self._group_removals) + group)
        self.skip_wanted_answers(streams)
        in_group = (wanted == YES) == returns
        kind = choose(asked & (self._in_group[group] == in_group[:, None]), streams)
        return lines, [self._questions + kind]

    def _history(self, listed: Integers, streams: Streams) -> tuple[Integers, NDArray[np.int8], list[Column]]:
        """As the task draws it; the mentions are a column for each kind."""
        row, kinds, slots = np.arange(len(listed)), len(self.board.kinds), self.task.settings.events - 1
        absent = past(listed, streams.sample(kinds - self.n, 2))
        way, places = np.full(len(listed), LISTED), np.full((len(listed), 2), -1)
        if slots > 1:
            way, places = _WAYS[streams.below(len(WAYS))], streams.sample(slots, 2)
        pair = np.where((way == ADDED)[:, None], absent, listed[:, :2])
        places[way == LISTED] = -1
        low, high = pair.min(axis=1), pair.max(axis=1)
        mentions = np.full((len(listed), kinds), NEVER, np.int8)
        np.put_along_axis(mentions, listed, np.int8(LISTED), axis=1)
        lines: list[Column] = []
        for slot in range(slots):
            kind = streams.below(kinds - 2)
            kind += kind >= low  # counted past the two of the pair
            kind += kind >= high
            for own in (0, 1):
                kind = np.where(places[:, own] == slot, pair[:, own], kind)
            last = mentions[row, kind]
            present = (last == LISTED) | (last == ADDED)
            mentions[row, kind] = np.where(present, REMOVED, ADDED)
            lines.append(np.where(present, self._removals, self._additions) + kind)
        return way, mentions, lines

    def _group_that_parts(self, asked: NDArray[np.bool_], streams: Streams) -> Integers:
        """A group that holds some of these shapes and not others."""
        sets = value_table(self.board).sets[: self._groups]
        whole = (asked * (np.int64(1) << np.arange(asked.shape[1]))).sum(axis=1)[:, None]
        held = whole & sets
        return choose((held != 0) & (held != whole), streams)
