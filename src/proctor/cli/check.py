"""Verify a task without a model.

Gold answers must get the full score, with either --api, and blank answers none. The same seed must
give the same samples in any process, slice and order. An independent solver, if the task has one,
must agree, and images must show what the text says.

With --probes: guessers that see only a part of each sample must not beat chance by more than a point."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import msgspec

from proctor.analysis.check import DEFAULT_SAMPLES, check_task, probe_task
from proctor.cli.options import add_task_flags, parse_settings
from proctor.cli.output import print_json
from proctor.core import registry
from proctor.core.types import Finding, Probe

PROBE_SAMPLES = 100_000  # the default of -n with --probes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", nargs="+", metavar="TASK", help="task names, wildcards or file.py:Class")
    parser.add_argument(
        "-n",
        type=int,
        help=f"samples to look at (default: {DEFAULT_SAMPLES}, or a whole data set; {PROBE_SAMPLES:,} with --probes)",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--probes", action="store_true", help="search for shortcuts with guessers that see too little")
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
            lines = [f"  {'ok  ' if result.holds else 'FAIL'}  {_describe(result)}" for result in results[name]]
            print(f"{name}:", *lines, *_best_guesser(results[name]), sep="\n", flush=True)
    if args.json:
        print_json({name: list(map(_to_json, found)) for name, found in results.items()})
    return 0 if all(result.holds for found in results.values() for result in found) else 1


def _to_json(result: Finding | Probe) -> dict[str, Any]:
    return {"holds": result.holds, **msgspec.to_builtins(result)}


def _describe(result: Finding | Probe) -> str:
    if isinstance(result, Finding):
        claim = f"{result.claim}: {result.seen}" if result.seen else result.claim
        return claim if result.holds else f"{claim}\n        {result.fault}"
    if result.accuracy is None:
        return f"{result.name:<17} – ({result.note})"
    value, low, high = result.accuracy.value, result.accuracy.low, result.accuracy.high
    text = f"{result.name:<17} {value:.4f}   95 % interval {low:.4f} – {high:.4f}   chance {result.chance:.4f}"
    if result.stated is None:
        return f"{text}   {result.note}"
    known = "partial solving" if result.stated == 1 else f"partial solving, stated as {result.stated:.3f}"
    return f"{text}   {result.note} ({known})"


def _best_guesser(results: Sequence[Finding | Probe]) -> list[str]:
    """The probe with the highest accuracy."""
    probes = (result for result in results if isinstance(result, Probe))
    scores = [(probe.accuracy.value, probe) for probe in probes if probe.accuracy]
    if not scores:
        return []
    value, best = max(scores, key=lambda score: score[0] or 0)
    return [f"  best guesser: {best.name} ({best.note}) {value:.4f}, chance {best.chance:.4f}"]
