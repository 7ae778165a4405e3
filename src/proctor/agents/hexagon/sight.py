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
CURSOR_PIXELS = 12  # fewer are none
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
        cursor = self._cursor(frame)
        if cursor is None:
            return STRAIGHT
        clear = numpy.roll(self._clear(frame), -cursor)
        if clear[0] or not clear.any():
            return STRAIGHT
        to_the_right = int(numpy.argmax(clear))
        to_the_left = int(numpy.argmax(clear[::-1])) + 1
        return RIGHT if to_the_right <= to_the_left else LEFT

    def _measure(self, width: int, height: int) -> None:
        self._size = width, height
        scale = min(height / 2, width * 3 / 8) / HALF_HEIGHT
        middle_x, middle_y = width / 2, height / 2
        rows, columns = numpy.mgrid[0:height, 0:width]
        right, down = columns - middle_x, rows - middle_y
        distance = numpy.hypot(right, down)
        near, far = (CURSOR - 1.2 * CURSOR_LENGTH) * scale, (CURSOR + CURSOR_LENGTH / 2) * scale * _CORNER
        self._orbit = numpy.nonzero((distance >= near) & (distance <= far))
        angles = numpy.arctan2(right[self._orbit], -down[self._orbit])
        self._orbit_angles = numpy.exp(1j * angles)
        self._lengths = numpy.arange(CURSOR * scale, HALF_HEIGHT * scale - 1, ALONG)
        turns = numpy.arange(DIRECTIONS) * math.tau / DIRECTIONS
        self._columns = numpy.rint(middle_x + numpy.outer(numpy.sin(turns), self._lengths)).astype(int)
        self._rows = numpy.rint(middle_y - numpy.outer(numpy.cos(turns), self._lengths)).astype(int)

    def _cursor(self, frame: Array) -> int | None:
        """The number of the direction in which it is."""
        white = (frame[self._orbit] >= WHITE).all(axis=1)
        if numpy.count_nonzero(white) < CURSOR_PIXELS:
            return None
        angle = math.atan2(*(part(self._orbit_angles[white].sum()) for part in (numpy.imag, numpy.real)))
        return round(angle * DIRECTIONS / math.tau) % DIRECTIONS

    def _clear(self, frame: Array) -> Array:
        """Of each direction, whether the nearest wall is open there and a little to both sides."""
        seen = frame[self._rows, self._columns]
        walls = (seen.max(axis=2) >= BRIGHT) & (seen.min(axis=2) <= PALE)
        blocked = walls.any(axis=1)
        lengths = numpy.where(blocked, self._lengths[numpy.argmax(walls, axis=1)], numpy.inf)
        # A wall is straight: its ends are further away than its centre. The next one is much further.
        nearest = blocked & (lengths <= lengths.min() * _CORNER * _SLACK + ALONG)
        close: Array = nearest.copy()
        for shift in range(1, MARGIN + 1):
            close |= numpy.roll(nearest, shift) | numpy.roll(nearest, -shift)
        return numpy.logical_not(close)
