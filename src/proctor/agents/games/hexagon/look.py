"""How the game looks, in colours and measures: for who draws it, and for who reads it from a picture."""

from __future__ import annotations

from msgspec import Struct

Colour = tuple[int, int, int]

SIZE = (640, 480)
HALF_HEIGHT = 24_000  # in the units of the field

CURSOR: Colour = (255, 255, 255)
TEXT: Colour = (255, 255, 255)
PANEL: Colour = (10, 10, 16)
CURSOR_LENGTH, CURSOR_WIDTH = 1_500, 95  # outwards in units of the field, to each side in tenths of a degree


class GamePalette(Struct, frozen=True):
    """Walls are bright and coloured, the ground is dark: so they can be told apart at every level."""

    wall: Colour
    ground: Colour
    other_ground: Colour  # of every second lane
    centre: Colour


PALETTES = {
    1: GamePalette((255, 176, 46), (44, 30, 62), (56, 39, 78), (30, 20, 44)),
    2: GamePalette((64, 224, 180), (18, 42, 66), (24, 54, 82), (12, 28, 46)),
    3: GamePalette((255, 92, 124), (40, 26, 54), (52, 34, 68), (26, 17, 37)),
    4: GamePalette((120, 190, 255), (26, 28, 70), (34, 37, 88), (17, 18, 48)),
    5: GamePalette((196, 240, 66), (46, 22, 30), (60, 29, 39), (30, 14, 20)),
}
BRIGHT, PALE = 170, 150  # a wall has a channel above the one, and one below the other
