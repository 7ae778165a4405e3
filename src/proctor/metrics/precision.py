"""As many samples as it takes: when the interval of the mean score is narrow enough, and how that is reported."""

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
    """Where a sample comes. A given data set may be sorted, by difficulty for example: it is shuffled by the seed.

    A generated exam is taken as it comes: each of its samples is drawn anew.
    """
    return mix(_SHUFFLE, seed, index) if fixed else index


class PrecisionMonitor:
    """Watches the scores of a run in the order of its exam.

    Whatever is answered sooner waits here for what comes before it: were samples counted as they come back, quick
    answers would count before slow ones, and a stop in between would favour them.
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
        n, wanted = self.sequence.n, f"± {self.sequence.half_width:g}"
        if self.reached:
            return f"the score is known to {wanted}, after {n:,} samples"
        return f"all samples were asked, {n:,} of them: too few to know the score to {wanted}"

    def until_reached(
        self, samples: Iterable[Sample], known: Mapping[tuple[int, int], float | None]
    ) -> Iterator[Sample]:
        """The samples, in the order of the exam, as long as more are needed; some epochs may be scored already."""
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
        """The score of one epoch of a sample; None if there is none to be had."""
        self._values[index].append(value)
        while self._order and len(self._values[self._order[0]]) == self._epochs:
            values = [value for value in self._values.pop(self._order.popleft()) if value is not None]
            if values:
                self.sequence.add(fmean(values))


class SequentialTally:
    """The task's own metrics, of which the mean score has an interval that holds although the run stopped by it.

    The others lose theirs: they would hold only if the number of samples had been fixed beforehand.
    """

    def __init__(self, tally: Tally, name: str, half_width: float, place: Callable[[int], int]) -> None:
        self._tally, self._name, self._half_width, self._place = tally, name, half_width, place
        self._values: dict[int, list[float]] = {}

    def add(self, record: Record) -> None:
        self._tally.add(record)
        if record.score is not None and record.score.value is not None:
            self._values.setdefault(record.sample.index, []).append(record.score.value)

    def metrics(self) -> dict[str, Metric]:
        sequence = ConfidenceSequence(self._half_width)
        for index in sorted(self._values, key=self._place):
            sequence.add(fmean(self._values[index]))
        mean = sequence.metric()
        metrics = {name: _without_interval(metric) for name, metric in self._tally.metrics().items()}
        own = metrics.get(self._name)
        # A metric of that name may be counted otherwise, over all texts together for example.
        same = own is not None and _is_close(own.value, mean.value)
        return metrics | {self._name if same else "score": mean}


def _is_close(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and math.isclose(one, other, abs_tol=1e-9))


def _without_interval(metric: Metric) -> Metric:
    if metric.low is None:
        return metric
    return Metric(metric.value, None, None, None, metric.n, NO_INTERVAL)
