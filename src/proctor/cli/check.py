"""Prove a task right without a model.

Right answers must get full marks, with either --api, and blank ones none; the same seed must give the
same samples in any process, slice and order; an independent solver, where the task has one, must agree;
and pictures, read back from their pixels, must show the same.

With --probes: guessers that see only a part of each sample must not beat chance by more than a point."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import msgspec

from proctor.analysis.check import CHECKED, check_task, probe_task
from proctor.cli.options import add_task_flags, parse_settings
from proctor.cli.output import print_json
from proctor.core import registry
from proctor.core.types import Finding, Probe

PROBE_SAMPLES = 100_000  # samples looked at, unless it is said


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", nargs="+", metavar="TASK", help="task names, wildcards or file.py:Class")
    parser.add_argument(
        "-n",
        type=int,
        help=f"samples to look at (default: {CHECKED}, or a whole data set; {PROBE_SAMPLES:,} with --probes)",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--probes", action="store_true", help="look for shortcuts, by guessers that see too little")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    add_task_flags(parser)


def call(args: argparse.Namespace) -> int:
    settings = parse_settings(getattr(args, "settings", []))
    names = [name for pattern in args.tasks for name in registry.expand(pattern)]
    data = getattr(args, "data", None)
    results: dict[str, Sequence[Finding | Probe]] = {}
    for name in names:
        if args.probes:
            results[name] = probe_task(name, settings, PROBE_SAMPLES if args.n is None else args.n, args.seed, data)
        else:
            results[name] = check_task(name, settings, args.n, args.seed, data)
        if not args.json:
            lines = [f"  {'ok  ' if found.holds else 'FAIL'}  {_describe(found)}" for found in results[name]]
            print(f"{name}:", *lines, *_best_guesser(results[name]), sep="\n", flush=True)
    if args.json:
        print_json({name: [_verdict(found) for found in result] for name, result in results.items()})
    return 0 if all(found.holds for result in results.values() for found in result) else 1


def _verdict(found: Finding | Probe) -> dict[str, Any]:
    return {"holds": found.holds, **msgspec.to_builtins(found)}


def _describe(found: Finding | Probe) -> str:
    if isinstance(found, Finding):
        claim = f"{found.claim}: {found.seen}" if found.seen else found.claim
        return claim if found.holds else f"{claim}\n        {found.fault}"
    if found.accuracy is None:
        return f"{found.name:<17} – ({found.note})"
    value, low, high = found.accuracy.value, found.accuracy.low, found.accuracy.high
    said = f"{found.name:<17} {value:.4f}   95 % interval {low:.4f} – {high:.4f}   chance {found.chance:.4f}"
    if found.stated is None:
        return f"{said}   {found.note}"
    known = "partial solving" if found.stated == 1 else f"partial solving, stated as {found.stated:.3f}"
    return f"{said}   {found.note} ({known})"


def _best_guesser(results: Sequence[Finding | Probe]) -> list[str]:
    """Of all probes, the one that is most often right."""
    scores = [(found.accuracy.value, found) for found in results if isinstance(found, Probe) and found.accuracy]
    if not scores:
        return []
    value, best = max(scores, key=lambda score: score[0] or 0)
    return [f"  best guesser: {best.name} ({best.note}) {value:.4f}, chance {best.chance:.4f}"]
