"""Does it follow from the lines that one shape is to the left of another, or can it not be determined?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proctor.shapes.batch.canvas import Canvas
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.streams import Integers, Streams, choose, choose_bit
from proctor.shapes.places import AXES, RELATIONS
from proctor.shapes.tasks.undetermined import ENOUGH, HEADING, LINE, QUESTION

NO, UNDETERMINED = 1, 2


class UndeterminedMaker(Maker):
    brings_description = True

    def write_phrases(self) -> None:
        names = self.board.names
        self._heading = self.book.add([HEADING])
        relations = [RELATIONS[answer] for answers in AXES.values() for answer in answers]
        self._lines = self.book.add(
            "\n" + LINE.format(a, words, b) for words in relations for a in names for b in names
        )
        first, second = QUESTION.split("{} {} the ")
        self._first = self.book.add(f"{first}{a} {words} the " for words in relations for a in names)
        self._second = self.book.add(second.format(b) for b in names)
        self._pairs = np.tril_indices(self.n, -1)

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        axis = streams.below(len(AXES))
        along = np.where(axis[:, None] == 0, canvas.x, canvas.y)
        kinds = canvas.ordered(np.argsort(along, axis=1)).kinds  # by rank
        tree = Trees(self.n, streams)
        words, a, b = self._describe(tree, axis, kinds, streams)
        names = len(self.board.names)
        lines: list[Column] = [self._heading, self._lines + (words * names + a) * names + b]
        self.skip_wanted_answers(streams)
        low, high = self._draw_pair(tree, wanted == UNDETERMINED, streams)
        by_chance = streams.below(2) == 1
        swapped = np.where(wanted == UNDETERMINED, by_chance, wanted == NO)
        low, high = np.where(swapped, high, low), np.where(swapped, low, high)
        words, a, b = self._relate(axis, kinds, low[:, None], high[:, None], streams.below(2)[:, None])
        return lines, [self._first + words[:, 0] * names + a[:, 0], self._second + b[:, 0]]

    def evidence(self, canvas: Canvas, wanted: Integers) -> Integers:
        return np.where(wanted == UNDETERMINED, self.n - 1, self._distance)

    def _describe(self, tree: Trees, axis: Integers, kinds: Integers, streams: Streams) -> tuple[Integers, ...]:
        joined = tree.ranks[:, 1:], np.take_along_axis(tree.ranks, tree.hosts[:, 1:], axis=1)
        order = streams.sample(self.n - 1, self.n - 1)
        low, high = (np.take_along_axis(choice(*joined), order, axis=1) for choice in (np.minimum, np.maximum))
        lower_first = np.stack([streams.below(2) for _ in range(self.n - 1)], axis=1)
        return self._relate(axis, kinds, low, high, lower_first)

    def _relate(
        self, axis: Integers, kinds: Integers, low: Integers, high: Integers, lower_first: Integers
    ) -> tuple[Integers, ...]:
        """The number of the words, and the kinds before and after them."""
        low, high = np.take_along_axis(kinds, low, axis=1), np.take_along_axis(kinds, high, axis=1)
        words = 2 * axis[:, None] + (lower_first == 0)
        return words, np.where(lower_first, low, high), np.where(lower_first, high, low)

    def _draw_pair(self, tree: Trees, turns: NDArray[np.bool_], streams: Streams) -> tuple[Integers, Integers]:
        """The ranks of two that may be asked about, the lower one first."""
        node, other = self._pairs
        away, way = tree.away[:, node, other], tree.way[:, node, other]
        asked = tree.asked[:, node] & tree.asked[:, other] & (away > 1)
        bits = np.where(asked, np.int64(1) << away, 0)
        follows, turning = (np.bitwise_or.reduce(np.where(fits, bits, 0), axis=1) for fits in (way != 0, way == 0))
        self._distance = distance = choose_bit((follows & turning)[:, None], streams)
        pair = choose(asked & (away == distance[:, None]) & ((way == 0) == turns[:, None]), streams)
        row = np.arange(len(pair))
        ranks = tree.ranks[row, node[pair]], tree.ranks[row, other[pair]]
        return np.minimum(*ranks), np.maximum(*ranks)


class Trees:
    """As `draw_tree` makes them: for each node its rank and its host; and how each two nodes are joined."""

    def __init__(self, n: int, streams: Streams) -> None:
        self._n, self._row = n, np.arange(len(streams))
        self.hosts = np.empty((len(streams), n), np.int64)
        self._draw(streams)
        self._join()
        self._find_asked()

    def _draw(self, streams: Streams) -> None:
        n, beyond = self._n, 1 if self._n >= ENOUGH else 0
        distance = 2 + streams.below(n - 3 - 3 * beyond)
        back = 1 + streams.below(np.minimum(distance - 1, n - distance - 1 - 3 * beyond))
        sign = 1 - 2 * streams.below(2)[:, None]
        length = distance + 1 + back + 3 * beyond
        drawn = streams.sample(n, n)
        self._sort(drawn, sign, length[:, None], (back + beyond)[:, None])
        node = np.arange(n)
        free = np.ones((len(drawn), n), np.bool_)
        if beyond:
            turn = distance + 2
            for kept in (np.ones_like(turn), turn - 1, back + 2, turn + back):
                free[self._row, kept] = False
        self.hosts[:] = np.maximum(node - 1, 0)
        for late in range(int(length.min()), n):
            rows = np.nonzero(length <= late)[0]
            part = streams.part(rows)
            self.hosts[rows, late] = choose(free[rows] & (node < late), part)
            streams.put_back(rows, part)

    def _sort(self, drawn: Integers, sign: Integers, length: Integers, branched: Integers) -> None:
        """Along the chain to its end, back along the branch, and then the others as they were drawn."""
        n, place = self._n, np.arange(self._n)
        upwards = sign * drawn
        on_path = place < length
        end = np.argmax(np.where(on_path, upwards, -n), axis=1)[:, None]
        # The end takes no place among those of which the first are on the branch.
        on_branch = (place - (place > end) < branched) & (place != end)
        key = np.where(on_path, np.where(on_branch, 2 * n - upwards, upwards), 4 * n + place)
        self.ranks = np.take_along_axis(drawn, np.argsort(key, axis=1), axis=1)

    def _join(self) -> None:
        """Distances, and whether the ranks from one node to another only grow (1), only fall (−1) or turn (0)."""
        n, row = self._n, self._row
        self.away = np.zeros((len(row), n, n), np.int8)
        self.way = np.zeros((len(row), n, n), np.int8)
        for node in range(1, n):
            host = self.hosts[:, node]
            up = np.where(self.ranks[row, host] > self.ranks[:, node], 1, -1).astype(np.int8)
            way = self.way[row, host, :node]
            way[row, host] = up
            way[way != up[:, None]] = 0
            away = self.away[row, host, :node] + np.int8(1)
            self.away[:, node, :node] = self.away[:, :node, node] = away
            self.way[:, node, :node], self.way[:, :node, node] = way, -way

    def _find_asked(self) -> None:
        beside = self.away == 1
        higher, lower = (np.count_nonzero(beside & (self.way == way), axis=2) for way in (1, -1))
        self.asked = (higher == 1) & (lower == 1) if self._n >= ENOUGH else np.ones_like(beside[:, 0])
