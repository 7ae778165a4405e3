"""Plot runs as an SVG or PNG file.

Kinds: scores with intervals, a curve over a setting that differs between the runs, pass@k over k
(passes), the distribution of scores (histogram), the time of answers (latency), and delays in real
time (lags). Without --kind Proctor chooses one and prints its name."""

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
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run id, its prefix, or `latest`")
    parser.add_argument("--out", metavar="FILE", required=True, help="an .svg or .png file")
    parser.add_argument("--kind", default="", metavar="KIND", help=f"one of {', '.join(KINDS)}")
    parser.add_argument("--metric", default="", metavar="NAME", help="metric of scores and curves (default: the first)")
    parser.add_argument("--by", default="", metavar="SETTING", help="setting on the x axis of a curve")
    parser.add_argument("--width", type=int, default=720, metavar="N", help="default: 720")
    parser.add_argument("--height", type=int, metavar="N", help="default: as the plot needs")
    parser.add_argument(
        "--theme", choices=THEMES, default="auto", help="auto follows the system of the viewer; a PNG is light"
    )
    parser.add_argument("--scale", type=float, default=2.0, metavar="X", help="pixels of a PNG per unit (default: 2)")
    add_store_flag(parser)


def call(args: argparse.Namespace) -> int:
    target = user_path(args.out)
    if target.suffix not in FORMATS:
        raise UsageError(f"No format for {args.out}: use the extension {' or '.join(FORMATS)}.")
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
    # A temporary name until the file is complete.
    part = target.with_name(f"{target.name}.part")
    try:
        part.write_bytes(content)
        os.replace(part, target)
    except OSError as error:
        raise UsageError(f"Cannot write {target}: {error.strerror}.") from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
