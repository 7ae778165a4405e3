"""A confidence sequence: intervals for a mean score that hold at all numbers of samples together.

An ordinary 95 % interval is right 95 times in 100 for a number of samples that was fixed beforehand. Whoever looks
again and again, and stops when it pleases, is wrong far more often. Here the chance that the mean is *ever*
outside is at most 5 %, so one may stop whenever one likes.

The method is betting (Waudby-Smith and Ramdas, 2024, "Estimating means of bounded random variables by betting", the
hedged capital process). For each possible mean m, one gambler bets that the scores are higher and one that they
are lower; were m the mean, neither could expect to gain, and by Ville's inequality each multiplies its stake by
40 with a chance of 1/40 at most. Every m at which one of them has done so is out. How much is staked may depend on
what was seen before, and decides how narrow the interval gets, never whether it is right.
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
MAX_STAKE = 0.5  # of a gambler's capital, on one sample
FIRST_LOOK = 8
LOOKS = 50  # a look at the interval each time the number of samples has grown by a fiftieth
TOLERANCE = 1e-3  # of the ends, in half widths; they err outwards


class ConfidenceSequence:
    """Takes scores between 0 and 1 in the order in which they were drawn.

    The stakes are those at which the interval gets to the wanted half width with the fewest samples: that width
    divided by the variance seen so far, set anew each time the number of samples has doubled.
    """

    def __init__(self, half_width: float, confidence: float = CONFIDENCE) -> None:
        self.half_width = half_width
        self.n = 0
        self.low, self.high = 0.0, 1.0
        self._to_exclude = math.log(2 / (1 - confidence))
        self._sum = self._squares = 0.0
        self._stake = self._next_stake()
        self._seen: Counter[tuple[float, float]] = Counter()  # (stake, score)
        self._next_look = FIRST_LOOK

    def add(self, score: float) -> None:
        if self.n & (self.n - 1) == 0:  # 0, 1, 2, 4, 8 …
            self._stake = self._next_stake()
        self.n += 1
        self._sum += score
        self._squares += score * score
        self._seen[self._stake, score] += 1
        if self.n >= self._next_look:
            self.look()
            self._next_look = self.n + max(1, self.n // LOOKS)

    @property
    def narrow_enough(self) -> bool:
        return self.high - self.low <= 2 * self.half_width

    def look(self) -> None:
        """What is outside of the interval now, and what was before, is out."""
        import numpy as np

        stakes, scores = np.array(list(self._seen), dtype=np.float64).reshape(-1, 2).T
        times = np.array(list(self._seen.values()), dtype=np.float64)
        low = self._lower_end(stakes, scores, times, self.low)
        high = 1 - self._lower_end(stakes, 1 - scores, times, 1 - self.high)
        if low <= high:  # else the mean was missed, now or before
            self.low, self.high = low, high

    def metric(self) -> Metric:
        if self.n == 0:
            return Metric(None, None, None, None, 0, METHOD)
        self.look()
        return Metric(self._sum / self.n, None, self.low, self.high, self.n, METHOD)

    def _next_stake(self) -> float:
        """With half a sample of each kind added, so that equal scores do not make it endless."""
        mean = (self._sum + 0.5) / (self.n + 1)
        variance = (self._squares + 0.25 - 2 * mean * self._sum + mean * mean * self.n) / (self.n + 1)
        return self.half_width / variance

    def _lower_end(
        self, stakes: NDArray[np.float64], scores: NDArray[np.float64], times: NDArray[np.float64], low: float
    ) -> float:
        """The lowest mean from `low` on that whoever bets on higher scores has not disproved, nor any above it."""
        import numpy as np

        def is_out(mean: float) -> bool:
            staked = np.minimum(stakes, MAX_STAKE / mean)
            return float(times @ np.log1p(staked * (scores - mean))) >= self._to_exclude

        high, exactness = 1.0, TOLERANCE * self.half_width
        if not is_out(low + exactness):
            return low
        while high - low > exactness:
            middle = (low + high) / 2
            low, high = (middle, high) if is_out(middle) else (low, middle)
        return low
