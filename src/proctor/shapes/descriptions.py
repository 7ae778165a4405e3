"""A canvas in words."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.shapes.canvas import Shape


def coordinates(shapes: Sequence[Shape]) -> str:
    """The centre of each shape."""
    lines = [f"- {shape} at ({shape.x}, {shape.y})" for shape in shapes]
    return "\n".join(["A canvas shows these shapes, each with the (x, y) position of its centre:", *lines])
