"""Metrics as a task's own `process_results` counts them, over all problems at once, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.code.execution import Refused, Remembered, Trial, running_with
from proctor.metrics.jackknife import grouped_jackknife
from proctor.metrics.statistics import score_mean
from proctor.types import Metric, Record

if TYPE_CHECKING:
    from proctor.code.task import Task

_EQUAL = 1e-9  # of a mean of means and the mean of all


class Results:
    """Collects generations; programs that were run are not run again."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._generations: dict[int, list[str]] = {}
        self._references: dict[int, Any] = {}
        self._alone: dict[int, dict[str, float]] = {}
        self._trials: list[Trial] = []

    def add(self, record: Record) -> None:
        if record.score is None:
            return
        answer, index = record.score.answer, record.sample.index
        self._trials += msgspec.convert(answer["trials"], list[Trial])
        if index in self._generations:  # another epoch: together they are worth something else than each alone
            self._generations[index] += answer["generations"]
            self._alone[index] = {}
        else:
            self._generations[index] = list(answer["generations"])
            self._references[index] = record.sample.metadata["reference"]
            self._alone[index] = answer["metrics"]

    def metrics(self) -> dict[str, Metric]:
        indices = list(self._generations)
        if not indices:
            return {}
        return {name: self._with_interval(name, value, indices) for name, value in self._count(indices).items()}

    def _count(self, indices: Sequence[int]) -> dict[str, float]:
        runner = Remembered(self._trials) if self._task.requires_execution else Refused(self._task.name)
        with running_with(runner):
            counted = self._task.process_results(
                [self._generations[i] for i in indices], [self._references[i] for i in indices]
            )
        return numbers(counted)

    def _with_interval(self, name: str, value: float, indices: list[int]) -> Metric:
        alone = [self._alone[i].get(name, math.nan) for i in indices]
        mean = math.fsum(alone) / len(alone)
        if abs(mean - value) <= _EQUAL and all(0 <= one <= 1 for one in alone):
            return score_mean(alone)
        return grouped_jackknife(lambda kept: self._count([indices[i] for i in kept])[name], len(indices))


def numbers(counted: Mapping[str, Any]) -> dict[str, float]:
    """The metrics among what was counted; details of single problems are none."""
    found = {}
    for name, value in counted.items():
        try:
            found[str(name)] = float(value)
        except (TypeError, ValueError):
            continue
    return {name: value for name, value in found.items() if math.isfinite(value)}
