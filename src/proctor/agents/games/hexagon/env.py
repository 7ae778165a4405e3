"""Hexagon as a stepped environment with Gymnasium's methods."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy

from proctor.agents.games.hexagon.look import SIZE
from proctor.agents.games.hexagon.patterns import LANES
from proctor.agents.games.hexagon.rules import CURSOR, FAR, LANE, LEFT, RIGHT, STEP, STRAIGHT, TICKS, Game, Phase, Ring
from proctor.core.random import Stream, name_key

Array = numpy.ndarray[Any, Any]

DIRECTIONS = (STRAIGHT, LEFT, RIGHT)  # by the number of the action
SHOWN = 4  # rings in an observation: the nearest ones
RING = 2 + LANES  # numbers that tell of one
NEVER = 10.0  # seconds, in place of a ring that is not there
_KEY = name_key("hexagon actions")


class HexagonActions:
    """Three actions, as a space of Gymnasium would show them."""

    n = len(DIRECTIONS)

    def __init__(self) -> None:
        self.seed(0)

    def seed(self, seed: int) -> None:
        self._draws = Stream(_KEY, seed)

    def sample(self) -> int:
        return self._draws.below(self.n)


class Bounds:
    """Arrays of one shape, each number between two bounds."""

    def __init__(self, low: float, high: float, shape: tuple[int, ...], dtype: type) -> None:
        self.shape, self.dtype = shape, numpy.dtype(dtype)
        self.low: Array = numpy.full(shape, low, dtype)
        self.high: Array = numpy.full(shape, high, dtype)


class Hexagon:
    """The reward is the time survived, in seconds; to survive for long enough is a success.

    Its observation is a picture, or a vector: the place of the cursor in lanes, from 0 to 6, and then of each of the
    four nearest rings the seconds until it reaches the cursor, the seconds until it has passed, and of each lane
    whether it is blocked.
    """

    action_names: ClassVar = ("none", "left", "right")
    idle_action: ClassVar = 0

    def __init__(
        self,
        level: int = 1,
        observation: Literal["state", "pixels"] = "state",
        ticks_per_step: int = 1,
        survive: float = 20.0,
        longest: float = 60.0,
        size: tuple[int, int] = SIZE,
    ) -> None:
        if observation not in ("state", "pixels"):
            raise ValueError(f"an observation is 'state' or 'pixels', not {observation!r}")
        if ticks_per_step < 1:
            raise ValueError(f"a step has at least one tick, not {ticks_per_step!r}")
        if not 0 < survive <= longest:
            raise ValueError(f"survive must be above 0 and at most longest, not {survive:g} with longest {longest:g}")
        self._level, self._ticks_per_step = level, ticks_per_step
        self._survive, self._longest = survive, longest
        self.action_space = HexagonActions()
        if observation == "pixels":
            from proctor.agents.games.hexagon.drawing import HexagonRenderer  # the vector needs no pygame

            width, height = size
            self.observation_space = Bounds(0, 255, (height, width, 3), numpy.uint8)
            self._observe = HexagonRenderer((width, height)).frame
        else:
            self.observation_space = Bounds(-NEVER, NEVER, (1 + SHOWN * RING,), numpy.float32)
            self._observe = state_vector
        self._game = Game(0, level)  # which knows the levels

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        self._game = Game(0 if seed is None else seed, self._level)
        self._game.start()
        return self._observe(self._game), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        game, direction = self._game, DIRECTIONS[action]
        before = game.round.ticks
        for _ in range(self._ticks_per_step):
            game.tick(direction)
        ticks = game.round.ticks
        terminated = game.phase is not Phase.PLAYING
        truncated = not terminated and ticks >= self._longest * TICKS
        info = {"is_success": ticks >= self._survive * TICKS, "survived": ticks / TICKS}
        return self._observe(game), (ticks - before) / TICKS, terminated, truncated, info

    def text(self, observation: Array) -> str:
        """How it stands, in words: the same whatever the observation is."""
        return words(self._game, self._ticks_per_step)


def coming(game: Game) -> list[Ring]:
    """The rings that can be seen and have not passed the cursor, the nearest first."""
    rings = [ring for ring in game.round.field.rings if ring.outer > CURSOR and ring.inner < FAR]
    return rings[:SHOWN]


def state_vector(game: Game) -> Array:
    speed = game.round.field.level.speed * TICKS
    numbers = [game.round.cursor / LANE]
    rings = coming(game)
    for ring in rings:
        numbers += ((ring.inner - CURSOR) / speed, (ring.outer - CURSOR) / speed)
        numbers += (float(ring.blocked >> lane & 1) for lane in range(LANES))
    numbers += [NEVER, NEVER, *[0.0] * LANES] * (SHOWN - len(rings))
    return numpy.array(numbers, numpy.float32)


def words(game: Game, ticks_per_step: int) -> str:
    cursor, speed = game.round.cursor, game.round.field.level.speed * TICKS
    across = ticks_per_step * STEP / LANE
    lines = [
        f"Six lanes, 0 to 5, in a circle: 0 comes after 5. You are in lane {cursor // LANE}, at {cursor / LANE:.2f}. "
        f"An action lasts {ticks_per_step / TICKS:.3g} s; right moves you {across:.3g} lanes up, left as many down. "
        "You must be in an open lane when a wall reaches you; while it passes you cannot leave it.",
    ]
    for ring in coming(game):
        lanes = ", ".join(str(lane) for lane in range(LANES) if not ring.blocked >> lane & 1)
        arrives, leaves = ((place - CURSOR) / speed for place in (ring.inner, ring.outer))
        when = f"reaches you in {arrives:.2f} s" if arrives > 0 else f"is passing for another {leaves:.2f} s"
        lines.append(f"A wall {when}; open lanes: {lanes}.")
    if game.phase is Phase.OVER:
        lines.append("A wall has hit you: the game is over.")
    return "\n".join(lines)
