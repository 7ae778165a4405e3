"""Players of the stepped game: from the vector, from the image, and at random."""

from __future__ import annotations

from typing import Any

import numpy

from proctor.agents.games.hexagon.env import DIRECTIONS, RING, HexagonActions
from proctor.agents.games.hexagon.patterns import LANES
from proctor.agents.games.hexagon.rules import LEFT, RIGHT, STRAIGHT
from proctor.agents.games.hexagon.sight import HexagonVision

Array = numpy.ndarray[Any, Any]

TOLERANCE = 0.25  # lanes from the centre of one that are near enough


class LanePlayer:
    """Goes to the nearest lane that the next wall leaves open. The walls keep a distance that makes this enough."""

    def act(self, observation: Array) -> int:
        return DIRECTIONS.index(self._direction(observation))

    @staticmethod
    def _direction(observation: Array) -> int:
        cursor, rings = float(observation[0]), observation[1:].reshape(-1, RING)
        ring = next((ring for ring in rings if ring[0] > 0), rings[0])  # one that is passing can do no harm any more
        ways = [(lane + 0.5 - cursor + LANES / 2) % LANES - LANES / 2 for lane in range(LANES) if not ring[2 + lane]]
        way = min(ways, key=abs)
        return STRAIGHT if abs(way) <= TOLERANCE else RIGHT if way > 0 else LEFT


class ImagePlayer:
    """The same, by looking."""

    def __init__(self) -> None:
        self._sight = HexagonVision()

    def act(self, observation: Array) -> int:
        return DIRECTIONS.index(self._sight.direction(observation))


class RandomPlayer:
    """Any action, each as likely as the others."""

    def __init__(self) -> None:
        self._actions = HexagonActions()

    def reset(self, seed: int, world_info: object) -> None:
        self._actions.seed(seed)

    def act(self, observation: Array) -> int:
        return self._actions.sample()
