"""Write the samples of a task to a file, without a model.

The same seed gives the same bytes in any process; the shards 1/M … M/M concatenate to the whole file."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial

from proctor.cli.options import add_shots_flag, add_task_flags, parse_settings
from proctor.core import registry
from proctor.core.config import build_config, user_path
from proctor.core.errors import UsageError
from proctor.core.task import create_task, take_samples
from proctor.formats.data_files import shard_of, write_data, write_images, writer_for

PROGRESS_SECONDS = 10.0  # between two lines of progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="task name, or path/to/file.py:Class")
    parser.add_argument("-n", metavar="N", help="number of samples (default: the task's)")
    parser.add_argument("--out", metavar="FILE", required=True, help="a .jsonl or .parquet file; - is standard output")
    parser.add_argument("--seed", default=0, metavar="N", help="seed of the samples (default: 0)")
    parser.add_argument(
        "--few-shot", default=0, metavar="N", help="number of few-shot examples per sample (default: 0)"
    )
    add_shots_flag(parser)
    parser.add_argument("--shard", default="1/1", metavar="K/M", help="only part K of M of the samples")
    parser.add_argument(
        "--images", metavar="DIR", help="also draw each sample into this folder; the field `image` holds the file name"
    )
    parser.add_argument(
        "--image-format", choices=("png", "svg"), default="png", help="format of the images (default: png)"
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")
    add_task_flags(parser)


def call(args: argparse.Namespace) -> int:
    name = registry.expand_one(args.task)
    options = {"settings": parse_settings(getattr(args, "settings", [])), "seed": args.seed, "few_shot": args.few_shot}
    options |= {"shots": getattr(args, "shots", "same"), "data": getattr(args, "data", None)}
    config = build_config({"task": name, "model": "scripted/oracle", "limit": args.n} | options)
    task = create_task(registry.load_task_class(name), name, config.settings, data=config.data)
    n = task.count(config)
    if n is None:  # the task does not know
        n = sum(1 for _ in take_samples(task, config))
    part = shard_of(args.shard, n)
    writer_for(args.out)
    lines = task.json_lines(config, part)
    if args.images is not None:
        if not task.has_pictures():
            raise UsageError(f"{name} has no images to draw.")
        draw = partial(task.draw_row, ending=args.image_format)
        lines = write_images(lines, draw, user_path(args.images), args.image_format)
    counted = _CountedLines(lines, len(part), args.quiet)
    write_data(counted, args.out)
    if not args.quiet:
        plural = "" if counted.done == 1 else "s"
        message = f"{args.out}: {counted.done:,} sample{plural} in {counted.seconds:.1f} s"
        print(message, file=sys.stderr)
    return 0


class _CountedLines:
    """Passes lines through and prints progress."""

    def __init__(self, lines: Iterable[bytes], total: int, quiet: bool) -> None:
        self._lines, self._total, self._quiet = lines, total, quiet
        self._started = time.monotonic()
        self.done = 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def __iter__(self) -> Iterator[bytes]:
        next_line = PROGRESS_SECONDS
        for piece in self._lines:
            yield piece
            self.done += piece.count(b"\n")
            if not self._quiet and self.seconds >= next_line:
                next_line = self.seconds + PROGRESS_SECONDS
                print(f"  {self.done:,} of {self._total:,}", file=sys.stderr, flush=True)
