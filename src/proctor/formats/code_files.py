"""Files that other code harnesses read and write: generations, references, metrics."""

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
    """What the files and figures of runs are called: after the task, as shortly as it can be told from the others."""

    def __init__(self, tasks: Collection[str], swept: str = "") -> None:
        self._uses = Counter(map(_short_name, set(tasks)))
        self._swept = swept

    def name(self, task: str, settings: Mapping[str, Any]) -> str:
        short = _short_name(task)
        name = short if self._uses[short] < 2 else _long_name(task)
        if self._swept not in settings:
            return name
        value = msgspec.json.encode(settings[self._swept]).decode().strip('"')
        return f"{name}_{self._swept}={_NO_NAME.sub('-', value)}"


_NO_NAME = re.compile(r"[^\w.,+-]+")


def _short_name(task: str) -> str:
    """Without its family or folder; the variants of one file never share a name, whether they run together or not."""
    if not is_task_file(task):
        return task.rpartition("/")[2]
    return _NO_NAME.sub("-", registry.task_variant(task)) or _stem(task)


def _long_name(task: str) -> str:
    if not is_task_file(task):
        return task.replace("/", "_")
    return f"{_stem(task)}_{_NO_NAME.sub('-', task.rpartition(':')[2])}" if ":" in task else _stem(task)


def _stem(task: str) -> str:
    return Path(task.partition(":")[0]).stem


def path_for(template: str, name: str) -> Path:
    """`generations.json` is `generations_humaneval.json` for humaneval: each task has a file of its own."""
    path = Path(template)
    return path.with_name(f"{path.stem}_{name}.json")


def save_generations(report: Report, path: Path) -> None:
    """What was judged, or would be: a list of texts for each problem; an empty one where there was no answer."""
    config = build_config(report.run.config)
    task = create_task(
        registry.load_task_class(config.task), config.task, config.settings, config.modality, config.data
    )
    # Nothing is judged here, so that there is no sandbox.
    run_async(task.open(msgspec.structs.replace(config, generation_only=True)))
    found: dict[int, list[str]] = {}
    try:
        for record in report.records():
            texts = found.setdefault(record.sample.index, [])
            with suppress(Exception):  # what the task could not judge, it may not be able to read now
                texts += task.generations(record)
    finally:
        run_async(task.close())
    write_generations(
        path,
        _in_order(found, config.limit_start),
        task=config.task,
        model=config.candidate,
        limit_start=config.limit_start,
        config=report.run.config,
    )


def save_references(report: Report, path: Path) -> None:
    found = {r.sample.index: r.sample.metadata.get("reference", r.sample.target) for r in report.records()}
    write_json(path, _in_order(found, report.run.config["limit_start"]))


def save_metrics(reports: Mapping[str, Report], path: Path) -> None:
    """The figures of all tasks, by their names, and the configuration that they share."""
    content: dict[str, Any] = {
        name: _values(report.metrics) | _values_of_groups(report) for name, report in reports.items()
    }
    first = next(iter(reports.values()), None)
    shared = {key: value for key, value in first.run.config.items() if key != "task"} if first else {}
    config = {**shared, **_as_called_there(shared), "tasks": ",".join(reports)}
    write_json(path, {**content, "config": config}, readable=True)


def _values(metrics: Mapping[str, Metric]) -> dict[str, Any]:
    return {name: metric.value for name, metric in metrics.items()}


def _values_of_groups(report: Report) -> dict[str, Any]:
    """The same by what the report is broken down by: "by language": {"py": {…}}."""
    return {
        f"by {key}": {value: _values(metrics) for value, metrics in groups.items()}
        for key, groups in report.run.groups.items()
    }


def _as_called_there(config: Mapping[str, Any]) -> dict[str, Any]:
    """Options that have another name in the BigCode harness, for tools that look for it."""
    return {
        "n_samples": config.get("samples", 1),
        "do_sample": config.get("temperature", 0.0) > 0,
        "max_length_generation": config.get("max_length"),
    }


def _in_order(found: dict[int, Any], first: int) -> list[Any]:
    """Without a gap where a problem failed, so that the place in the list still says which one it is."""
    return [found.get(index, []) for index in range(first, max(found, default=first - 1) + 1)]
