"""Metrics of a task's `process_results` over all samples, with confidence intervals."""

from __future__ import annotations

import asyncio
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.code.execution import CachedRunner, ForbiddenRunner, IsolatedRunner, Runner, Trial, use_runner
from proctor.code.rows import alone, pick
from proctor.core.errors import ProctorError
from proctor.core.types import Metric, Record
from proctor.metrics.jackknife import grouped_jackknife
from proctor.metrics.passing import estimates
from proctor.metrics.statistics import score_mean

if TYPE_CHECKING:
    from proctor.code.task import Task

_TOLERANCE = 1e-9  # between a mean of means and the mean of all
# Words in names of metrics that are not means of scores, even between 0 and 1.
_COUNT_WORDS = frozenset({"count", "counts", "num", "number", "total"})
_RATIO_WORDS = frozenset({"length", "penalty", "ratio"})
_OVERALL = ("all ", "overall ")
_NUMBER = re.compile(r"\d+")


def count_results(
    task: Task,
    indices: Sequence[int],
    generations: Sequence[Sequence[str]],
    references: Sequence[Any] | None,
    runner: Runner,
) -> dict[str, float]:
    """The metrics of these samples alone: the task sees only their rows."""
    if references is None:
        references = [task.get_reference(task.rows()[index]) for index in indices]
    view = copy(task)
    rows = view._rows = pick(task.rows(), indices)
    view.get_dataset = lambda: rows  # type: ignore[method-assign]
    with use_runner(runner), task._given.offered(), alone(task.DATASET_PATH, rows):
        # Copies, because some tasks change the lists in place.
        return numbers(view.process_results([list(of_one) for of_one in generations], list(references)))


async def count_single(
    task: Task, index: int, generations: Sequence[str], runner: Runner
) -> dict[str, float] | Exception:
    """The metrics of one sample, or the error."""
    reference = task.get_reference(task.rows()[index])
    try:
        return await asyncio.to_thread(count_results, task, [index], [generations], [reference], runner)
    except ProctorError:
        raise
    except Exception as error:
        return error


