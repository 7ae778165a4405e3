"""A canvas in words: three ways to say the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, permutations
from typing import Literal

from proctor.shapes.canvas import Shape

COORDINATES_HEADING = "A canvas shows these shapes, each with the (x, y) position of its centre:"
RELATIONS_HEADING = "On a canvas of shapes:"

Kind = Literal["coordinates", "full", "partial"]


def coordinates(shapes: Sequence[Shape]) -> str:
    """The centre of each shape."""
    lines = [f"- {shape} at ({shape.x}, {shape.y})" for shape in shapes]
    return "\n".join([COORDINATES_HEADING, *lines])


def full(shapes: Sequence[Shape]) -> str:
    """The relation of every ordered pair: each is said from both sides."""
    return _relations(permutations(shapes, 2))


def partial(shapes: Sequence[Shape]) -> str:
    """The relation of every pair, said once."""
    return _relations(combinations(shapes, 2))


DESCRIPTIONS: dict[Kind, Callable[[Sequence[Shape]], str]] = {
    "coordinates": coordinates,
    "full": full,
    "partial": partial,
}


def _relations(pairs: Iterable[tuple[Shape, Shape]]) -> str:
    lines = [f"- the {a} is {relation(a, b)} the {b}" for a, b in pairs]
    return "\n".join([RELATIONS_HEADING, *lines])


def lines_to_mention(shapes: int, kind: Kind) -> int:
    """The fewest lines that mention so many shapes: a line about places mentions one, a line about a relation two."""
    return shapes if kind == "coordinates" else (shapes + 1) // 2


def relation(a: Shape, b: Shape) -> str:
    """Where the centre of a is, seen from the centre of b. No two shapes of a canvas are level."""
    vertical = "above" if a.y > b.y else "below"
    horizontal = "right" if a.x > b.x else "left"
    return f"{vertical} and to the {horizontal} of"
