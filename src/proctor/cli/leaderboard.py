"""Rank the candidates of a store by their best runs, in one ranking per task.

A ranking compares runs of the same task, version, settings and samples. A candidate gets a range of
ranks: a rank is ruled out only if the difference to another candidate is significant."""

from __future__ import annotations

import argparse
import time
from fnmatch import fnmatchcase

from proctor.analysis.leaderboard import RankedCandidate, Ranking, rank_runs
from proctor.cli.options import add_store_flag
from proctor.cli.output import print_json
from proctor.core.errors import UsageError
from proctor.core.options import format_options
from proctor.store import open_store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", nargs="?", metavar="TASK", help="only this task, or wildcard (default: all)")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    add_store_flag(parser)


def call(args: argparse.Namespace) -> int:
    store = open_store(getattr(args, "store", None), mode="read")
    try:
        boards = [b for b in rank_runs(store.runs()) if args.task is None or _matches(args.task, b.task)]
    finally:
        store.close()
    if args.json:
        print_json({"boards": boards})
        return 0
    if not boards:
        task = f" of {args.task}" if args.task else ""
        raise UsageError(f"No complete run{task} in {store.location}. `proctor list runs` shows all runs.")
    print("\n\n".join(_format(board) for board in boards))
    return 0


def _matches(pattern: str, task: str) -> bool:
    return fnmatchcase(task, pattern) or fnmatchcase(task.rpartition("/")[2], pattern)


def _format(board: Ranking) -> str:
    settings = f" · {format_options(board.non_default_options)}" if board.non_default_options else ""
    samples = f"{board.samples:,} sample{'' if board.samples == 1 else 's'}"
    rows = [["rank", "ranks", "candidate", board.metric, "95 % interval", "n", "date", "run"]]
    rows += [_row(entry) for entry in board.entries]
    columns = [[str(cell) for cell in column] for column in zip(*rows, strict=True)]
    right = {0, 1, 3, 5}
    aligned = [
        [cell.rjust(w) if i in right else cell.ljust(w) for cell in column]
        for i, column in enumerate(columns)
        for w in [max(map(len, column))]
    ]
    lines = ["  " + "  ".join(cells).rstrip() for cells in zip(*aligned, strict=True)]
    return "\n".join([f"{board.task} (version {board.version}){settings} · {samples}", *lines])


def _row(entry: RankedCandidate) -> list[str]:
    metric = entry.metric
    interval = "" if metric.low is None or metric.high is None else f"{metric.low:.3f} – {metric.high:.3f}"
    ranks = (entry.best_rank, entry.worst_rank)
    options = f" ({format_options(entry.options)})" if entry.options else ""
    best = f" (best of {entry.runs})" if entry.runs > 1 else ""
    errors = f" (+{entry.errors} failed)" if entry.errors else ""
    return [
        str(entry.rank),
        str(ranks[0]) if ranks[0] == ranks[1] else f"{ranks[0]}–{ranks[1]}",
        f"{entry.candidate}{options}",
        f"{metric.value:.3f}",
        interval,
        f"{metric.n:,}{errors}",
        time.strftime("%Y-%m-%d", time.localtime(entry.created)),
        f"{entry.run}{best}",
    ]
