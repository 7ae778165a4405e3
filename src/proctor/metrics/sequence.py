"""A confidence sequence: intervals for a mean score that are valid at all sample sizes at once.

An ordinary 95 % interval covers the mean 95 times in 100 for a number of samples that was fixed
beforehand. With repeated looks and optional stopping it covers it far less often. Here the
probability that the mean is *ever* outside is at most 5 %, so a run may stop at any time.

The method is betting (Waudby-Smith and Ramdas, 2024, "Estimating means of bounded random
variables by betting", the hedged capital process). For each possible mean m, one gambler bets on
higher scores and one on lower scores. If m were the mean, neither could expect to gain, and by
Ville's inequality each multiplies its capital by 40 with probability at most 1/40. Every m at
which one of them has done so is excluded. Stakes may depend on earlier scores; they affect the
width of the interval, not its validity.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from proctor.core.types import Metric
from proctor.metrics.statistics import CONFIDENCE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

METHOD = "betting confidence sequence"
MAX_STAKE = 0.5  # share of a gambler's capital, per sample
FIRST_LOOK = 8
LOOKS = 50  # the interval is updated each time the number of samples has grown by a fiftieth
TOLERANCE = 1e-3  # of the ends, in half widths; errors widen the interval


class ConfidenceSequence:
    """Takes scores between 0 and 1 in the order of the samples.

    The stakes minimize the samples needed for the half width: they are the half width divided by
    the variance so far, updated each time the number of samples has doubled.
    """

    def __init__(self, half_width: float, confidence: float = CONFIDENCE) -> None:
        self.half_width = half_width
        self.n = 0
        self.low, self.high = 0.0, 1.0
        self._to_exclude = math.log(2 / (1 - confidence))
        self._sum = self._squares = 0.0
        self._stake = self._next_stake()
        self._bets: Counter[tuple[float, float]] = Counter()  # (stake, score)
        self._next_look = FIRST_LOOK

    def add(self, score: float) -> None:
        if self.n & (self.n - 1) == 0:  # 0, 1, 2, 4, 8 …
            self._stake = self._next_stake()
        self.n += 1
        self._sum += score
        self._squares += score * score
        self._bets[self._stake, score] += 1
        if self.n >= self._next_look:
            self.look()
            self._next_look = self.n + max(1, self.n // LOOKS)

    @property
    def narrow_enough(self) -> bool:
        return self.high - self.low <= 2 * self.half_width

    def look(self) -> None:
        """Update the interval, which is the intersection of all intervals so far."""
        import numpy as np

        stakes, scores = np.array(list(self._bets), dtype=np.float64).reshape(-1, 2).T
        times = np.array(list(self._bets.values()), dtype=np.float64)
        low = self._lower_end(stakes, scores, times, self.low)
        high = 1 - self._lower_end(stakes, 1 - scores, times, 1 - self.high)
        if low <= high:  # else one of the intervals missed the mean
            self.low, self.high = low, high

    def metric(self) -> Metric:
        if self.n == 0:
            return Metric(None, None, None, None, 0, METHOD)
        self.look()
        return Metric(self._sum / self.n, None, self.low, self.high, self.n, METHOD)

    def _next_stake(self) -> float:
        """Two half pseudo-samples, 0 and 1, keep the variance positive."""
        mean = (self._sum + 0.5) / (self.n + 1)
        variance = (self._squares + 0.25 - 2 * mean * self._sum + mean * mean * self.n) / (self.n + 1)
        return self.half_width / variance

    def _lower_end(
        self, stakes: NDArray[np.float64], scores: NDArray[np.float64], times: NDArray[np.float64], low: float
    ) -> float:
        """The lower end: bisect for the largest mean that the bets on higher scores exclude."""
        import numpy as np

        def is_excluded(mean: float) -> bool:
            staked = np.minimum(stakes, MAX_STAKE / mean)
            return float(times @ np.log1p(staked * (scores - mean))) >= self._to_exclude

        high, tolerance = 1.0, TOLERANCE * self.half_width
        if not is_excluded(low + tolerance):
            return low
        while high - low > tolerance:
            middle = (low + high) / 2
            low, high = (middle, high) if is_excluded(middle) else (low, middle)
        return low
