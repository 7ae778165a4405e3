"""The rules of the game, in whole numbers: the same seed and the same inputs give the same game everywhere.

Angles are tenths of a degree, counted from the first edge of lane 0; distances are measured from the middle along the
centre of a lane, 24,000 of them being half the height of the picture. There are sixty ticks to the second.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import StrEnum
from functools import cache

from msgspec import Struct

from proctor.agents.games.hexagon.patterns import LANES, walls
from proctor.core.random import Stream, mix, name_key

TICKS = 60  # to the second
LANE = 600
TURN = LANES * LANE
STEP = 75  # what the cursor moves in a tick: eight of them are a lane

FAR = 40_000  # beyond what can be seen, even in the corners
CURSOR = 6_000  # the orbit of the cursor
CENTRE = 3_600  # where walls end
FIRST_WALL = 100  # ticks until it is there

LEFT, STRAIGHT, RIGHT = -1, 0, 1

_WALLS, _ROTATION = name_key("hexagon walls"), name_key("hexagon rotation")


class Level(Struct, frozen=True):
    name: str
    speed: int  # of the walls, in a tick
    grace: int  # ticks that a player has beyond those of the longest way to the next gap
    rotation: int  # of the whole picture, at most, in a tick; for the eyes alone
    pulse: int  # how much the picture swells with the beat, in thousandths


LEVELS = {
    1: Level("easy", 240, 30, 5, 0),
    2: Level("normal", 320, 22, 9, 15),
    3: Level("hard", 420, 14, 14, 20),
    4: Level("harder", 520, 9, 20, 25),
    5: Level("hardest", 640, 5, 26, 30),
}


class Ring:
    """Walls at one distance, and the gaps between them."""

    __slots__ = ("blocked", "inner", "thickness")

    def __init__(self, blocked: int, inner: int, thickness: int) -> None:
        self.blocked, self.inner, self.thickness = blocked, inner, thickness

    @property
    def outer(self) -> int:
        return self.inner + self.thickness

    @property
    def is_passing(self) -> bool:
        """Whether it is where the cursor is."""
        return self.inner <= CURSOR < self.inner + self.thickness

    def blocks(self, cursor: int) -> bool:
        return bool(self.blocked >> cursor // LANE & 1)


def moved(cursor: int, direction: int, rings: Iterable[Ring]) -> int:
    """Where the cursor is a tick later. A wall at its side stops it."""
    there = (cursor + direction * STEP) % TURN
    return cursor if any(ring.is_passing and ring.blocks(there) for ring in rings) else there


def is_hit(cursor: int, rings: Iterable[Ring]) -> bool:
    return any(ring.is_passing and ring.blocks(cursor) for ring in rings)


@cache
def longest_way(blocked: int, next_blocked: int) -> int:
    """In ticks: from the worst place in a gap of one ring to the nearest gap of the next."""
    places = [place for place in range(0, TURN, STEP) if not blocked >> place // LANE & 1]
    return max(_way(place, next_blocked) for place in places)


def _way(place: int, blocked: int) -> int:
    for ticks in range(TURN // STEP):
        for there in (place + ticks * STEP, place - ticks * STEP):
            if not blocked >> there % TURN // LANE & 1:
                return ticks
    raise ValueError("a ring without a gap")


def room(blocked: int, next_blocked: int, level: Level) -> int:
    """Between two rings: enough to come from any gap of the one to a gap of the other."""
    return level.speed * (longest_way(blocked, next_blocked) + level.grace)


class Field:
    """The walls and the rotation: what happens whatever the player does."""

    def __init__(self, seed: int, level: Level) -> None:
        self.level = level
        self.rotation = 0
        self.rings: deque[Ring] = deque()
        self._walls = walls(Stream(_WALLS, seed))
        self._turns = Stream(_ROTATION, seed)
        self._turning = self._turn_ends = self._ticks = 0
        self._fill()

    def advance(self) -> None:
        speed = self.level.speed
        for ring in self.rings:
            ring.inner -= speed
        if self.rings[0].outer <= CENTRE:
            self.rings.popleft()
        self._fill()
        self._rotate()

    def _fill(self) -> None:
        while not self.rings or self.rings[-1].outer < FAR:
            blocked, thickness = next(self._walls)
            inner = CURSOR + FIRST_WALL * self.level.speed
            if self.rings:
                last = self.rings[-1]
                inner = last.outer + room(last.blocked, blocked, self.level)
            self.rings.append(Ring(blocked, inner, thickness))

    def _rotate(self) -> None:
        if self._ticks >= self._turn_ends:
            most = self.level.rotation
            self._turning = self._turns.choice((-most, -(most // 2), most // 2, most))
            self._turn_ends = self._ticks + 2 * TICKS + self._turns.below(4 * TICKS)
        self._ticks += 1
        self.rotation = (self.rotation + self._turning) % TURN


class Round:
    """From the start to the collision."""

    def __init__(self, seed: int, level: Level) -> None:
        self.field = Field(seed, level)
        self.cursor = LANE // 2
        self.ticks = 0
        self.is_over = False

    def tick(self, direction: int) -> None:
        self.cursor = moved(self.cursor, direction, self.field.rings)
        self.field.advance()
        self.ticks += 1
        self.is_over = is_hit(self.cursor, self.field.rings)


class Phase(StrEnum):
    READY = "ready"
    PLAYING = "playing"
    OVER = "over"


class Game:
    """One round after the other, each with walls of its own."""

    def __init__(self, seed: int, level: int = 1, rounds: int | None = None) -> None:
        if level not in LEVELS:
            raise ValueError(f"levels are {', '.join(map(str, LEVELS))}, not {level!r}")
        self.seed, self.level, self.rounds = seed, level, rounds
        self.phase = Phase.READY
        self.last: int | None = None  # ticks
        self.best: int | None = None
        self.played = 0  # rounds that are over
        self.round = self._new_round()  # before the start it can be seen already

    def start(self) -> None:
        """Unless it is under way, or no round is left."""
        if self.phase is Phase.PLAYING or self.played == self.rounds:
            return
        if self.phase is Phase.OVER:
            self.round = self._new_round()
        self.phase = Phase.PLAYING

    def tick(self, direction: int) -> None:
        if self.phase is not Phase.PLAYING:
            return
        self.round.tick(direction)
        if self.round.is_over:
            self.phase = Phase.OVER
            self.played += 1
            self.last = self.round.ticks
            self.best = max(self.last, self.best or 0)

    def _new_round(self) -> Round:
        return Round(mix(self.seed, self.played), LEVELS[self.level])


def clock(ticks: int) -> str:
    """Seconds and hundredths, as the game shows them."""
    hundredths = ticks * 100 // TICKS
    return f"{hundredths // 100:02}:{hundredths % 100:02}"
