"""The canvas: shapes of distinct kinds at integer places, in bounds, never touching, no two level."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from msgspec import Struct

from proctor.core.random import Stream

SIZES = ("small", "large")
FORMS = ("square", "circle", "triangle")
HALF_WIDTH = {"small": 2, "large": 3}  # of the room that a shape keeps to itself; see drawing.py for how it is drawn

Kind = tuple[str, str, str]  # size, colour, form


class Board:
    """The kinds of shapes there are, and the grid they stand in.

    A shape stands off the centre of its cell by at most `jitter`. The pitch of the grid leaves two units between the
    largest neighbours even so: nothing has to be tried twice.
    """

    def __init__(self, colours: tuple[str, ...], cells: int, bound: int) -> None:
        self.colours = colours
        self.kinds: tuple[Kind, ...] = tuple(product(SIZES, colours, FORMS))
        self.names = tuple(" ".join(kind) for kind in self.kinds)
        self.cells = cells  # in a line of the grid; a prime, and as many as there are offsets
        self.jitter = cells // 2
        self.pitch = 2 * self.jitter + 2 * max(HALF_WIDTH.values()) + 2
        self.bound = bound  # it reaches from −bound to bound both ways; x grows to the right, y upwards

    def centre(self, line: int) -> int:
        """Where the middle of a line of the grid is."""
        return (line - self.cells // 2) * self.pitch


SMALL = Board(("red", "blue", "yellow", "green"), cells=5, bound=32)
LARGE = Board((*SMALL.colours, "purple", "orange", "brown", "black"), cells=7, bound=52)


def board_for(kinds: int) -> Board:
    """Up to 24 kinds fit on the small board; for more, there are twice as many colours on a larger one."""
    return SMALL if kinds <= len(SMALL.kinds) else LARGE


class Shape(Struct, frozen=True):
    size: str
    colour: str
    form: str
    x: int
    y: int

    def __str__(self) -> str:
        return f"{self.size} {self.colour} {self.form}"


def draw_canvas(n: int, random: Stream, board: Board = SMALL) -> list[Shape]:
    """n shapes of different kinds, every set of kinds and of cells equally likely."""
    return place_kinds(random.sample(board.kinds, n), random, board)


def place_kinds(
    kinds: Sequence[Kind], random: Stream, board: Board = SMALL, cells: Sequence[int] | None = None
) -> list[Shape]:
    """Shapes of these kinds, in these cells of the grid or in any."""
    cells = cells or random.sample(range(board.cells**2), len(kinds))
    across, down = _offsets(random, board), _offsets(random, board)
    shapes = []
    for (size, colour, form), cell in zip(kinds, cells, strict=True):
        row, column = divmod(cell, board.cells)
        x = board.centre(column) + across[column][row]
        y = board.centre(row) + down[row][column]
        shapes.append(Shape(size, colour, form, x, y))
    return shapes


def _offsets(random: Stream, board: Board) -> list[list[int]]:
    """For each line of the grid, an offset for each of its cells, all different: so no two shapes are level."""
    cells = board.cells
    step = 1 + random.below(cells - 1)
    starts = [random.below(cells) for _ in range(cells)]
    # The number of cells is prime: multiples of the step run through all offsets before one comes again.
    return [[(start + step * cell) % cells - board.jitter for cell in range(cells)] for start in starts]
