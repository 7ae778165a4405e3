"""Stopping at a precision: runs that end when the interval of the mean score is narrow enough."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from statistics import fmean

from proctor.core.random import mix, name_key
from proctor.core.types import Metric, Record, Sample
from proctor.metrics.sequence import ConfidenceSequence
from proctor.metrics.summary import Tally

NO_INTERVAL = "no interval: the number of samples was not fixed"
_SHUFFLE = name_key("order of a fixed exam")


def order_key(index: int, seed: int, fixed: bool) -> int:
    """The sort key of a sample.

    A fixed data set is shuffled by the seed, because it may be sorted, for example by difficulty.
    Generated samples are independent and keep their order.
    """
    return mix(_SHUFFLE, seed, index) if fixed else index


class PrecisionMonitor:
    """Collects the scores of a run in the order of its samples, and decides when to stop.

    A score is held back until all earlier samples have theirs. In order of completion, fast
    answers would count first, and stopping would favour them.
    """

    def __init__(self, half_width: float, epochs: int) -> None:
        self.sequence = ConfidenceSequence(half_width)
        self._epochs = epochs
        self._order: deque[int] = deque()
        self._values: dict[int, list[float | None]] = {}

    @property
    def reached(self) -> bool:
        return self.sequence.narrow_enough

    @property
    def verdict(self) -> str:
        n, precision = self.sequence.n, f"± {self.sequence.half_width:g}"
        if self.reached:
            return f"the score is known to {precision}, after {n:,} samples"
        return f"all {n:,} samples were run: too few to know the score to {precision}"

    def until_reached(
        self, samples: Iterable[Sample], known: Mapping[tuple[int, int], float | None]
    ) -> Iterator[Sample]:
        """Yield samples as long as more are needed; `known` scores are of an earlier session."""
        for sample in samples:
            if self.reached:
                return
            self._order.append(sample.index)
            self._values[sample.index] = []
            for epoch in range(self._epochs):
                if (sample.index, epoch) in known:
                    self.add(sample.index, known[sample.index, epoch])
            yield sample

    def add(self, index: int, value: float | None) -> None:
        """Add the score of one epoch of a sample; None if it has no score."""
        self._values[index].append(value)
        while self._order and len(self._values[self._order[0]]) == self._epochs:
            values = [value for value in self._values.pop(self._order.popleft()) if value is not None]
            if values:
                self.sequence.add(fmean(values))


class SequentialTally:
    """The task's metrics with a confidence sequence for the mean score.

    The other metrics lose their intervals, which are valid only for a fixed number of samples.
    """

    def __init__(self, tally: Tally, name: str, half_width: float, sort_key: Callable[[int], int]) -> None:
        self._tally, self._name, self._half_width = tally, name, half_width
        self._sort_key = sort_key
        self._values: dict[int, list[float]] = {}

    def add(self, record: Record) -> None:
        self._tally.add(record)
        if record.score is not None and record.score.value is not None:
            self._values.setdefault(record.sample.index, []).append(record.score.value)

    def metrics(self) -> dict[str, Metric]:
        sequence = ConfidenceSequence(self._half_width)
        for index in sorted(self._values, key=self._sort_key):
            sequence.add(fmean(self._values[index]))
        mean = sequence.metric()
        metrics = {name: _without_interval(metric) for name, metric in self._tally.metrics().items()}
        named = metrics.get(self._name)
        # The metric of that name may be defined otherwise, for example over the whole corpus.
        is_mean = named is not None and _is_close(named.value, mean.value)
        return metrics | {self._name if is_mean else "score": mean}


def _is_close(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and math.isclose(one, other, abs_tol=1e-9))


def _without_interval(metric: Metric) -> Metric:
    if metric.low is None:
        return metric
    return Metric(metric.value, None, None, None, metric.n, NO_INTERVAL)
