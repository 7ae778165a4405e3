"""The canvas: shapes of distinct kinds at integer places, in bounds and never touching."""

from __future__ import annotations

from itertools import product

from msgspec import Struct

from proctor.randomness import Stream

SIZES = ("small", "large")
COLOURS = ("red", "blue", "yellow", "green")
FORMS = ("square", "circle", "triangle")
KINDS = tuple(product(SIZES, COLOURS, FORMS))

BOUND = 32  # centres lie within −32..32 both ways
# Shapes stand in the cells of a 6 × 6 grid, a step off its centre at most: with these half-widths
# neighbours keep a distance of 2, and nothing has to be tried twice.
PITCH, CELLS, JITTER = 10, 6, 1
HALF_WIDTH = {"small": 2, "large": 3}


class Shape(Struct, frozen=True):
    size: str
    colour: str
    form: str
    x: int
    y: int

    def __str__(self) -> str:
        return f"{self.size} {self.colour} {self.form}"


def draw_canvas(n: int, random: Stream) -> list[Shape]:
    """n shapes of different kinds, every set of kinds and places equally likely."""
    kinds = random.sample(KINDS, n)
    cells = random.sample(range(CELLS * CELLS), n)
    shapes = []
    for (size, colour, form), cell in zip(kinds, cells, strict=True):
        row, column = divmod(cell, CELLS)
        x, y = (
            PITCH * place - PITCH * (CELLS - 1) // 2 + random.below(2 * JITTER + 1) - JITTER for place in (column, row)
        )
        shapes.append(Shape(size, colour, form, x, y))
    return shapes
