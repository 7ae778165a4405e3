"""The picture of a game: on any surface, with or without a window, the same state giving the same pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy
import pygame

from proctor.agents.games.hexagon.look import (
    CURSOR,
    CURSOR_LENGTH,
    CURSOR_WIDTH,
    HALF_HEIGHT,
    PALETTES,
    PANEL,
    SIZE,
    TEXT,
    Colour,
)
from proctor.agents.games.hexagon.patterns import LANES
from proctor.agents.games.hexagon.rules import CENTRE, FAR, LANE, TURN, Game, Phase, Ring, clock
from proctor.agents.games.hexagon.rules import CURSOR as ORBIT

Point = tuple[int, int]

BEAT = 30  # ticks from one swelling of the picture to the next
_CORNER = 1 / math.cos(math.pi / LANES)  # how much further than its centre the ends of a wall are from the middle
_OUTLINE = 400
# Heights of letters, as parts of the height of the picture.
_SMALL, _MIDDLE, _BIG = 1 / 15, 1 / 11, 1 / 6


class HexagonRenderer:
    """Draws on surfaces of one size."""

    def __init__(self, size: tuple[int, int] = SIZE) -> None:
        self.size = size
        width, height = size
        self._middle = width / 2, height / 2
        self._scale = min(height / 2, width * 3 / 8) / HALF_HEIGHT  # pixels to the unit
        pygame.font.init()
        unit = min(height, width * 3 / 4)
        self._small, self._medium, self._large = (
            pygame.font.Font(None, max(12, round(unit * part * 1.4))) for part in (_SMALL, _MIDDLE, _BIG)
        )
        self._padding = max(2, round(unit / 60))

    def draw(self, surface: pygame.Surface, game: Game) -> None:
        field, palette = game.round.field, PALETTES[game.level]
        self._pulse = self._swelling(game)
        self._turned = [self._direction(lane * LANE + field.rotation) for lane in range(LANES)]
        self._ground(surface, palette.ground, palette.other_ground)
        for ring in field.rings:
            if ring.inner < FAR:
                self._ring(surface, ring, palette.wall)
        self._polygon(surface, palette.wall, self._hexagon(CENTRE))
        self._polygon(surface, palette.centre, self._hexagon(CENTRE - _OUTLINE))
        self._cursor(surface, game.round.cursor, field.rotation)
        self._texts(surface, game)

    def frame(self, game: Game) -> numpy.ndarray[Any, Any]:
        """As rows of red, green and blue; no window is needed."""
        surface = pygame.Surface(self.size, 0, 32)
        self.draw(surface, game)
        pixels = bytearray(pygame.image.tobytes(surface, "RGB"))  # an array of it can be written to
        return numpy.frombuffer(pixels, numpy.uint8).reshape(self.size[1], self.size[0], 3)

    @staticmethod
    def _swelling(game: Game) -> float:
        since = game.round.ticks % BEAT
        return 1 + game.round.field.level.pulse / 1_000 * (1 - since / BEAT) ** 2

    @staticmethod
    def _direction(angle: float) -> tuple[float, float]:
        radians = angle * math.tau / TURN
        return math.sin(radians), -math.cos(radians)  # clockwise from the top, as the right key turns

    def _point(self, direction: tuple[float, float], distance: float) -> Point:
        length = distance * self._scale * self._pulse
        return round(self._middle[0] + direction[0] * length), round(self._middle[1] + direction[1] * length)

    def _hexagon(self, distance: float) -> list[Point]:
        return [self._point(direction, distance * _CORNER) for direction in self._turned]

    def _ground(self, surface: pygame.Surface, ground: Colour, other: Colour) -> None:
        surface.fill(ground)
        corners = self._hexagon(2 * FAR)
        middle = self._point((0, 0), 0)
        for lane in range(1, LANES, 2):
            pygame.draw.polygon(surface, other, (middle, corners[lane], corners[(lane + 1) % LANES]))

    def _ring(self, surface: pygame.Surface, ring: Ring, colour: Colour) -> None:
        inner, outer = self._hexagon(max(ring.inner, CENTRE)), self._hexagon(ring.outer)
        for lane in range(LANES):
            if ring.blocked >> lane & 1:
                after = (lane + 1) % LANES
                self._polygon(surface, colour, (inner[lane], outer[lane], outer[after], inner[after]))

    @staticmethod
    def _polygon(surface: pygame.Surface, colour: Colour, points: Sequence[Point]) -> None:
        pygame.draw.polygon(surface, colour, points)
        pygame.draw.aalines(surface, colour, True, points)  # without steps at its edges

    def _cursor(self, surface: pygame.Surface, cursor: int, rotation: int) -> None:
        """On the hexagon that is its orbit, so that it touches a wall where the rules say so."""
        beside = math.radians((cursor % LANE - LANE / 2) / 10)
        orbit = ORBIT / math.cos(beside)
        angle = cursor + rotation
        tip = self._point(self._direction(angle), orbit)
        base = orbit - CURSOR_LENGTH
        left, right = (self._point(self._direction(angle + side), base) for side in (-CURSOR_WIDTH, CURSOR_WIDTH))
        notch = self._point(self._direction(angle), base + CURSOR_LENGTH / 3)
        self._polygon(surface, CURSOR, (tip, left, notch, right))

    def _texts(self, surface: pygame.Surface, game: Game) -> None:
        width, height = self.size
        if game.phase is Phase.PLAYING:
            self._say(surface, self._small, f"TIME {clock(game.round.ticks)}", right=width)
            self._say(surface, self._small, f"LEVEL {game.level}", left=0)
        elif game.phase is Phase.READY:
            self._say(surface, self._large, "HEXAGON", centerx=width // 2, centery=height // 5)
            self._say(surface, self._medium, "PRESS SPACE TO START", centerx=width // 2, bottom=height)
        else:  # what happened can be seen between the words
            self._say(surface, self._large, "GAME OVER", centerx=width // 2, centery=height // 5)
            for name, ticks, quarter in (("LAST", game.last, 1), ("BEST", game.best, 3)):
                text = f"{name} {clock(ticks or 0)}"
                self._say(surface, self._medium, text, centerx=width * quarter // 4, centery=height * 3 // 4)
            self._say(surface, self._medium, "PRESS SPACE TO RETRY", centerx=width // 2, bottom=height)

    def _say(self, surface: pygame.Surface, font: pygame.Font, text: str, **place: int) -> None:
        words = font.render(text, True, TEXT, PANEL)
        panel = words.get_rect().inflate(2 * self._padding, 2 * self._padding)
        panel.top = 0
        for side, value in place.items():
            setattr(panel, side, value)
        surface.fill(PANEL, panel)
        # Capitals leave the room below the line empty.
        surface.blit(words, words.get_rect(center=panel.center).move(0, -font.get_descent() // 2))
