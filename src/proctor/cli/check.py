"""Prove a task right without a model.

Right answers must get full marks and blank ones none; the same seed must give the same samples in
any process, slice and order; an independent solver, where the task has one, must agree; and pictures,
read back from their pixels, must show the same.

With --probes: guessers that see only a part of each sample must not beat chance by more than a point."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import msgspec

from proctor import catalog
from proctor.check import Finding, check_task, probe_task
from proctor.cli.options import add_task_flags, parse_settings
from proctor.cli.output import print_json
from proctor.types import Probe

CHECKED, PROBED = 100, 100_000  # samples looked at, unless it is said


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", nargs="+", metavar="TASK", help="task names, wildcards or file.py:Class")
    parser.add_argument("-n", type=int, help=f"samples to look at (default: {CHECKED}; {PROBED:,} with --probes)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--probes", action="store_true", help="look for shortcuts, by guessers that see too little")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    add_task_flags(parser)


def call(args: argparse.Namespace) -> int:
    settings = parse_settings(getattr(args, "settings", []))
    names = [name for pattern in args.tasks for name in catalog.expand(pattern)]
    look = probe_task if args.probes else check_task
    n = (PROBED if args.probes else CHECKED) if args.n is None else args.n
    results: dict[str, Sequence[Finding | Probe]] = {}
    for name in names:
        results[name] = look(name, settings, n, args.seed, getattr(args, "data", None))
        if not args.json:
            lines = [f"  {'ok  ' if found.holds else 'FAIL'}  {_say(found)}" for found in results[name]]
            print(f"{name}:", *lines, sep="\n", flush=True)
    if args.json:
        print_json({name: [_verdict(found) for found in result] for name, result in results.items()})
    return 0 if all(found.holds for result in results.values() for found in result) else 1


def _verdict(found: Finding | Probe) -> dict[str, Any]:
    return {"holds": found.holds, **msgspec.to_builtins(found)}


def _say(found: Finding | Probe) -> str:
    if isinstance(found, Finding):
        return found.claim if found.holds else f"{found.claim}\n        {found.fault}"
    if found.accuracy is None:
        return f"{found.name:<17} – ({found.note})"
    value, low, high = found.accuracy.value, found.accuracy.low, found.accuracy.high
    return f"{found.name:<17} {value:.4f}   95 % interval {low:.4f} – {high:.4f}   chance {found.chance:.4f}"
