"""The flags and files of the BigCode evaluation harness, so that its command lines work here."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proctor.errors import UsageError
from proctor.report import Report

_TRUE, _FALSE = ("true", "1", "yes"), ("false", "0", "no")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("as in the BigCode harness")
    group.add_argument("--tasks", dest="task_list", metavar="A,B", help="the same as naming them one by one")
    group.add_argument(
        "--do-sample",
        nargs="?",
        const="true",
        metavar="BOOL",
        help="False is --temperature 0; True, where they are not given, --temperature 0.2 --top-p 0.95",
    )
    group.add_argument("--prompt", metavar="NAME", help="the same as --set prompt=NAME, for tasks that have it")
    group.add_argument("--load-data-path", metavar="FILE", help="the same as --set load_data_path=FILE")
    group.add_argument("--check-references", action="store_true", help="judge the right answers instead of a model's")
    group.add_argument("--load-generations-path", metavar="FILE", help="judge these generations instead of asking")
    group.add_argument("--save-every-k-tasks", metavar="N", help="not needed: everything is stored as it comes")
    add_file_arguments(parser)


def add_file_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("files, named after each task: generations_humaneval.json")
    for what in ("generations", "references"):
        group.add_argument(f"--save-{what}", action="store_true", help=f"write {what}_TASK.json")
        group.add_argument(f"--save-{what}-path", metavar="FILE", help="write them to FILE, with the task in its name")
    group.add_argument("--metric-output-path", metavar="FILE", help="write the metrics of all tasks as JSON")


def named_tasks(args: argparse.Namespace) -> list[str]:
    return [name.strip() for name in (args.task_list or "").split(",") if name.strip()]


def add_options(args: argparse.Namespace, options: dict[str, Any]) -> None:
    """What these flags mean, as options of a run."""
    for key in ("prompt", "load_data_path"):
        if getattr(args, key) is not None:
            options.setdefault("settings", {})[key] = getattr(args, key)
    if args.do_sample is not None:
        if _read_bool(args.do_sample):
            options.setdefault("temperature", 0.2)
            options.setdefault("top_p", 0.95)
        else:
            options["temperature"] = 0.0
    if args.check_references:
        options["model"] = "scripted/oracle"
    if args.load_generations_path is not None:
        from proctor.models.generations import count_generations

        path = args.load_generations_path
        options["model"] = f"scripted/generations:{path}"
        options.setdefault("samples", count_generations(Path(path)))


def write_files(args: argparse.Namespace, reports: Sequence[Report]) -> None:
    from proctor import exchange

    written: list[Path] = []
    for what, save in (("generations", exchange.save_generations), ("references", exchange.save_references)):
        template = getattr(args, f"save_{what}_path")
        if template is None and not getattr(args, f"save_{what}"):
            continue
        for report in reports:
            written.append(exchange.path_for(template or f"{what}.json", report.run.task))
            save(report, written[-1])
    if args.metric_output_path is not None:
        written.append(Path(args.metric_output_path))
        exchange.save_metrics(reports, written[-1])
    for path in written:
        print(f"wrote {path}", file=sys.stderr)


def _read_bool(text: str) -> bool:
    if text.lower() not in (*_TRUE, *_FALSE):
        raise UsageError(f"--do-sample: expected True or False, got {text!r}.")
    return text.lower() in _TRUE