class Results:
    """Collects generations, and computes metrics without running programs again."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._generations: dict[int, list[str]] = {}
        self._references: dict[int, Any] = {}
        self._alone: dict[int, dict[str, float]] = {}
        self._clusters: dict[int, str] = {}
        self._trials: list[Trial] = []
        self._passed: dict[int, tuple[int, float]] = {}  # sample: number of generations, and of passes
        self._counted: dict[tuple[int, ...], dict[str, float]] = {}

    def add(self, record: Record) -> None:
        if record.score is None:
            return
        answer, index = record.score.answer, record.sample.index
        tries, passed = self._passed.get(index, (0, 0.0))
        new = len(answer["generations"])
        self._passed[index] = tries + new, passed + new * answer["metrics"].get("pass@1", math.nan)
        self._trials += msgspec.convert(answer["trials"], list[Trial])
        if index in self._generations:  # another epoch: the metrics of each alone do not apply
            self._generations[index] += answer["generations"]
            self._alone[index] = {}
        else:
            self._generations[index] = list(answer["generations"])
            self._clusters[index] = record.sample.cluster
            # Not the stored one: JSON has no tuples and no numbers as keys.
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
            # An answer may break the task; it then has no metrics alone, either.
            indices = [index for index in indices if self._alone[index]]
            if self._task.uses_worker("process_results") and self._task.requires_execution and not self._trials:
                return self._means(indices, error)
            if not 0 < len(indices) < len(self._generations):
                raise
            counted = self._count(indices, final=True)
        found = {name: self._with_interval(name, value, indices) for name, value in counted.items()}
        return found | {name: metric for name, metric in self._pass_at_k(indices).items() if name not in found}

    def _pass_at_k(self, indices: Sequence[int]) -> dict[str, Metric]:
        """pass@k for the configured k, if each sample has a pass@1."""
        passed = [self._passed[index] for index in indices]
        if not all(math.isfinite(count) for _, count in passed):
            return {}
        counts = [(tries, round(count)) for tries, count in passed]
        clusters = [self._clusters[index] for index in indices]
        values = estimates(counts, self._task._config.k)
        return {f"pass@{k}": score_mean(of_k, clusters=clusters) for k, of_k in values.items()}

    def _means(self, indices: Sequence[int], error: Exception) -> dict[str, Metric]:
        """Means of the metrics of single samples: an output may break the count of all."""
        why = f"{type(error).__name__}: {error}"
        print(
            f"{self._task.name}: process_results failed for all samples together ({why}); "
            "the metrics are means over single samples.",
            file=sys.stderr,
        )
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
        with IsolatedRunner(task._config) if final and task.requires_execution else nullcontext() as others:
            # Intervals count many times, without running programs.
            runner = CachedRunner(self._trials, others) if task.requires_execution else ForbiddenRunner(task.name)
            counted = task.count_results(indices, generations, references, runner, final=final)
        self._counted[tuple(indices)] = counted
        return counted

    def _with_interval(self, name: str, value: float, indices: list[int]) -> Metric:
        alone = [self._alone[i].get(name, math.nan) for i in indices]
        mean = math.fsum(alone) / len(alone)
        # By contract the first metric is the score; others may be counts or ratios.
        is_first = name == next(iter(self._count(indices)))
        words = set() if is_first else set(re.findall(r"[a-z]+", name.lower()))
        is_count = not is_first and (isinstance(value, int) or bool(words & _COUNT_WORDS))
        is_mean = abs(mean - value) <= _TOLERANCE and all(0 <= one <= 1 for one in alone)
        units = self._units(indices)
        unknown = Metric(value, None, None, None, len(units), "count" if is_count else "jackknife")
        if is_count or self._is_named_after_a_sample(name, indices):
            return unknown
        if is_mean and not words & _RATIO_WORDS:
            return score_mean(alone, clusters=[self._clusters[i] for i in indices])
        marks = (0.0, self._task.full_marks)
        is_score = is_first and all(marks[0] <= one <= marks[1] for one in (value, *alone))
        bounds = marks if is_score else (-math.inf, math.inf)
        try:
            return grouped_jackknife(
                lambda kept: self._count(sorted(i for k in kept for i in units[k]))[name], len(units), bounds=bounds
            )
        except Exception:  # the metric is missing for a subset, or the task fails
            return unknown

    def _is_named_after_a_sample(self, name: str, indices: list[int]) -> bool:
        """Whether the name contains the number of a sample: alone, each sample is the first."""
        known = {one for found in self._alone.values() for one in found}
        only_of_all = {_NUMBER.sub("#", one) for one in self._count(indices) if one not in known}
        return bool(known) and _NUMBER.sub("#", name) in only_of_all

    def _units(self, indices: Sequence[int]) -> list[list[int]]:
        """The groups of samples that the jackknife leaves out together: clusters."""
        units: dict[str | int, list[int]] = {}
        for index in indices:
            units.setdefault(self._clusters[index] or index, []).append(index)
        return list(units.values())


def numbers(counted: Any) -> dict[str, float]:
    """The numbers in a result of `process_results`, also by groups or in a table.

    Counts stay integers. Metrics of all groups together come first.
    """
    found: dict[str, float] = {}
    for name, value in _entries(counted):
        figures = value.items() if isinstance(value, Mapping) else [("", value)]
        for part, figure in figures:
            if not isinstance(figure, str | bytes):
                try:
                    number = figure if type(figure) is int else float(figure)
                except (TypeError, ValueError):
                    continue
                found[f"{name} {part}".strip()] = number
    names = sorted(found, key=lambda name: not name.startswith(_OVERALL))
    return {name: found[name] for name in names if math.isfinite(found[name])}


def _entries(counted: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(counted, Mapping):
        return [(str(name), value) for name, value in counted.items()]
    # The rows of a table: their strings make the name.
    rows = [row for row in counted or () if isinstance(row, Mapping)]
    return [(" ".join(value for value in row.values() if isinstance(value, str)), row) for row in rows]
