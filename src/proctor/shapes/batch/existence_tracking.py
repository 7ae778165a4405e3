"""Shapes are added and removed, on conditions: is this one there in the end?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proctor.shapes.batch.canvas import Canvas, as_set, past, value_table
from proctor.shapes.batch.existence import YES
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams, choose
from proctor.shapes.patterns import name_values
from proctor.shapes.tasks.existence_tracking import ASIDE, PLAIN, QUESTION, SWITCH, links_among

_SWITCH, _ADDITION, _REMOVAL, _GROUP_REMOVAL = range(len(ASIDE))
_ONE = np.int64(1)


class ExistenceTrackingMaker(Maker):
    def write_phrases(self) -> None:
        names = self.board.names
        self._none = len(names)  # in the place of a kind, where there is none
        table = value_table(self.board)
        self._groups = table.sets[: int(table.starts[-1])]  # all values but those of single kinds
        values = table.values[: len(self._groups)]
        *parts, end = ("\n" + SWITCH).split("{}")
        parts[-1] += "{}" + end
        # The five names of a switch each with the words before them; phrases of other events are as many, but empty.
        self._parts = [
            self.book.add((part if "{}" in part else part + "{}").format(name) for name in names) for part in parts
        ]
        self._empty = self.book.add([""])
        self._additions = self.book.add("\n" + PLAIN["addition"].format(name) for name in names)
        self._removals = self.book.add("\n" + PLAIN["removal"].format(name) for name in names)
        self._group_removals = self.book.add(
            "\n" + PLAIN["group removal"].format(name_values(*pair, plural=True)) for pair in values
        )
        self._questions = self.book.add(QUESTION.format(name) for name in names)

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        there = as_set(canvas.kinds)
        live = self._first_condition(canvas, streams)
        events = self.task.settings.events
        links = np.zeros((len(live), events), np.bool_)
        np.put_along_axis(links, streams.sample(events, links_among(events)), True, axis=1)
        lines: list[Column] = []
        for link in links.T:
            said, there, pair = self._event(live, link, there, streams)
            lines.append(said)
            live = np.where(link[:, None], pair, live)
        first_fits = (there >> live[:, 0] & 1) == (wanted == YES)
        return lines, [self._questions + np.where(first_fits, live[:, 0], live[:, 1])]

    def evidence(self, canvas: Canvas, wanted: Integers) -> Integers:
        events: int = self.task.settings.events
        return events + self.lines_to_mention(np.where(self._listed, 1, self.n))

    def _first_condition(self, canvas: Canvas, streams: Streams) -> Integers:
        self._listed = listed = streams.below(2) == 1
        number = streams.below(np.where(listed, self.n, self._none - self.n))
        absent = past(canvas.kinds, number[:, None].copy())[:, 0]
        present = np.sort(canvas.kinds, axis=1)[np.arange(len(number)), np.minimum(number, self.n - 1)]
        return np.stack([np.where(listed, present, absent), np.full(len(number), self._none)], axis=1)

    def _event(
        self, live: Integers, link: NDArray[np.bool_], there: Integers, streams: Streams
    ) -> tuple[Integers, Integers, Integers]:
        """The phrases of one event, what is there after it, and its pair of shapes."""
        condition, pair = self._draw_switch(live, link, streams)
        kind = np.where(link, _SWITCH, streams.below(len(ASIDE)))
        group = choose((self._groups & as_set(live)[:, None]) == 0, streams)
        added, removed = pair.T
        holds = (there >> condition & 1) == 1
        comes = np.where((kind == _SWITCH) & ~holds, removed, added)
        goes = np.where(comes == added, removed, added)
        switched = (there & ~(_ONE << goes)) | _ONE << comes
        single = there & ~(_ONE << added)
        group_gone = there & ~self._groups[group]
        after = np.choose(kind, [switched, single | _ONE << added, single, group_gone])
        said = np.full((len(kind), len(self._parts)), self._empty)
        for column, (start, name) in enumerate(
            zip(self._parts, (condition, added, removed, added, removed), strict=True)
        ):
            said[:, column] = np.where(kind == _SWITCH, start + name, self._empty)
        plain = np.choose(
            kind, [said[:, 0], self._additions + added, self._removals + added, self._group_removals + group]
        )
        said[:, 0] = plain
        return said, after, pair

    def _draw_switch(self, live: Integers, link: NDArray[np.bool_], streams: Streams) -> tuple[Integers, Integers]:
        """The condition and the two shapes that depend on it, none of them live but the condition of a link."""
        count = np.count_nonzero(live < self._none, axis=1)
        free = self._none - count
        number = streams.below(np.where(link, count, free))
        own = live[np.arange(len(live)), np.minimum(number, 1)]
        condition = np.where(link, own, past(live, number[:, None].copy())[:, 0])
        free = np.where(link, free, free - 1)
        first = streams.below(free)
        second = 1 + streams.below(free - 1)
        second = np.where(second == first, 0, second)
        taken = np.column_stack([live, np.where(link, self._none, condition)])
        return condition, past(taken, np.stack([first, second], axis=1))
