"""The canvas: shapes of distinct kinds at integer places, in bounds, never touching, no two level."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from msgspec import Struct

from proctor.randomness import Stream

SIZES = ("small", "large")
COLOURS = ("red", "blue", "yellow", "green")
FORMS = ("square", "circle", "triangle")
KINDS = tuple(product(SIZES, COLOURS, FORMS))

BOUND = 32  # the canvas reaches from −32 to 32 both ways; x grows to the right, y upwards
HALF_WIDTH = {"small": 2, "large": 3}
# Shapes stand in the cells of a 5 × 5 grid, off its centre by at most 2: with these half-widths neighbours
# keep a distance of 2, and nothing has to be tried twice.
CELLS, PITCH, JITTER = 5, 12, 2


class Shape(Struct, frozen=True):
    size: str
    colour: str
    form: str
    x: int
    y: int

    def __str__(self) -> str:
        return f"{self.size} {self.colour} {self.form}"


def draw_canvas(n: int, random: Stream) -> list[Shape]:
    """n shapes of different kinds, every set of kinds and of cells equally likely."""
    return place_kinds(random.sample(KINDS, n), random)


def place_kinds(
    kinds: Sequence[tuple[str, str, str]], random: Stream, cells: Sequence[int] | None = None
) -> list[Shape]:
    """Shapes of these kinds, in these cells of the grid or in any."""
    cells = cells or random.sample(range(CELLS * CELLS), len(kinds))
    across, down = _offsets(random), _offsets(random)
    shapes = []
    for (size, colour, form), cell in zip(kinds, cells, strict=True):
        row, column = divmod(cell, CELLS)
        x = (column - CELLS // 2) * PITCH + across[column][row]
        y = (row - CELLS // 2) * PITCH + down[row][column]
        shapes.append(Shape(size, colour, form, x, y))
    return shapes


def _offsets(random: Stream) -> list[list[int]]:
    """For each line of the grid, an offset for each of its cells, all different: so no two shapes are level."""
    step = 1 + random.below(CELLS - 1)
    starts = [random.below(CELLS) for _ in range(CELLS)]
    # CELLS is prime: multiples of the step run through all offsets before one comes again.
    return [[(start + step * cell) % CELLS - JITTER for cell in range(CELLS)] for start in starts]
