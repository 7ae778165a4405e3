"""Reads the game from its picture alone: where the cursor is, where the nearest wall is open, and so where to go."""

from __future__ import annotations

import math
from typing import Any

import numpy

from proctor.agents.hexagon.look import BRIGHT, CURSOR_LENGTH, HALF_HEIGHT, PALE
from proctor.agents.hexagon.rules import CURSOR, LEFT, RIGHT, STRAIGHT

Array = numpy.ndarray[Any, Any]

DIRECTIONS = 120  # in which it looks, three degrees apart
MARGIN = 4  # of those, that it keeps from a wall
ALONG = 2.0  # pixels between two looks in one direction
WHITE = 235  # the least of any channel of the cursor
CURSOR_POINTS = 8  # where it must be seen; fewer are none
_CORNER = 1 / math.cos(math.pi / 6)  # how much further the ends of a wall are than its centre
_SLACK = 1.06  # for the swelling of the picture, and for what lies between two looks


class Sight:
    """For pictures of one size, which need not be told beforehand."""

    def __init__(self) -> None:
        self._size = (0, 0)

    def direction(self, frame: Array) -> int:
        """Where to go: the nearest place that the nearest wall leaves open, with some room to its sides."""
        height, width = frame.shape[:2]
        if (width, height) != self._size:
            self._measure(width, height)
        seen = frame[self._rows, self._columns]
        one, two, three = seen[:, :, 0], seen[:, :, 1], seen[:, :, 2]
        brightest = numpy.maximum(numpy.maximum(one, two), three)
        darkest = numpy.minimum(numpy.minimum(one, two), three)
        cursor = self._cursor(darkest >= WHITE)
        if cursor is None:
            return STRAIGHT
        clear = numpy.roll(self._clear((brightest >= BRIGHT) & (darkest <= PALE)), -cursor)
        if clear[0] or not clear.any():
            return STRAIGHT
        to_the_right = int(numpy.argmax(clear))
        to_the_left = int(numpy.argmax(clear[::-1])) + 1
        return RIGHT if to_the_right <= to_the_left else LEFT

    def _measure(self, width: int, height: int) -> None:
        """Which points it looks at: along lines from the middle to where the picture ends."""
        self._size = width, height
        scale = min(height / 2, width * 3 / 8) / HALF_HEIGHT
        self._lengths = numpy.arange((CURSOR - CURSOR_LENGTH) * scale, HALF_HEIGHT * scale - 1, ALONG)
        self._orbit = self._lengths < (CURSOR + CURSOR_LENGTH / 2) * scale * _CORNER  # where the cursor may be
        self._beyond = self._lengths >= CURSOR * scale  # where walls matter
        turns = numpy.arange(DIRECTIONS) * math.tau / DIRECTIONS
        self._turns = numpy.exp(1j * turns)
        self._columns = numpy.rint(width / 2 + numpy.outer(numpy.sin(turns), self._lengths)).astype(int)
        self._rows = numpy.rint(height / 2 - numpy.outer(numpy.cos(turns), self._lengths)).astype(int)

    def _cursor(self, white: Array) -> int | None:
        """The number of the direction in which it is."""
        points = numpy.count_nonzero(white[:, self._orbit], axis=1)
        if points.sum() < CURSOR_POINTS:
            return None
        middle = complex((points * self._turns).sum())
        return round(math.atan2(middle.imag, middle.real) * DIRECTIONS / math.tau) % DIRECTIONS

    def _clear(self, walls: Array) -> Array:
        """Of each direction, whether the nearest wall is open there and a little to both sides."""
        walls = walls[:, self._beyond]
        blocked = walls.any(axis=1)
        lengths = numpy.where(blocked, self._lengths[self._beyond][numpy.argmax(walls, axis=1)], numpy.inf)
        # A wall is straight: its ends are further away than its centre. The next one is much further.
        nearest = blocked & (lengths <= lengths.min() * _CORNER * _SLACK + ALONG)
        close: Array = nearest.copy()
        for shift in range(1, MARGIN + 1):
            close |= numpy.roll(nearest, shift) | numpy.roll(nearest, -shift)
        return numpy.logical_not(close)
