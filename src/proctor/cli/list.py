"""List tasks, models or runs; all three without an argument.

A family that comes with an extra is one line; `proctor list tasks 'reasoning-gym/*'` shows its tasks."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from proctor.cli.options import add_store_flag
from proctor.cli.output import print_json
from proctor.core.errors import StoreError, UsageError
from proctor.core.types import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", choices=("tasks", "models", "runs"), help="what to list")
    parser.add_argument("pattern", nargs="?", metavar="PATTERN", help="only the tasks of this name or wildcard")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    add_store_flag(parser)


def call(args: argparse.Namespace) -> int:
    store = getattr(args, "store", None)
    if args.pattern and args.what != "tasks":
        raise UsageError(f"proctor list {args.what} takes no pattern; proctor list tasks does.")
    listings: dict[str, Callable[[], list[dict[str, str]]]] = {
        "tasks": lambda: _tasks(args.pattern),
        "models": _models,
        "runs": lambda: _runs(store, required=args.what == "runs"),
    }
    chosen = {name: listing() for name, listing in listings.items() if args.what in (None, name)}
    if args.json:
        print_json(chosen)
        return 0
    for name, rows in chosen.items():
        print(f"{name}:" if rows else f"{name}: none yet")
        for row in rows:
            width = max(len(r["name"]) for r in rows)
            print(f"  {row['name']:<{width}}  {row['about']}")
    return 0


def _tasks(pattern: str | None) -> list[dict[str, str]]:
    from proctor.core import registry

    rows = []
    for name in registry.expand(pattern) if pattern else registry.task_names():
        try:
            about = registry.task_class(name).summary
        except UsageError as error:  # one broken package must not hide the rest
            about = str(error)
        rows.append({"name": name, "about": about})
    guests = [] if pattern else registry.OPTIONAL_FAMILIES
    return rows + [{"name": f"{family}/*", "about": f"the exams of {family} (extra: {family})"} for family in guests]


def _models() -> list[dict[str, str]]:
    from proctor.models import NAMES

    return [{"name": name, "about": about} for name, about in NAMES.items()]


def _runs(store: str | None, required: bool) -> list[dict[str, str]]:
    from proctor.core.options import non_default_options, written
    from proctor.store import open_store

    try:
        opened = open_store(store, mode="read")
    except StoreError:
        if required:
            raise
        return []
    try:
        return [
            {
                "name": run.id,
                "about": _about(run, opened.status(run), opened.progress(run), written(non_default_options(run))),
            }
            for run in opened.runs()
        ]
    finally:
        opened.close()


def _about(run: Run, status: str, progress: tuple[int, int], particulars: str) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.created))
    metrics = ", ".join(
        f"{name} {m.value:.3f} [{m.low:.3f}, {m.high:.3f}]"
        for name, m in run.metrics.items()
        if m.value is not None and m.low is not None and m.high is not None
    )
    n, failed = progress
    errors = f", {failed} errors" if failed else ""
    what = f"{run.task} ({particulars})" if particulars else run.task
    return f"{when}  {status:<11}  {what} · {run.candidate}  {n} scored{errors}  {metrics}"
