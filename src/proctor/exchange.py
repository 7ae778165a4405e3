"""Files that other code harnesses read and write: generations, references, metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proctor import catalog
from proctor.config import build_config
from proctor.evaluation import run_to_end
from proctor.models.generations import Note, write_generations, write_json
from proctor.report import Report
from proctor.task import create_task


def short_name(task: str) -> str:
    """The task's name without its family or folder: what the files of its runs are called after."""
    return Path(task.partition(":")[0]).stem if catalog.is_file(task) else task.rpartition("/")[2]


def path_for(template: str, task: str) -> Path:
    """`generations.json` is `generations_humaneval.json` for humaneval: each task has a file of its own."""
    path = Path(template)
    return path.with_name(f"{path.stem}_{short_name(task)}.json")


def save_generations(report: Report, path: Path) -> None:
    """What was judged, or would be: a list of texts for each problem; an empty one where there was no answer."""
    config = build_config(report.run.config)
    task = create_task(catalog.task_class(config.task), config.task, config.settings, config.modality, config.data)
    run_to_end(task.open(config))
    found: dict[int, list[str]] = {}
    for record in report.records():
        texts = found.setdefault(record.sample.index, [])
        texts += [task.generation(record.sample, output) for output in record.outputs]
    note = Note(config.task, config.model, config.limit_start, report.run.config)
    write_generations(path, _in_order(found, config.limit_start), note)


def save_references(report: Report, path: Path) -> None:
    found = {r.sample.index: r.sample.metadata.get("reference", r.sample.target) for r in report.records()}
    write_json(path, _in_order(found, report.run.config["limit_start"]))


def save_metrics(reports: Sequence[Report], path: Path) -> None:
    """The figures of all tasks, and the configuration that they share."""
    content: dict[str, Any] = {
        short_name(report.run.task): {name: metric.value for name, metric in report.metrics.items()}
        for report in reports
    }
    shared = {key: value for key, value in reports[0].run.config.items() if key != "task"} if reports else {}
    tasks = ",".join(short_name(report.run.task) for report in reports)
    write_json(path, {**content, "config": {**shared, "tasks": tasks}}, readable=True)


def _in_order(found: dict[int, Any], first: int) -> list[Any]:
    """Without a gap where a problem failed, so that the place in the list still says which one it is."""
    return [found.get(index, []) for index in range(first, max(found, default=first - 1) + 1)]
