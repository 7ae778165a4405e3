"""Run tasks and report the scores.

TASK is a name from `proctor list tasks`, a wildcard such as 'shapes/*', or path/to/file.py:Class.
Records are stored as they finish: `proctor resume` continues a stopped or killed run. With --sweep
each task runs at each of the values, and a curve is drawn at the end."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext, redirect_stdout
from typing import Any

import msgspec

from proctor.analysis.curve import Curve, trace_curves
from proctor.analysis.report import Report, truncation_notice
from proctor.analysis.sweep import plan_runs, read_sweep
from proctor.cli.options import (
    add_config_flags,
    add_output_flags,
    add_sweep_flag,
    add_window_flags,
    given_options,
)
from proctor.cli.output import print_json, print_message
from proctor.cli.progress import open_display
from proctor.core import registry
from proctor.core.budget import Budget
from proctor.core.config import RunConfig, build_config
from proctor.core.errors import MissingDataError, ProctorError, SettingError, UsageError
from proctor.core.evaluation import create_budget, evaluate
from proctor.core.task import create_task
from proctor.integrations.bigcode import flags as bigcode
from proctor.store import store_url

BUDGET_EXIT_CODE = 3  # of runs that their budget stopped


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="tasks to run")
    add_sweep_flag(parser)
    add_config_flags(parser)
    bigcode.add_arguments(parser)
    add_window_flags(parser)
    add_output_flags(parser)


def call(args: argparse.Namespace) -> int:
    # With --json, stdout holds only the JSON, even if the code of a task prints.
    with redirect_stdout(sys.stderr) if args.json else nullcontext():
        configurations, swept = _configurations(args)
        names = bigcode.name_files(args, configurations, swept)
        reports, code = _run_all(configurations, swept, args)
        curves = trace_curves(swept, reports) if swept else None
        bigcode.write_files(args, reports, names)
    if args.json:
        print_reports(reports, curves)
    else:
        for curve in curves or ():
            print(f"\n{curve}")
    return code


def _configurations(args: argparse.Namespace) -> tuple[list[RunConfig], str]:
    """One per task and swept value, and the name of the swept setting. All are checked before
    the first run starts.
    """
    options = given_options(args)
    in_file = options.pop("tasks", []) or [options.get("task", "")]
    options.pop("task", None)
    bigcode.add_options(args, options)
    patterns = [*args.tasks, *bigcode.named_tasks(args)] or [pattern for pattern in in_file if pattern]
    if not patterns:
        raise UsageError("No task given. `proctor list tasks` lists them.")
    if not options.get("model") and not options.get("agent"):
        raise UsageError(
            "No model given, such as --model smollm2; `proctor list models` lists them. A task for agents "
            "takes --agent module:Class."
        )
    names = [name for pattern in patterns for name in registry.expand(pattern)]
    if len(names) > 1 and (options.get("generations") or options.get("partial_generations")):
        raise UsageError("A generations file belongs to one task: name one.")
    named = {name for name in patterns if not registry.is_wildcard(name)}
    options_of = bigcode.options_of(args, options, names)
    if "sweep" in options:
        return _sweep(names, options_of, named)
    return [config for name in names if (config := _configuration(name, options_of[name], name in named))], ""


def _configuration(name: str, options: dict[str, Any], named: bool) -> RunConfig | None:
    """None if only a wildcard matched the task and it has no images for --modality."""
    config = build_config(options | {"task": name})
    try:
        create_task(registry.load_task_class(name), name, config.settings, config.modality, config.data)
    except SettingError as error:
        if named or error.setting != "modality":
            raise
        print(f"note: skipped: {error}", file=sys.stderr)
        return None
    return config


def _sweep(names: list[str], options_of: dict[str, dict[str, Any]], named: set[str]) -> tuple[list[RunConfig], str]:
    (table, *_) = [options.pop("sweep") for options in options_of.values()]
    sweep = read_sweep(table)
    tasks = {name: registry.load_task_class(name) for name in names}
    # A wildcard skips values that a task does not accept; for a named task they are errors.
    configurations, skipped = plan_runs(sweep, tasks, options_of, lenient=tasks.keys() - named)
    for why in skipped:
        print(f"note: skipped: {why}", file=sys.stderr)
    return configurations, sweep.setting


def _run_all(configurations: list[RunConfig], swept: str, args: argparse.Namespace) -> tuple[list[Report], int]:
    reports: list[Report] = []
    code = 0
    budget = create_budget(configurations[0]) if configurations else Budget()
    for number, config in enumerate(configurations, 1):
        if budget.exhausted:
            remaining = ", ".join(dict.fromkeys(c.task for c in configurations[number - 1 :]))
            print_message(f"not started ({budget.reason}): {remaining}.")
            return reports, max(code, BUDGET_EXIT_CODE)
        if swept and not args.quiet:
            where = f"{config.task} at {swept}={config.settings[swept]}"
            print(f"{number} of {len(configurations)}: {where}", file=sys.stderr)
        try:
            with open_display(args.quiet) as display:
                reports.append(evaluate(**msgspec.structs.asdict(config), observer=display, budget=budget))
        except ProctorError as error:
            print_message(str(error))
            code = max(code, error.exit_code)
            if error.run is not None:
                reports.append(Report(error.run, store_url(config.store)))
            if isinstance(error, UsageError) and not isinstance(error, MissingDataError):
                break  # the next run would fail, too
            continue
        code = max(code, exit_code(reports[-1]))
        if not args.quiet:
            _print_notes(reports[-1], config)
        print_report(reports[-1], args)
    return reports, code


def print_report(report: Report, args: argparse.Namespace) -> None:
    """Prints the report; with --json only a note about truncated outputs."""
    if not args.json:
        print(report)
    elif not args.quiet and (notice := truncation_notice(report.run)):
        print(f"note: {notice}", file=sys.stderr)


def exit_code(report: Report) -> int:
    return BUDGET_EXIT_CODE if report.run.status == "interrupted" else 0


def _print_notes(report: Report, config: RunConfig) -> None:
    """Notes about options that had no effect."""
    is_real_model = config.generations is None and config.model.partition("/")[0] not in ("", "scripted")
    if config.temperature == 0 and is_real_model:
        for name, number in (("epochs", config.epochs), ("samples", config.samples)):
            if number > 1:
                print(f"note: at temperature 0 the {name} mostly repeat each other.", file=sys.stderr)
    for k in config.k:
        if report.metrics and f"pass@{k}" not in report.metrics:
            enough = config.samples * config.epochs >= k
            why = "the task does not report it" if enough else f"it needs --n-samples {k}"
            print(f"note: no pass@{k}: {why}.", file=sys.stderr)
    for key in config.group_by:
        if key not in report.run.groups:
            record = next(report.records(), None)
            known = ", ".join(record.sample.metadata) if record is not None else ""
            print(f"note: no sample has metadata {key!r} to group by; metadata: {known or 'none'}.", file=sys.stderr)


def print_reports(reports: list[Report], curves: list[Curve] | None = None) -> None:
    printed = {"runs": [report.to_dict() for report in reports]}
    if curves is not None:
        printed["curves"] = [curve.to_dict() for curve in curves]
    print_json(printed)
