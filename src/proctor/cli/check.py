"""Prove a task right without a model.

Right answers must get full marks and blank ones none; the same seed must give the same samples in
any process, slice and order; an independent solver, where the task has one, must agree."""

from __future__ import annotations

import argparse

from proctor import catalog
from proctor.check import check_task
from proctor.cli.options import add_settings_flag, parse_settings
from proctor.cli.output import print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", nargs="+", metavar="TASK", help="task names, wildcards or file.py:Class")
    parser.add_argument("-n", type=int, default=100, help="samples to look at (default: 100)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print as JSON")
    add_settings_flag(parser)


def call(args: argparse.Namespace) -> int:
    settings = parse_settings(getattr(args, "settings", []))
    names = [name for pattern in args.tasks for name in catalog.expand(pattern)]
    results = {name: check_task(name, settings, args.n, args.seed) for name in names}
    if args.json:
        print_json(results)
    else:
        for name, findings in results.items():
            print(f"{name}:")
            for finding in findings:
                print(f"  {'ok  ' if finding.holds else 'FAIL'}  {finding.claim}")
                if not finding.holds:
                    print(f"        {finding.fault}")
    return 0 if all(finding.holds for findings in results.values() for finding in findings) else 1
