"""Plot runs as an SVG or PNG file.

Kinds: scores with their intervals, a curve over a setting in which the runs differ, pass@k over k (passes), how often
each score was given (histogram), how long answers took (latency), how late everybody was in real time (lags). Without
--kind the one that suits the runs is chosen, and said."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path

from proctor.analysis.figures import KINDS, make_figure
from proctor.analysis.plots import THEMES, render_png
from proctor.cli.options import add_store_flag
from proctor.core.config import user_path
from proctor.core.errors import UsageError
from proctor.store import open_store

FORMATS = (".svg", ".png")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="id of a run, the start of it, or `latest`")
    parser.add_argument("--out", metavar="FILE", required=True, help="where to, in .svg or .png")
    parser.add_argument("--kind", default="", metavar="KIND", help=f"one of {', '.join(KINDS)}")
    parser.add_argument("--metric", default="", metavar="NAME", help="of scores and curves (default: the first)")
    parser.add_argument("--by", default="", metavar="SETTING", help="setting that a curve goes over")
    parser.add_argument("--width", type=int, default=720, metavar="N", help="default: 720")
    parser.add_argument("--height", type=int, metavar="N", help="default: as high as the plot needs")
    parser.add_argument("--theme", choices=THEMES, default="auto", help="auto: as the reader's system; a PNG is light")
    parser.add_argument("--scale", type=float, default=2.0, metavar="X", help="pixels of a PNG per unit (default: 2)")
    add_store_flag(parser)


def call(args: argparse.Namespace) -> int:
    target = user_path(args.out)
    if target.suffix not in FORMATS:
        raise UsageError(f"No format for {args.out}: use a name that ends in {' or '.join(FORMATS)}.")
    if not 0.1 <= args.scale <= 16:
        raise UsageError(f"--scale: expected a number from 0.1 to 16, got {args.scale:g}.")
    store = open_store(getattr(args, "store", None), mode="read")
    try:
        figure = make_figure(store, [store.run(name) for name in args.runs], args.kind, args.metric, args.by)
    finally:
        store.close()
    drawing = figure.plot.draw(args.width, args.height)
    if target.suffix == ".png":
        _write(target, render_png(drawing, args.theme, args.scale))
    else:
        _write(target, drawing.svg(args.theme).encode())
    why = f" (chosen: {figure.why}; others: --kind)" if figure.why else ""
    print(f"{args.out}: {figure.kind}{why}, {drawing.width:.0f} × {drawing.height:.0f}", file=sys.stderr)
    return 0


def _write(target: Path, content: bytes) -> None:
    # Under another name until it is complete: nobody takes half a file for the whole.
    part = target.with_name(f"{target.name}.part")
    try:
        part.write_bytes(content)
        os.replace(part, target)
    except OSError as error:
        raise UsageError(f"Cannot write {target}: {error.strerror}.") from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
