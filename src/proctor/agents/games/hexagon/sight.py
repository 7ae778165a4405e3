"""Reads the game from its picture alone: where the cursor is, where the next wall is open, and so where to go."""

from __future__ import annotations

import math
from typing import Any

import numpy

from proctor.agents.games.hexagon.look import BRIGHT, CURSOR_LENGTH, HALF_HEIGHT, PALE
from proctor.agents.games.hexagon.patterns import LANES
from proctor.agents.games.hexagon.rules import CURSOR, LEFT, RIGHT, STRAIGHT

Array = numpy.ndarray[Any, Any]

DIRECTIONS = 120  # in which it looks, three degrees apart
MARGIN = 4  # of those, that it keeps from a wall
ALONG = 200  # between two looks in one direction, in the units of the field
WHITE = 235  # the least of any channel of the cursor
CURSOR_POINTS = 8  # where it must be seen; fewer are none
_LANE = math.tau / LANES
_PASSED = 250  # how far a wall must have come beyond the cursor to be behind it for sure
_CORNER = 1 / math.cos(_LANE / 2)  # how much further the ends of a wall are than its centre


class HexagonVision:
    """For pictures of any size."""

    def __init__(self) -> None:
        self._size = (0, 0)

    def direction(self, frame: Array) -> int:
        """Where to go: the nearest place that the next wall leaves open, with some room to its sides."""
        height, width = frame.shape[:2]
        if (width, height) != self._size:
            self._measure(width, height)
        seen = frame[self._rows, self._columns]
        one, two, three = seen[:, :, 0], seen[:, :, 1], seen[:, :, 2]
        brightest = numpy.maximum(numpy.maximum(one, two), three)
        darkest = numpy.minimum(numpy.minimum(one, two), three)
        white = darkest >= WHITE
        cursor = self._cursor(white)
        if cursor is None:
            return STRAIGHT
        walls = (brightest >= BRIGHT) & (darkest <= PALE)
        blocked = self._next_wall(walls, walls | white, self._distances(brightest, walls | white))
        clear = numpy.roll(_with_room(blocked), -cursor)
        if clear[0] or not clear.any():
            return STRAIGHT
        to_the_right = int(numpy.argmax(clear))
        to_the_left = int(numpy.argmax(clear[::-1])) + 1
        return RIGHT if to_the_right <= to_the_left else LEFT

    def _measure(self, width: int, height: int) -> None:
        """Which points it looks at: along lines from the middle to where the picture ends."""
        self._size = width, height
        scale = min(height / 2, width * 3 / 8) / HALF_HEIGHT
        self._lengths = numpy.arange((CURSOR - CURSOR_LENGTH) * scale, HALF_HEIGHT * scale - 1, ALONG * scale)
        self._orbit = self._lengths < (CURSOR + CURSOR_LENGTH / 2) * scale * _CORNER  # where the cursor may be
        self._passed = (CURSOR - _PASSED) * scale
        self._rough = 2 * ALONG * scale  # how far two points of one wall may seem to be from each other
        self._angles = numpy.arange(DIRECTIONS) * math.tau / DIRECTIONS
        self._columns = numpy.rint(width / 2 + numpy.outer(numpy.sin(self._angles), self._lengths)).astype(int)
        self._rows = numpy.rint(height / 2 - numpy.outer(numpy.cos(self._angles), self._lengths)).astype(int)

    def _cursor(self, white: Array) -> int | None:
        """The number of the direction in which it is."""
        points = numpy.count_nonzero(white[:, self._orbit], axis=1)
        if points.sum() < CURSOR_POINTS:
            return None
        middle = complex((points * numpy.exp(1j * self._angles)).sum())
        return round(math.atan2(middle.imag, middle.real) * DIRECTIONS / math.tau) % DIRECTIONS

    def _distances(self, brightness: Array, covered: Array) -> Array:
        """Of every point, as the rules measure them: along the centre of its lane.

        Every second lane has a lighter ground, so that three waves of light go round: their phase tells the rotation.
        """
        ground = numpy.where(covered, 0, brightness).sum(axis=1) / numpy.maximum(1, (~covered).sum(axis=1))
        wave = complex((ground * numpy.exp(-1j * LANES / 2 * self._angles)).sum())
        light = -math.atan2(wave.imag, wave.real) / (LANES / 2)  # the centre of a lane
        beside = (self._angles - light + _LANE / 2) % _LANE - _LANE / 2
        return numpy.outer(numpy.cos(beside), self._lengths)

    def _next_wall(self, walls: Array, covered: Array, distances: Array) -> Array:
        """Of each direction, whether the next wall that has not yet passed the cursor blocks it."""
        fronts = walls[:, 1:] & ~covered[:, :-1] & (distances[:, 1:] >= self._passed)
        nearest = numpy.where(fronts, distances[:, 1:], numpy.inf).min(axis=1)
        blocked: Array = nearest <= min(nearest.min() + self._rough, self._lengths[-1])
        return blocked


def _with_room(blocked: Array) -> Array:
    """Where it is open, and open a little to both sides, too."""
    close = blocked.copy()
    for shift in range(1, MARGIN + 1):
        close |= numpy.roll(blocked, shift) | numpy.roll(blocked, -shift)
    return numpy.logical_not(close)
