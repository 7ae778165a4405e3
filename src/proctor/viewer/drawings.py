"""Drawings of samples, made by their tasks."""

from __future__ import annotations

from proctor.core import registry
from proctor.core.config import FIELDS, RunConfig, build_config
from proctor.core.errors import ProctorError
from proctor.core.loading import is_task_file
from proctor.core.task import Task, create_task
from proctor.core.types import Run, Sample


class Drawings:
    """Draws samples; caches the task of the last run."""

    def __init__(self) -> None:
        self._run = ""
        self._task: tuple[Task, RunConfig] | None = None

    def draw(self, run: Run, sample: Sample) -> str | None:
        """The SVG, if the task can draw and still has the version of the run."""
        if run.id != self._run:
            self._run, self._task = run.id, _task_of(run)
        if self._task is None:
            return None
        task, config = self._task
        try:
            return task.draw_sample(sample, config)
        except ProctorError:
            return None


def _task_of(run: Run) -> tuple[Task, RunConfig] | None:
    # The viewer must not run task files.
    if is_task_file(run.task):
        return None
    try:
        cls = registry.load_task_class(run.task)
        if cls.draw_sample is Task.draw_sample or cls.version != run.version:
            return None
        config = build_config({key: value for key, value in run.config.items() if key in FIELDS})
        return create_task(cls, run.task, config.settings, config.modality, config.data), config
    except ProctorError:
        return None
