"""Compare runs of one task sample by sample, with intervals and paired significance.

The first run is the baseline. Runs that cannot be compared give an error (exit code 2)."""

from __future__ import annotations

import argparse

from proctor.cli.options import add_store_flag
from proctor.cli.output import print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run ids or their prefixes; `latest` is the newest run")
    parser.add_argument("--flips", action="store_true", help="also list the samples with different scores")
    parser.add_argument(
        "--detect",
        type=float,
        metavar="D",
        help="also print the number of samples that detect a difference of D (0.02 is two points); works with one run",
    )
    parser.add_argument("--shared", action="store_true", help="compare only the samples that the runs share")
    parser.add_argument("--by-id", action="store_true", help="pair samples by id, even if their prompts differ")
    parser.add_argument("--group-by", action="append", default=[], metavar="KEY", help="also compare by a metadata key")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    add_store_flag(parser)


def call(args: argparse.Namespace) -> int:
    from proctor.analysis.comparison import compare

    comparison = compare(
        *args.runs,
        store=getattr(args, "store", None),
        shared=args.shared,
        by_id=args.by_id,
        detect=args.detect,
        group_by=args.group_by,
    )
    if args.json:
        print_json(comparison.to_dict(flips=args.flips))
        return 0
    print(comparison)
    if args.flips:
        print(f"\n{comparison.flips()}")
    return 0
