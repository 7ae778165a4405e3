"""A canvas as a picture: PNG for candidates, SVG for people."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.shapes.canvas import Board, Kind, Shape

PIXELS = 4  # per unit
HALF_WIDTH = {"small": 7, "large": 14}  # in pixels
FRAME = 2  # pixels
ROUNDING = 0.15  # pixels by which small circles are larger than they should be: without it they look like octagons
# Each colour has a lightness of its own, so that they differ without colour vision; docs/shapes.md states by how much.
COLOURS = {
    "white": "#ffffff",  # the background
    "gray": "#8c8c8c",  # the frame
    "red": "#d20a05",
    "blue": "#1546b8",
    "yellow": "#ffe000",
    "green": "#20ae70",
    "purple": "#45086e",
    "orange": "#f09e24",
    "brown": "#6a2a0c",
    "black": "#000000",
}

_NUMBERS = {name: number for number, name in enumerate(COLOURS)}


def caption(board: Board, *, in_words: bool) -> str:
    """What must be said of the picture so that every question has one answer; in one line."""
    low, high = -board.bound, board.bound
    small, large = (2 * HALF_WIDTH[size] / PIXELS for size in ("small", "large"))
    text = (
        f"The picture shows a canvas of shapes in a frame. x runs from {low} at its left edge to {high} at its right "
        f"edge, y from {low} at the bottom to {high} at the top. Small shapes are {small:g} wide and high, large ones "
        f"{large:g}; the place of a shape is the middle of its width and height."
    )
    return f"{text} The same canvas in words:" if in_words else text


def svg(shapes: Sequence[Shape], board: Board) -> str:
    side = _side(board)
    inside = f'x="{FRAME // 2}" y="{FRAME // 2}" width="{side - FRAME}" height="{side - FRAME}"'
    frame = f'fill="{COLOURS["white"]}" stroke="{COLOURS["gray"]}" stroke-width="{FRAME}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{side}" height="{side}" viewBox="0 0 {side} {side}">',
        f"<rect {inside} {frame}/>",
        *(_element(shape, board) for shape in shapes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def png(shapes: Sequence[Shape], board: Board) -> bytes:
    """The pixels are the same everywhere; the bytes are wherever zlib is the same, as another may pack differently."""
    rows = _empty(_side(board)).copy()
    for shape in shapes:
        left, top = _corner(shape, board)
        sprite = _sprite((shape.size, shape.colour, shape.form), left % 2)
        height, width = sprite.shape
        column = 1 + left // 2
        rows[top : top + height, column : column + width] = sprite
    # Level 1 takes a quarter of the time of the usual 6, and the file is small either way.
    return _head(_side(board)) + _chunk(b"IDAT", zlib.compress(rows.data, 1)) + _chunk(b"IEND", b"")


def _side(board: Board) -> int:
    return 2 * PIXELS * board.bound


def _corner(shape: Shape, board: Board) -> tuple[int, int]:
    """The upper left pixel of the box around the shape."""
    half, middle = HALF_WIDTH[shape.size], _side(board) // 2
    if PIXELS * max(abs(shape.x), abs(shape.y)) + half > middle - FRAME:
        raise ValueError(f"the {shape} at ({shape.x}, {shape.y}) reaches over the edge of the canvas")
    return middle + PIXELS * shape.x - half, middle - PIXELS * shape.y - half


def _element(shape: Shape, board: Board) -> str:
    left, top = _corner(shape, board)
    half = HALF_WIDTH[shape.size]
    middle, right, bottom = left + half, left + 2 * half, top + 2 * half
    element = {
        "square": f'rect x="{left}" y="{top}" width="{2 * half}" height="{2 * half}"',
        "circle": f'circle cx="{middle}" cy="{top + half}" r="{half}"',
        "triangle": f'polygon points="{middle},{top} {right},{bottom} {left},{bottom}"',
    }[shape.form]
    return f'<{element} fill="{COLOURS[shape.colour]}"/>'


@cache
def _empty(side: int) -> NDArray[np.uint8]:
    """The rows of a canvas without shapes, each led by its filter, which is none."""
    pixels = np.full((side, side), _NUMBERS["gray"])
    pixels[FRAME:-FRAME, FRAME:-FRAME] = _NUMBERS["white"]
    return np.hstack([np.zeros((side, 1), np.uint8), _packed(pixels)])


@cache
def _sprite(kind: Kind, margin: int) -> NDArray[np.uint8]:
    """The pixels of a shape's box as they stand in the file, with a margin on either side that completes its bytes.

    The margin is white: shapes are farther than that from each other and from the frame.
    """
    size, colour, form = kind
    pixels = np.where(_mask(form, 2 * HALF_WIDTH[size]), _NUMBERS[colour], _NUMBERS["white"])
    return _packed(np.pad(pixels, ((0, 0), (margin, margin)), constant_values=_NUMBERS["white"]))


def _packed(pixels: Any) -> NDArray[np.uint8]:
    """Two pixels to a byte, each the number of its colour."""
    packed: NDArray[np.uint8] = (16 * pixels[:, ::2] + pixels[:, 1::2]).astype(np.uint8)
    return packed


def _mask(form: str, width: int) -> Any:
    """Which pixels of a box belong to the form; all forms reach its four sides."""
    off_centre = np.abs(np.arange(width) + 0.5 - width / 2)
    if form == "square":
        return np.ones((width, width), bool)
    if form == "circle":
        radius = width / 2 + (ROUNDING if width == 2 * HALF_WIDTH["small"] else 0)
        return np.hypot.outer(off_centre, off_centre) <= radius
    return off_centre <= np.arange(1, width + 1)[:, None] / 2


@cache
def _head(side: int) -> bytes:
    """All that comes before the pixels: signature, size, four bits a pixel, and the palette they refer to."""
    size = struct.pack(">IIBBBBB", side, side, 4, 3, 0, 0, 0)
    palette = bytes.fromhex("".join(colour.lstrip("#") for colour in COLOURS.values()))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", size) + _chunk(b"PLTE", palette)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
