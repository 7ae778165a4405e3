"""Aggregation of records into metrics in one pass: overall, and by metadata values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from proctor.core.types import Metric, Record
from proctor.metrics.statistics import score_mean


class Tally(Protocol):
    """Accumulates records one by one, and computes their metrics."""

    def add(self, record: Record) -> None: ...

    def metrics(self) -> dict[str, Metric]: ...


class MeanScore:
    """The mean score. The unit is the sample or its cluster, because epochs are not independent."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._sums: dict[int, float] = {}
        self._counts: dict[int, int] = {}
        self._clusters: dict[int, str] = {}

    def add(self, record: Record) -> None:
        if record.score is not None and record.score.value is not None:
            index = record.sample.index
            self._sums[index] = self._sums.get(index, 0.0) + record.score.value
            self._counts[index] = self._counts.get(index, 0) + 1
            if record.sample.cluster:
                self._clusters[index] = record.sample.cluster

    def metrics(self) -> dict[str, Metric]:
        values = [total / self._counts[i] for i, total in self._sums.items()]
        return {self._name: score_mean(values, clusters=[self._clusters.get(i, "") for i in self._sums])}


Groups = dict[str, dict[str, dict[str, Metric]]]


def summarise(
    records: Iterable[Record], new_tally: Callable[[], Tally], group_by: Sequence[str]
) -> tuple[dict[str, Metric], Groups]:
    """Metrics of all scored records, and of each value of each metadata key in `group_by`."""
    overall = new_tally()
    groups: dict[str, dict[str, Tally]] = {key: {} for key in group_by}
    for record in records:
        if record.score is None:
            continue
        overall.add(record)
        for key, tallies in groups.items():
            if key in record.sample.metadata:
                value = str(record.sample.metadata[key])
                if value not in tallies:
                    tallies[value] = new_tally()
                tallies[value].add(record)
    return overall.metrics(), {
        key: {value: tallies[value].metrics() for value in sorted(tallies, key=natural_key)}
        for key, tallies in groups.items()
        if tallies
    }


def natural_key(value: str) -> tuple[float, str]:
    """A sort key with numbers before words: 2 comes before 10."""
    try:
        return float(value), value
    except ValueError:
        return math.inf, value
