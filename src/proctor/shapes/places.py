"""Positions on a canvas in words: leftmost, third highest, to the left of another shape."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.core.random import Stream
from proctor.shapes.canvas import Shape

SIDES = {"x": ("left", "right"), "y": ("bottom", "top")}
SUPERLATIVES = {"left": "leftmost", "right": "rightmost", "bottom": "lowest", "top": "highest"}
AXES = {
    "x": ("Left", "Right"),
    "y": ("Below", "Above"),
}  # directions, that of the lower coordinate first
RELATIONS = {"Left": "to the left of", "Right": "to the right of", "Below": "below", "Above": "above"}

_NINE = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_TEENS = ("thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth")
_TWENTIES = ("twentieth", *(f"twenty-{word}" for word in _NINE[:4]))
ORDINALS = (*_NINE, "tenth", "eleventh", "twelfth", *_TEENS, *_TWENTIES)


def draw_place(shapes: Sequence[Shape], name: str, random: Stream) -> str:
    """The position of a shape along one of the axes, in words."""
    return place_along(shapes, name, random.choice(tuple(SIDES)))


def place_along(shapes: Sequence[Shape], name: str, axis: str) -> str:
    line = [str(shape) for shape in sorted(shapes, key=lambda shape: getattr(shape, axis))]
    return name_place(line.index(name), len(line), axis)


def name_place(index: int, length: int, axis: str) -> str:
    """'leftmost', 'second from the right', 'highest', 'third lowest': for the shape of this rank along the axis."""
    number, side = from_nearer_end(index, length, *SIDES[axis])
    if number == 0:
        return SUPERLATIVES[side]
    return f"{ORDINALS[number]} from the {side}" if axis == "x" else f"{ORDINALS[number]} {SUPERLATIVES[side]}"


def from_nearer_end(index: int, length: int, start: str, end: str) -> tuple[int, str]:
    """A place in a line, counted from the end that is nearer, and which one that is: so far the ordinals reach."""
    from_end = length - 1 - index
    return (index, start) if index <= from_end else (from_end, end)


def read_place(place: str) -> tuple[str, int]:
    """The side from which a place is counted, and how many shapes are nearer to it; for solvers."""
    for side, word in SUPERLATIVES.items():
        if place.endswith((word, f"from the {side}")):
            number = place.removesuffix(word).removesuffix(f"from the {side}").strip()
            return side, ORDINALS.index(number) if number else 0
    raise ValueError(f"not a position: {place!r}")
