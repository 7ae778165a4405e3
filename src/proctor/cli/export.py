"""Write the records of a run: one JSON object a line, one JSON array, or CSV."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from proctor.cli.options import add_store_flag
from proctor.errors import UsageError
from proctor.store import open_store
from proctor.store.export import FORMATS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="id of the run, the start of it, or `latest`")
    parser.add_argument("--format", choices=tuple(FORMATS), help="default: by the file's ending, else jsonl")
    parser.add_argument("--out", metavar="FILE", help="where to (default: standard output)")
    parser.add_argument("--reviewed", action="store_true", help="with the scores that people gave instead")
    add_store_flag(parser)


def call(args: argparse.Namespace) -> int:
    ending = Path(args.out).suffix.lstrip(".") if args.out else ""
    if ending and not args.format and ending not in FORMATS:
        raise UsageError(f"No format for files that end in .{ending}: use .{', .'.join(FORMATS)}, or say --format.")
    chosen = args.format or ending or "jsonl"
    store = open_store(getattr(args, "store", None), mode="read")
    try:
        chunks = FORMATS[chosen](store.records(store.run(args.run), reviewed=args.reviewed))
        if args.out is None:
            sys.stdout.buffer.writelines(chunks)
            sys.stdout.buffer.flush()
            return 0
        try:
            with Path(args.out).open("wb") as file:
                file.writelines(chunks)
        except OSError as error:
            raise UsageError(f"Cannot write {args.out}: {error.strerror}.") from None
    finally:
        store.close()
    return 0
