"""List tasks, models or runs; without an argument all three.

A family of an extra is one line; `proctor list tasks 'reasoning-gym/*'` lists its tasks."""

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
    parser.add_argument("pattern", nargs="?", metavar="PATTERN", help="only tasks that match this name or wildcard")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    add_store_flag(parser)


def call(args: argparse.Namespace) -> int:
    store = getattr(args, "store", None)
    if args.pattern and args.what != "tasks":
        raise UsageError(f"proctor list {args.what} takes no pattern; only proctor list tasks does.")
    listings: dict[str, Callable[[], list[dict[str, str]]]] = {
        "tasks": lambda: _list_tasks(args.pattern),
        "models": _list_models,
        "runs": lambda: _list_runs(store, required=args.what == "runs"),
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


def _list_tasks(pattern: str | None) -> list[dict[str, str]]:
    from proctor.core import registry

    rows = []
    for name in registry.expand(pattern) if pattern else registry.task_names():
        try:
            about = registry.load_task_class(name).summary
        except UsageError as error:  # a broken package must not hide the others
            about = str(error)
        rows.append({"name": name, "about": about})
    families = [] if pattern else registry.OPTIONAL_FAMILIES
    return rows + [{"name": f"{family}/*", "about": f"tasks of {family} (extra: {family})"} for family in families]


def _list_models() -> list[dict[str, str]]:
    from proctor.models import NAMES

    return [{"name": name, "about": about} for name, about in NAMES.items()]


def _list_runs(url: str | None, required: bool) -> list[dict[str, str]]:
    from proctor.store import open_store

    try:
        store = open_store(url, mode="read")
    except StoreError:
        if required:
            raise
        return []
    try:
        return [
            {"name": run.id, "about": _describe_run(run, store.status(run), store.progress(run))}
            for run in store.runs()
        ]
    finally:
        store.close()


def _describe_run(run: Run, status: str, progress: tuple[int, int]) -> str:
    from proctor.core.options import format_options, non_default_options

    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.created))
    metrics = ", ".join(
        f"{name} {m.value:.3f} [{m.low:.3f}, {m.high:.3f}]"
        for name, m in run.metrics.items()
        if m.value is not None and m.low is not None and m.high is not None
    )
    n, failed = progress
    errors = f", {failed} errors" if failed else ""
    options = format_options(non_default_options(run))
    task = f"{run.task} ({options})" if options else run.task
    return f"{when}  {status:<11}  {task} · {run.candidate}  {n} scored{errors}  {metrics}"
