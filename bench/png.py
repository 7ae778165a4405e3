"""Drawing of canvases as PNG: Proctor against Pillow and matplotlib, in one process.

    python bench/png.py             canvases of 10 shapes, 256 × 256 pixels

Each draws the same canvases. Pillow and matplotlib appear twice: in plain code, and in the
fastest way found. Figures are images per CPU second, the median of alternating rounds.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from process import HERE, PEER_ENV, print_status, short
from proctor.core.random import Stream
from proctor.shapes import Shape
from proctor.shapes.canvas import SMALL, draw_canvas
from proctor.shapes.drawing import COLOURS, FRAME, HALF_WIDTH, PIXELS, png

SHAPES = 10
CANVASES = [draw_canvas(SHAPES, Stream(i)) for i in range(200)]
SIDE = 2 * PIXELS * SMALL.bound

# For the fastest way with Pillow: a white image with all colours in its palette, to be copied.
NUMBERS = {name: number for number, name in enumerate(COLOURS)}
BLANK = Image.new("P", (SIDE, SIDE), NUMBERS["white"])
ImageDraw.Draw(BLANK).rectangle((0, 0, SIDE - 1, SIDE - 1), outline=NUMBERS["gray"], width=FRAME)
BLANK.putpalette(bytes.fromhex("".join(colour[1:] for colour in COLOURS.values())))

Draw = Callable[[list[Shape]], bytes]


def centre(shape: Shape) -> tuple[float, float, float]:
    """The centre in pixels, and half the width."""
    x, y = PIXELS * (SMALL.bound + shape.x), PIXELS * (SMALL.bound - shape.y)
    return x, y, HALF_WIDTH[shape.size]


def draw_with_proctor(shapes: list[Shape]) -> bytes:
    return png(shapes, SMALL)


def draw_with_pillow(shapes: list[Shape]) -> bytes:
    image = Image.new("RGB", (SIDE, SIDE), "white")
    pen = ImageDraw.Draw(image)
    pen.rectangle((0, 0, SIDE - 1, SIDE - 1), outline=COLOURS["gray"], width=FRAME)
    for shape in shapes:
        pillow_shape(pen, shape, COLOURS[shape.colour])
    return pillow_png(image)


def draw_with_pillow_fastest(shapes: list[Shape]) -> bytes:
    """A palette leaves fewer bytes to compress, and the lowest level compresses fastest."""
    image = BLANK.copy()
    pen = ImageDraw.Draw(image)
    for shape in shapes:
        pillow_shape(pen, shape, NUMBERS[shape.colour])
    return pillow_png(image, bits=4, compress_level=1)


def pillow_shape(pen: ImageDraw.ImageDraw, shape: Shape, fill: str | int) -> None:
    x, y, half = centre(shape)
    left, top, right, bottom = x - half, y - half, x + half - 1, y + half - 1
    if shape.form == "square":
        pen.rectangle((left, top, right, bottom), fill)
    elif shape.form == "circle":
        pen.ellipse((left, top, right, bottom), fill)
    else:
        pen.polygon([(x, top), (right, bottom), (left, bottom)], fill)


def pillow_png(image: Image.Image, **options: int) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG", **options)
    return file.getvalue()


class Matplotlib:
    def __init__(self, fastest: bool) -> None:
        # Installed for the peers, whose packages come after Proctor's.
        sys.path.extend(str(path) for path in PEER_ENV.glob("lib/python*/site-packages"))
        self._patches: Any = importlib.import_module("matplotlib.patches")
        self._figures: Any = importlib.import_module("matplotlib.figure")
        self._cached = self._figure() if fastest else None  # making a figure takes most of the time

    def __call__(self, shapes: list[Shape]) -> bytes:
        figure = self._cached or self._figure()
        axes = figure.axes[0]
        for patch in list(axes.patches):
            patch.remove()
        for shape in shapes:
            axes.add_patch(self._patch(shape))
        file = io.BytesIO()
        options = {"pil_kwargs": {"compress_level": 1}} if self._cached else {}
        figure.savefig(file, format="png", **options)
        return file.getvalue()

    def _figure(self) -> Any:
        figure = self._figures.Figure(figsize=(1, 1), dpi=SIDE)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, SIDE), ylim=(SIDE, 0))
        axes.axis("off")
        axes.add_artist(self._patches.Rectangle((0, 0), SIDE, SIDE, fill=False, edgecolor=COLOURS["gray"], lw=4))
        return figure

    def _patch(self, shape: Shape) -> Any:
        x, y, half = centre(shape)
        look = {"facecolor": COLOURS[shape.colour], "edgecolor": "none"}
        if shape.form == "square":
            return self._patches.Rectangle((x - half, y - half), 2 * half, 2 * half, **look)
        if shape.form == "circle":
            return self._patches.Circle((x, y), half, **look)
        return self._patches.Polygon([(x, y - half), (x + half, y + half), (x - half, y + half)], **look)


def subjects() -> dict[str, Draw]:
    chosen: dict[str, Draw] = {
        "proctor": draw_with_proctor,
        "Pillow": draw_with_pillow,
        "Pillow, fastest": draw_with_pillow_fastest,
    }
    try:
        chosen |= {"matplotlib": Matplotlib(False), "matplotlib, fastest": Matplotlib(True)}
    except ModuleNotFoundError:
        print_status("matplotlib is left out: it comes with the peers, which `make bench` installs")
    return chosen


def rate(draw: Draw, canvases: list[list[Shape]]) -> float:
    started = time.process_time()
    for shapes in canvases:
        draw(shapes)
    return len(canvases) / (time.process_time() - started)


def measure(chosen: dict[str, Draw], rounds: int, seconds: float) -> dict[str, dict[str, float]]:
    """Images per CPU second and bytes per image."""
    counts: dict[str, int] = {}
    sizes: dict[str, float] = {}
    for name, draw in chosen.items():
        made = [draw(shapes) for shapes in CANVASES[:20]]
        assert all(Image.open(io.BytesIO(data)).size == (SIDE, SIDE) for data in made), name
        sizes[name] = statistics.mean(map(len, made))
        counts[name] = max(1, round(seconds * rate(draw, CANVASES[:20]) / len(CANVASES)))
    rates: dict[str, list[float]] = {name: [] for name in chosen}
    for _ in range(rounds):
        for name, draw in chosen.items():
            rates[name].append(rate(draw, CANVASES * counts[name]))
    return {name: {"per_second": statistics.median(rates[name]), "bytes": sizes[name]} for name in chosen}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a round of each is to take, about")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "png.json", help="where the figures go")
    args = parser.parse_args()
    figures = measure(subjects(), args.rounds, args.seconds)
    ours = figures["proctor"]["per_second"]
    print("| PNG of 10 shapes, 256 × 256 | images per CPU second | Proctor is faster | bytes |\n|---|---|---|---|")
    for name, figure in figures.items():
        ratio = "" if name == "proctor" else f"{short(ours / figure['per_second'])}×"
        print(f"| {name} | {short(figure['per_second'])} | {ratio} | {short(figure['bytes'])} |")
    result = {"python": platform.python_version(), "shapes": SHAPES, "side": SIDE, "rounds": args.rounds}
    args.out.write_text(json.dumps(result | {"figures": figures}, indent=2) + "\n")
    print_status(f"written to {args.out}")


if __name__ == "__main__":
    main()
