"""Run exams and report the scores.

TASK is a name from `proctor list tasks`, a wildcard such as 'shapes/*', or path/to/file.py:Class.
Every run is stored as it goes: a stopped or killed one goes on with `proctor resume`."""

from __future__ import annotations

import argparse
import sys

import msgspec

from proctor import catalog
from proctor.cli.options import add_config_flags, add_output_flags, given_options
from proctor.cli.progress import open_display
from proctor.config import build_config
from proctor.errors import ProctorError, UsageError
from proctor.evaluation import evaluate
from proctor.report import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="what to run")
    add_config_flags(parser)
    add_output_flags(parser)


def call(args: argparse.Namespace) -> int:
    options = given_options(args)
    in_file = options.pop("tasks", None) or [options.pop("task", None)]
    patterns = args.tasks or [pattern for pattern in in_file if pattern]
    if not patterns:
        raise UsageError("No task given. `proctor list tasks` shows what there is.")
    if not options.get("model"):
        raise UsageError("No model given: --model smollm2, for example. `proctor list models` shows the kinds.")
    options.pop("task", None)
    tasks = [name for pattern in patterns for name in catalog.expand(pattern)]
    for name in tasks:  # all are looked at before the first one starts
        build_config(options | {"task": name})
        catalog.task_class(name)
    if options.get("temperature", 0) in (0, "0") and int(options.get("epochs", 1)) > 1 and not args.quiet:
        print("note: at temperature 0 the epochs will mostly repeat each other.", file=sys.stderr)

    reports: list[Report] = []
    failure: ProctorError | None = None
    for name in tasks:
        try:
            with open_display(args.quiet) as display:
                report = evaluate(**options | {"task": name}, observer=display)
        except UsageError:
            raise
        except ProctorError as error:  # the other exams may still go well
            print(f"proctor: {name}: {error}", file=sys.stderr)
            failure = error
            continue
        reports.append(report)
        if not args.json:
            print(report)
    if args.json:
        print_json(reports)
    return failure.exit_code if failure else 0


def print_json(reports: list[Report]) -> None:
    body = msgspec.json.encode({"runs": [report.to_dict() for report in reports]})
    print(msgspec.json.format(body, indent=2).decode())
