"""The shapes of a picture, found from its pixels alone: the second opinion on what a picture shows.

It shares no code with the drawing. Pillow decodes the file and says what the name of a colour means; the rest is the
scale of the picture, and how wide small and large shapes are. The order of shapes is not in a picture.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageColor

from proctor.shapes.canvas import LARGE, Shape

UNIT = 4  # pixels
SIZES = {14: "small", 28: "large"}  # by width in pixels
FRAME = 2  # pixels at each side of the picture
WHITE = 0xFFFFFF
TOLERANCE = 2  # pixels by which a row of a shape may be wider or narrower than the ideal form

# How wide each form is at a depth below its top, when it is so wide and high in all.
WIDTHS: dict[str, Callable[[float, int], float]] = {
    "square": lambda depth, size: size,
    "circle": lambda depth, size: 2 * math.sqrt(depth * (size - depth)),
    "triangle": lambda depth, size: depth,
}


class PixelRun(NamedTuple):
    """Neighbouring pixels of one colour in a row."""

    row: int
    start: int
    end: int
    colour: int


def read_png(data: bytes) -> list[Shape]:
    """All shapes in the picture; whatever else is in it raises an error."""
    with Image.open(BytesIO(data)) as picture:
        pixels = np.asarray(picture.convert("RGB")) @ np.array([1 << 16, 1 << 8, 1])
    inside = np.zeros(pixels.shape, bool)
    inside[FRAME:-FRAME, FRAME:-FRAME] = True
    if not _is_grey(np.unique(pixels[~inside]).tolist()):
        raise ValueError("the picture has no frame")
    pixels[~inside] = WHITE
    return [_shape(outline, len(pixels)) for outline in _outlines(_runs(pixels))]


def _runs(pixels: Any) -> Iterator[PixelRun]:
    """Row by row, all runs that are not white."""
    begins = np.ones(pixels.shape, bool)
    begins[:, 1:] = pixels[:, 1:] != pixels[:, :-1]
    rows, starts = np.nonzero(begins)
    # A run goes on until the next one begins, or to the edge if that is in the next row.
    ends = np.append(starts[1:], 0)
    ends[ends == 0] = pixels.shape[1]
    colours = pixels[rows, starts]
    for run in map(PixelRun, rows.tolist(), starts.tolist(), ends.tolist(), colours.tolist()):
        if _name(run.colour) != "white":
            yield run


def _outlines(runs: Iterable[PixelRun]) -> list[list[PixelRun]]:
    """The runs of each shape: a run belongs with the one of its colour that it touches in the row above.

    No form has a hole or a dent, so there is one such run at most.
    """
    outlines: list[list[PixelRun]] = []
    ending: dict[int, list[list[PixelRun]]] = {}  # the outlines that end, as yet, in this row
    for run in runs:
        above = ending.get(run.row - 1, [])
        outline = next((o for o in above if o[-1].colour == run.colour and _touch(o[-1], run)), None)
        if outline is None:
            outline = []
            outlines.append(outline)
        else:
            above.remove(outline)
        outline.append(run)
        ending.setdefault(run.row, []).append(outline)
    return outlines


def _touch(a: PixelRun, b: PixelRun) -> bool:
    return a.start < b.end and b.start < a.end


def _shape(outline: list[PixelRun], side: int) -> Shape:
    left, right = min(run.start for run in outline), max(run.end for run in outline)
    top, bottom = outline[0].row, outline[-1].row + 1
    place = f"what is at ({left}, {top})–({right}, {bottom}) in the picture"
    if right - left != bottom - top or right - left not in SIZES:
        raise ValueError(f"{place} is neither as wide nor as high as a shape")
    x, y = (left + right) / 2 / UNIT, (top + bottom) / 2 / UNIT
    if x % 1 or y % 1:
        raise ValueError(f"{place} stands between two units")
    form = _form(outline, left + right)
    if form is None:
        raise ValueError(f"{place} has the outline of no form")
    bound = side // UNIT // 2
    return Shape(SIZES[right - left], _name(outline[0].colour), form, int(x) - bound, bound - int(y))


def _form(outline: list[PixelRun], ends: int) -> str | None:
    """The form whose outline this is: as wide in every row, and as far to the left as to the right."""
    if any(run.start + run.end != ends for run in outline):
        return None
    size = len(outline)
    for form, width in WIDTHS.items():
        if all(abs(run.end - run.start - width(i + 0.5, size)) < TOLERANCE for i, run in enumerate(outline)):
            return form
    return None


def _is_grey(colours: list[int]) -> bool:
    """Whether there is one colour, between black and white."""
    return len(colours) == 1 and colours[0] in range(0x010101, WHITE, 0x010101)


@cache
def _name(colour: int) -> str:
    """The name whose usual meaning comes nearest to the colour."""
    rgb = colour >> 16, colour >> 8 & 255, colour & 255
    return min(("white", *LARGE.colours), key=lambda name: math.dist(rgb, ImageColor.getrgb(name)[:3]))
