"""Sweeps: one run of a task for each value of a setting."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from proctor.analysis.curve import Curve
from proctor.core import registry
from proctor.core.config import RunConfig, build_config
from proctor.core.errors import SettingError, UsageError
from proctor.core.evaluation import create_budget, evaluate
from proctor.core.runner import Observer
from proctor.core.task import Task, create_task


class Sweep(Struct, frozen=True):
    setting: str
    values: list[Any]


def sweep(
    task: str | type[Task],
    model: str,
    setting: str,
    values: Sequence[Any],
    *,
    observer: Observer | None = None,
    **options: Any,
) -> Curve:
    """Runs a task at each value and returns the curve, as `proctor run TASK … --sweep SETTING=VALUES` does."""
    name, task_class = registry.resolve_task(task)
    plan = read_sweep({setting: list(values)})
    runs, _ = plan_runs(plan, {name: task_class}, {name: {"model": model, **options}})
    budget = create_budget(runs[0])
    reports = []
    for config in runs:
        if not budget.exhausted:
            reports.append(
                evaluate(**msgspec.structs.asdict(config) | {"task": task}, observer=observer, budget=budget)
            )
    return Curve(setting, reports)


def read_sweep(table: Any) -> Sweep:
    """Reads the sweep of a configuration file: {"shapes": [3, 5, 7]}."""
    if not (isinstance(table, dict) and len(table) == 1 and all(v and isinstance(v, list) for v in table.values())):
        raise UsageError(f"sweep: expected one setting with its values, as in shapes = [3, 5, 7], got {table!r}.")
    ((setting, values),) = table.items()
    for i, value in enumerate(values):
        if value in values[:i]:
            raise UsageError(f"sweep: the value {value!r} of {setting} is given twice.")
    return Sweep(setting, values)


def plan_runs(
    sweep: Sweep,
    tasks: Mapping[str, type[Task]],
    options_of: Mapping[str, Mapping[str, Any]],
    lenient: Collection[str] = (),
) -> tuple[list[RunConfig], list[str]]:
    """The runs of a sweep, and the refusals of values that a lenient task does not accept."""
    runs: list[RunConfig] = []
    accepted: set[int] = set()
    refusals: list[tuple[int, SettingError]] = []
    for name, task_class in tasks.items():
        config = build_config({**options_of[name], "task": name})
        if sweep.setting in config.settings:
            raise UsageError(f"The setting {sweep.setting} is both swept and fixed: leave out one of the two.")
        for position, value in enumerate(sweep.values):
            settings = config.settings | {sweep.setting: value}
            try:
                create_task(task_class, name, settings, config.modality, config.data)
            except SettingError as error:
                if name not in lenient or error.setting not in (sweep.setting, "modality", ""):
                    raise
                refusals.append((position, error))
            else:
                accepted.add(position)
                runs.append(msgspec.structs.replace(config, settings=settings))
    for position, refusal in refusals:
        if position not in accepted:
            raise refusal  # no task accepts the value
    return runs, list(dict.fromkeys(str(refusal) for _, refusal in refusals))
