"""Metrics as a task's own `process_results` counts them, over all problems at once, with intervals."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.code.execution import Fresh, Refused, Remembered, Runner, Trial, running_with
from proctor.code.rows import alone, pick
from proctor.errors import ProctorError
from proctor.metrics.jackknife import grouped_jackknife
from proctor.metrics.statistics import score_mean
from proctor.types import Metric, Record

if TYPE_CHECKING:
    from proctor.code.task import Task

_EQUAL = 1e-9  # of a mean of means and the mean of all


def count_results(
    task: Task,
    indices: Sequence[int],
    generations: Sequence[Sequence[str]],
    references: Sequence[Any] | None,
    runner: Runner,
) -> dict[str, float]:
    """The metrics of these problems alone: where the task looks at rows by their place, it sees these rows only."""
    if references is None:
        references = [task.get_reference(task.rows()[index]) for index in indices]
    view = copy(task)
    rows = view._rows = pick(task.rows(), indices)
    view.get_dataset = lambda: rows  # type: ignore[method-assign]
    with running_with(runner), task._given.offered(), alone(task.DATASET_PATH, rows):
        # In lists of their own: some tasks put their changes into those that they are given.
        return numbers(view.process_results([list(of_one) for of_one in generations], list(references)))


class Results:
    """Collects generations; programs that were run are not run again."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._generations: dict[int, list[str]] = {}
        self._references: dict[int, Any] = {}
        self._alone: dict[int, dict[str, float]] = {}
        self._clusters: dict[int, str] = {}
        self._trials: list[Trial] = []
        self._counted: dict[tuple[int, ...], dict[str, float]] = {}

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
            self._clusters[index] = record.sample.cluster
            # Not the one that was stored: JSON has neither tuples nor numbers for keys.
            self._references[index] = self._task.get_reference(self._task.rows()[index])
            self._alone[index] = answer["metrics"]

    def metrics(self) -> dict[str, Metric]:
        indices = list(self._generations)
        if not indices:
            return {}
        try:
            counted = self._count(indices, final=True)
        except ProctorError:
            raise
        except Exception as error:
            # One answer may be more than the task can take; it could not be counted alone either.
            indices = [index for index in indices if self._alone[index]]
            if self._task.uses_worker("process_results") and self._task.requires_execution and not self._trials:
                return self._means(indices, error)
            if not 0 < len(indices) < len(self._generations):
                raise
            counted = self._count(indices, final=True)
        return {name: self._with_interval(name, value, indices) for name, value in counted.items()}

    def _means(self, indices: Sequence[int], error: Exception) -> dict[str, Metric]:
        """Of what each problem is worth alone: a text that the task itself has run may keep it from counting all."""
        why = f"{type(error).__name__}: {error}"
        told = f"{self._task.name}: all problems together could not be counted ({why}); each counts by its own score."
        print(told, file=sys.stderr)
        found = {}
        for name in dict.fromkeys(name for index in indices for name in self._alone[index]):
            having = [index for index in indices if name in self._alone[index]]
            alone = [self._alone[index][name] for index in having]
            if all(0 <= one <= 1 for one in alone):
                found[name] = score_mean(alone, clusters=[self._clusters[index] for index in having])
        return found

    def _count(self, indices: Sequence[int], *, final: bool = False) -> dict[str, float]:
        if (known := self._counted.get(tuple(indices))) is not None:
            return known
        task = self._task
        generations = [self._generations[i] for i in indices]
        references = [self._references[i] for i in indices]
        with Fresh(task._config) if final and task.requires_execution else nullcontext() as others:
            # For an interval, which asks again and again, nothing is run.
            runner = Remembered(self._trials, others) if task.requires_execution else Refused(task.name)
            counted = task.count_results(indices, generations, references, runner, final=final)
        self._counted[tuple(indices)] = counted
        return counted

    def _with_interval(self, name: str, value: float, indices: list[int]) -> Metric:
        alone = [self._alone[i].get(name, math.nan) for i in indices]
        mean = math.fsum(alone) / len(alone)
        if abs(mean - value) <= _EQUAL and all(0 <= one <= 1 for one in alone):
            return score_mean(alone, clusters=[self._clusters[i] for i in indices])
        units = self._units(indices)
        unknown = Metric(value, None, None, None, len(units), "jackknife")
        if any(self._alone.values()) and all(map(math.isnan, alone)):
            return unknown  # a figure that only all have is called after their number, or their places
        # By contract, the first one is the score; the others may be counts of something.
        first = next(iter(self._count(indices)))
        marks = (0.0, self._task.full_marks)
        is_score = name == first and all(marks[0] <= one <= marks[1] for one in (value, *alone))
        bounds = marks if is_score else (-math.inf, math.inf)
        try:
            return grouped_jackknife(
                lambda kept: self._count(sorted(i for k in kept for i in units[k]))[name], len(units), bounds=bounds
            )
        except Exception:  # without some of the problems, the figure is not there, or the task cannot count
            return unknown

    def _units(self, indices: Sequence[int]) -> list[list[int]]:
        """Problems that are left out together: those of a cluster."""
        units: dict[str | int, list[int]] = {}
        for index in indices:
            units.setdefault(self._clusters[index] or index, []).append(index)
        return list(units.values())


def numbers(counted: Any) -> dict[str, float]:
    """The metrics among what was counted, also by groups or as a table; details of single problems are none."""
    found: dict[str, float] = {}
    for name, value in _entries(counted):
        figures = value.items() if isinstance(value, Mapping) else [("", value)]
        for part, figure in figures:
            if not isinstance(figure, str | bytes):
                try:
                    found[f"{name} {part}".strip()] = float(figure)
                except (TypeError, ValueError):
                    continue
    return {name: value for name, value in found.items() if math.isfinite(value)}


def _entries(counted: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(counted, Mapping):
        return [(str(name), value) for name, value in counted.items()]
    # The rows of a table: what they say in words is their name.
    rows = [row for row in counted or () if isinstance(row, Mapping)]
    return [(" ".join(value for value in row.values() if isinstance(value, str)), row) for row in rows]
