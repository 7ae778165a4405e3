"""Shapes move about: which one is leftmost, or third highest, in the end?"""

from __future__ import annotations

import numpy as np

from proctor.shapes.batch.canvas import Canvas, draw_with_selected
from proctor.shapes.batch.maker import Maker
from proctor.shapes.batch.phrases import Column
from proctor.shapes.batch.places import add_places, draw_place
from proctor.shapes.batch.retries import Flags, Rows, draw_first
from proctor.shapes.batch.streams import Integers, Streams, choose_bit
from proctor.shapes.canvas import HALF_WIDTH
from proctor.shapes.tasks.move_tracking import MOVE, QUESTION, WAYS

_WORD = 64  # bits


class MoveTrackingMaker(Maker):
    constant_evidence = True

    def write_phrases(self) -> None:
        names, far = self.board.names, 2 * self.board.bound
        who, verb, rest = MOVE.partition(" moves ")
        self._movers = self.book.add(f"\n{who.format(name)}{verb}" for name in names)
        self._moves = self.book.add(
            rest.format(distance, way) for ways in WAYS.values() for way in ways for distance in range(far)
        )
        self._questions = add_places(self.book, QUESTION, self.n)
        self._half = np.array([HALF_WIDTH[size] for size, _, _ in self.board.kinds])
        self._reach = self.board.bound - int(self._half.min())
        self._write_sets()

    def _write_sets(self) -> None:
        """Sets of positions along an axis, in words of bits: what each shape takes, and where each can go at all."""
        positions = np.arange(-self._reach, self._reach + 1)
        near = np.arange(2 * int(self._half.max()) + 1)
        away = abs(positions[None, :, None] - positions[None, None, :])
        self._taken = _as_words(away <= near[:, None, None])  # by distance kept, and by position
        self._allowed = _as_words(abs(positions)[None, :] <= self.board.bound - self._half[:, None])  # by kind

    def draw_shapes(self, streams: Streams, wanted: Integers) -> Canvas:
        return draw_with_selected(wanted, self.n, streams, self.board)

    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        now = Canvas(canvas.kinds, canvas.x.copy(), canvas.y.copy())
        lines = [line for _ in range(self.task.settings.events) for line in self._move(now, streams)]
        self.skip_wanted_answers(streams)
        return lines, [self._questions + draw_place(now, wanted, streams)]

    def choices(self, canvas: Canvas, wanted: Integers) -> list[Column]:
        return [self.names_of(canvas.kinds)]

    def _move(self, now: Canvas, streams: Streams) -> list[Column]:
        row = np.arange(len(streams))
        free = np.empty((len(row), 2, self._allowed.shape[-1]), np.int64)

        def can_move(rows: Rows, index: Integers) -> Flags:
            free[rows] = self._free(now.of_rows(rows) if len(rows) < len(row) else now, index)
            can: Flags = np.any(free[rows], axis=(1, 2))
            return can

        index = draw_first(self.n, can_move, streams)
        axis, end = np.divmod(choose_bit(free, streams), free.shape[2] * _WORD)
        end -= self._reach
        start = np.where(axis, now.y[row, index], now.x[row, index])
        for number, along in enumerate((now.x, now.y)):
            along[row, index] = np.where(axis == number, end, along[row, index])
        way = 2 * axis + (end > start)
        return [self._movers + now.kinds[row, index], self._moves + way * 2 * self.board.bound + abs(end - start)]

    def _free(self, canvas: Canvas, index: Integers) -> Integers:
        """Where the shape can go along x and along y, as `free_moves` finds it."""
        row = np.arange(len(index))
        half = self._half[canvas.kinds]
        near = half + half[row, index][:, None]
        kind = canvas.kinds[row, index]
        sets = []
        for along, across in ((canvas.x, canvas.y), (canvas.y, canvas.x)):
            kept = np.where(abs(across - across[row, index][:, None]) <= near, near, 0)
            kept[row, index] = 0  # it only must not stay where it is
            taken = np.bitwise_or.reduce(self._taken[kept, along + self._reach], axis=1)
            sets.append(self._allowed[kind] & ~taken)
        return np.stack(sets, axis=1)


def _as_words(flags: Flags) -> Integers:
    """The last axis as bits of whole words."""
    padded = np.zeros((*flags.shape[:-1], -(-flags.shape[-1] // _WORD) * _WORD), np.bool_)
    padded[..., : flags.shape[-1]] = flags
    words: Integers = np.packbits(padded, axis=-1, bitorder="little").view("<i8").astype(np.int64)
    return words
