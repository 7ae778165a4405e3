"""Where is one shape relative to another, after many single steps from neighbour to neighbour?"""

from __future__ import annotations

import msgspec
import numpy as np

from proctor.shapes.batch.canvas import Canvas
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.retries import Flags, Rows, redraw
from proctor.shapes.batch.streams import BITS, NTH_BIT, Integers, Streams, choose
from proctor.shapes.places import AXES, RELATIONS
from proctor.shapes.tasks.multi_hop import ALTERNATIVES, HEADING, LINE, QUESTION, SIDE, STEPS, TRIES, reach_of

_WORDS = np.array([1 << step for step in range(len(STEPS))])  # a bit for each step


class MultiHopMaker(Maker):
    brings_description = True
    constant_evidence = True

    def write_phrases(self) -> None:
        names = self.board.names
        self._hops, self._paper = self.task.settings.hops, SquareGrid(reach_of(self.board))
        self._heading = self.book.add([HEADING])
        # In the order of the steps that lead from the second shape to the first.
        sides = ("Left", "Right", "Above", "Below")
        self._lines = self.book.add(
            "\n" + LINE.format(a, RELATIONS[side], b) for side in sides for a in names for b in names
        )
        first, second = QUESTION.split("{} {} the ")
        self._first = self.book.add(f"{first}{a} {ALTERNATIVES[axis]} the " for axis in AXES for a in names)
        self._second = self.book.add(second.format(b) for b in names)
        self._sides = self.book.add_json(msgspec.json.encode(answers).decode()[1:-1] for answers in AXES.values())

    def draw_shapes(self, streams: Streams, wanted: Integers) -> Canvas:
        """The path and then the others. Their squares are kept for `ask`."""
        paper, hops = self._paper, self._hops
        squares = np.empty((len(streams), self.n), np.int64)
        squares[:, : hops + 1] = self._draw_paths(streams)
        taken = paper.taken(squares[:, : hops + 1])
        row = np.arange(len(squares))
        for number in range(hops + 1, self.n):
            hosts = np.delete(squares[:, 1:number], hops - 1, axis=1)  # all but the ends of the path
            around = (hosts[:, :, None] + paper.steps).reshape(len(row), -1)
            free = ~taken[row[:, None], around]
            squares[:, number] = square = around[row, choose(free, streams)]
            taken[row, square] = True
        kinds = streams.sample(len(self.board.kinds), self.n)
        self._squares = squares
        x, y = paper.places(squares)
        return Canvas(kinds, x * SIDE, y * SIDE)

    def _draw_paths(self, streams: Streams) -> Integers:
        paths = np.empty((len(streams), self._hops + 1), np.int64)

        def attempt(rows: Rows, part: Streams) -> Flags:
            paths[rows], complete = self._paper.grow(self._hops, part)
            return complete & self._are_wanted(paths[rows])

        redraw(attempt, TRIES, streams)
        turned = streams.below(2) == 1
        paths[turned] = paths[turned, ::-1]
        return paths

    def _are_wanted(self, paths: Integers) -> Flags:
        x, y = self._paper.places(paths[:, [0, 1, -2, -1]])
        across, up = x[:, 3] - x[:, 0], y[:, 3] - y[:, 0]
        wanted: Flags = (across != 0) & (up != 0)
        if self._hops >= 4:
            first = (x[:, 1] - x[:, 0]) * across + (y[:, 1] - y[:, 0]) * up < 0
            last = (x[:, 3] - x[:, 2]) * across + (y[:, 3] - y[:, 2]) * up < 0
            wanted &= first != last
        return wanted

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        description = self._describe(canvas, streams)
        # The answers are Left, Right, Below, Above: an axis each two, the lower coordinate first.
        axis, upper = np.divmod(wanted, 2)
        along = np.where(axis[:, None] == 0, canvas.x, canvas.y)
        start, end = canvas.kinds[:, 0], canvas.kinds[:, self._hops]
        start_first = (along[:, 0] > along[:, self._hops]) == upper
        a, b = np.where(start_first, start, end), np.where(start_first, end, start)
        return description, [self._first + axis * len(self.board.names) + a, self._second + b]

    def choices(self, canvas: Canvas, wanted: Integers) -> list[Column]:
        return [self._sides + wanted // 2]

    def _describe(self, canvas: Canvas, streams: Streams) -> list[Column]:
        squares, hops, row = self._squares, self._hops, np.arange(len(streams))[:, None]
        shape = np.tile(np.arange(1, self.n), (len(row), 1))
        host = shape - 1
        for number in range(hops + 1, self.n):
            hosts = np.delete(np.arange(1, number), hops - 1)
            away = abs(squares[:, hosts] - squares[:, number, None])
            host[:, number - 1] = hosts[choose((away == 1) | (away == self._paper.width), streams)]
        order = streams.sample(self.n - 1, self.n - 1)
        turned = np.stack([streams.below(2) for _ in range(self.n - 1)], axis=1)
        shape, host = shape[row, order], host[row, order]
        a, b = np.where(turned, shape, host), np.where(turned, host, shape)
        step = self._paper.number_of_step(squares[row, a] - squares[row, b])
        names = len(self.board.names)
        lines = (step * names + canvas.kinds[row, a]) * names + canvas.kinds[row, b]
        return [self._heading, self._lines + lines]


class SquareGrid:
    """Squares as numbers, line by line, within an edge of squares that are never free."""

    def __init__(self, reach: int) -> None:
        self.width = 2 * reach + 3
        self.middle = self.width * self.width // 2
        self.steps = np.array([dx + self.width * dy for dx, dy in STEPS])
        line = abs(np.arange(self.width) - self.width // 2) > reach
        self._edge = (line[:, None] | line).reshape(-1)

    def taken(self, squares: Integers) -> Flags:
        taken = np.tile(self._edge, (len(squares), 1))
        np.put_along_axis(taken, squares, True, axis=1)
        return taken

    def places(self, squares: Integers) -> tuple[Integers, Integers]:
        y, x = np.divmod(squares, self.width)
        return x - self.width // 2, y - self.width // 2

    def number_of_step(self, difference: Integers) -> Integers:
        number: Integers = np.argmax(difference[..., None] == self.steps, axis=-1)
        return number

    def grow(self, hops: int, streams: Streams) -> tuple[Integers, Flags]:
        """Paths from the middle, and whether each is complete or was stuck."""
        path = np.full((len(streams), hops + 1), self.middle)
        taken, row = self.taken(path[:, :1]), np.arange(len(path))
        complete = np.ones(len(path), np.bool_)
        for hop in range(hops):
            free = ~taken[row[:, None], path[:, hop, None] + self.steps] @ _WORDS
            choices = BITS[free]
            step = self.steps[NTH_BIT[free, streams.below(choices)]]
            complete &= choices > 0
            path[:, hop + 1] = path[:, hop] + np.where(complete, step, 0)
            taken[row, path[:, hop + 1]] = True
        return path, complete
