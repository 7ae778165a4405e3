"""A canvas as a picture: PNG for candidates, SVG for people."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from proctor.shapes.canvas import HALF_WIDTH, Board, Kind, Shape

PIXELS = 4  # per unit; even, so that in a PNG with two pixels to a byte every shape begins and ends with a whole byte
COLOURS = {
    "white": "#ffffff",  # the background
    "red": "#e0201b",
    "blue": "#1e5bd6",
    "yellow": "#ffd60a",
    "green": "#1f9d3a",
    "purple": "#8e2bb8",
    "orange": "#ff8c0f",
    "brown": "#8b4d1f",
    "black": "#111111",
}


def caption(board: Board, *, in_words: bool) -> str:
    """What must be said of the picture so that every question has one answer; in one line."""
    low, high = -board.bound, board.bound
    small, large = (2 * HALF_WIDTH[size] for size in ("small", "large"))
    text = (
        f"The picture shows a canvas of shapes. x runs from {low} at its left edge to {high} at its right edge, y from "
        f"{low} at the bottom to {high} at the top. Small shapes are {small} wide and high, large ones {large}; the "
        "place of a shape is the middle of its width and height."
    )
    return f"{text} The same canvas in words:" if in_words else text


def svg(shapes: Sequence[Shape], board: Board) -> str:
    side = _side(board)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{side}" height="{side}" viewBox="0 0 {side} {side}">',
        f'<rect width="{side}" height="{side}" fill="{COLOURS["white"]}"/>',
        *(_element(shape, board) for shape in shapes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def png(shapes: Sequence[Shape], board: Board) -> bytes:
    """The pixels are the same everywhere; the bytes are wherever zlib is the same, as another may pack differently."""
    rows = np.zeros((_side(board), 1 + _side(board) // 2), np.uint8)  # white, and each row led by its filter: none
    for shape in shapes:
        left, top = _corner(shape, board)
        sprite = _sprite((shape.size, shape.colour, shape.form))
        height, width = sprite.shape
        column = 1 + left // 2
        rows[top : top + height, column : column + width] = sprite
    # Level 1 takes a quarter of the time of the usual 6, and the file is small either way.
    return _head(_side(board)) + _chunk(b"IDAT", zlib.compress(rows.data, 1)) + _chunk(b"IEND", b"")


def _side(board: Board) -> int:
    return 2 * PIXELS * board.bound


def _corner(shape: Shape, board: Board) -> tuple[int, int]:
    """The upper left pixel of the box around the shape."""
    half = HALF_WIDTH[shape.size]
    if max(abs(shape.x), abs(shape.y)) + half > board.bound:
        raise ValueError(f"the {shape} at ({shape.x}, {shape.y}) reaches over the edge of the canvas")
    return PIXELS * (board.bound + shape.x - half), PIXELS * (board.bound - shape.y - half)


def _element(shape: Shape, board: Board) -> str:
    left, top = _corner(shape, board)
    half = PIXELS * HALF_WIDTH[shape.size]
    middle, right, bottom = left + half, left + 2 * half, top + 2 * half
    element = {
        "square": f'rect x="{left}" y="{top}" width="{2 * half}" height="{2 * half}"',
        "circle": f'circle cx="{middle}" cy="{top + half}" r="{half}"',
        "triangle": f'polygon points="{middle},{top} {right},{bottom} {left},{bottom}"',
    }[shape.form]
    return f'<{element} fill="{COLOURS[shape.colour]}"/>'


@cache
def _sprite(kind: Kind) -> NDArray[np.uint8]:
    """The pixels of a shape's box as they stand in the file: two to a byte, each the number of its colour."""
    size, colour, form = kind
    width = 2 * PIXELS * HALF_WIDTH[size]
    pixels = np.where(_mask(form, width), list(COLOURS).index(colour), 0)
    return (16 * pixels[:, ::2] + pixels[:, 1::2]).astype(np.uint8)


def _mask(form: str, width: int) -> Any:
    """Which pixels of a box belong to the form; all forms reach its four sides."""
    off_centre = np.abs(np.arange(width) + 0.5 - width / 2)
    if form == "square":
        return np.ones((width, width), bool)
    if form == "circle":
        return np.hypot.outer(off_centre, off_centre) <= width / 2
    return off_centre <= np.arange(1, width + 1)[:, None] / 2


@cache
def _head(side: int) -> bytes:
    """All that comes before the pixels: signature, size, four bits a pixel, and the palette they refer to."""
    size = struct.pack(">IIBBBBB", side, side, 4, 3, 0, 0, 0)
    palette = bytes.fromhex("".join(colour.lstrip("#") for colour in COLOURS.values()))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", size) + _chunk(b"PLTE", palette)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
