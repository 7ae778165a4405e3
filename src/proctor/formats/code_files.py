"""Files of other code harnesses: generations, references, metrics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from proctor.analysis.report import Report
from proctor.core import registry
from proctor.core.config import build_config
from proctor.core.evaluation import run_async
from proctor.core.loading import is_task_file
from proctor.core.task import create_task
from proctor.core.types import Metric
from proctor.models.providers.generations import write_generations, write_json


class RunNames:
    """Unique names for the files and metrics of runs: the shortest unique name of each task."""

    def __init__(self, tasks: Collection[str], swept: str = "") -> None:
        self._uses = Counter(map(_short_name, set(tasks)))
        self._swept = swept

    def name(self, task: str, settings: Mapping[str, Any]) -> str:
        short = _short_name(task)
        name = short if self._uses[short] < 2 else _long_name(task)
        if self._swept not in settings:
            return name
        value = msgspec.json.encode(settings[self._swept]).decode().strip('"')
        return f"{name}_{self._swept}={_NOT_IN_NAMES.sub('-', value)}"


_NOT_IN_NAMES = re.compile(r"[^\w.,+-]+")


def _short_name(task: str) -> str:
    """The name without family or folder; variants of one file have different names."""
    if not is_task_file(task):
        return task.rpartition("/")[2]
    return _NOT_IN_NAMES.sub("-", registry.task_variant(task)) or _stem(task)


def _long_name(task: str) -> str:
    if not is_task_file(task):
        return task.replace("/", "_")
    return f"{_stem(task)}_{_NOT_IN_NAMES.sub('-', task.rpartition(':')[2])}" if ":" in task else _stem(task)


def _stem(task: str) -> str:
    return Path(task.partition(":")[0]).stem


def task_path(template: str, name: str) -> Path:
    """The file of one task: `generations.json` becomes `generations_humaneval.json`."""
    path = Path(template)
    return path.with_name(f"{path.stem}_{name}.json")


def save_generations(report: Report, path: Path) -> None:
    """Writes what the task judges: a list of texts for each problem, empty if there was no output."""
    config = build_config(report.run.config)
    task = create_task(
        registry.load_task_class(config.task), config.task, config.settings, config.modality, config.data
    )
    # Nothing is judged here, so that no sandbox is needed.
    run_async(task.open(msgspec.structs.replace(config, generation_only=True)))
    by_index: dict[int, list[str]] = {}
    try:
        for record in report.records():
            texts = by_index.setdefault(record.sample.index, [])
            with suppress(Exception):  # the task may fail on outputs that it could not judge
                texts += task.generations(record)
    finally:
        run_async(task.close())
    write_generations(
        path,
        _fill_gaps(by_index, config.limit_start),
        task=config.task,
        model=config.candidate,
        limit_start=config.limit_start,
        config=report.run.config,
    )


def save_references(report: Report, path: Path) -> None:
    by_index = {r.sample.index: r.sample.metadata.get("reference", r.sample.target) for r in report.records()}
    write_json(path, _fill_gaps(by_index, report.run.config["limit_start"]))


def save_metrics(reports: Mapping[str, Report], path: Path) -> None:
    """Writes the metrics of all tasks, by name, and their shared configuration."""
    content: dict[str, Any] = {
        name: _values(report.metrics) | _values_of_groups(report) for name, report in reports.items()
    }
    first = next(iter(reports.values()), None)
    shared = {key: value for key, value in first.run.config.items() if key != "task"} if first else {}
    config = {**shared, **_bigcode_options(shared), "tasks": ",".join(reports)}
    write_json(path, {**content, "config": config}, readable=True)


def _values(metrics: Mapping[str, Metric]) -> dict[str, Any]:
    return {name: metric.value for name, metric in metrics.items()}


def _values_of_groups(report: Report) -> dict[str, Any]:
    """The metrics of each group: "by language": {"py": {…}}."""
    return {
        f"by {key}": {value: _values(metrics) for value, metrics in groups.items()}
        for key, groups in report.run.groups.items()
    }


def _bigcode_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Options under their names in the BigCode harness."""
    return {
        "n_samples": config.get("samples", 1),
        "do_sample": config.get("temperature", 0.0) > 0,
        "max_length_generation": config.get("max_length"),
    }


def _fill_gaps(by_index: dict[int, Any], first: int) -> list[Any]:
    """A list with an empty entry for each missing problem, so that positions are indices."""
    return [by_index.get(index, []) for index in range(first, max(by_index, default=first - 1) + 1)]
