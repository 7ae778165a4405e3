"""Standard errors and 95 % intervals; only the bootstrap imports numpy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

from proctor.core.types import Metric

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONFIDENCE = 0.95
RESAMPLES = 10_000


def proportion(successes: float, n: int, confidence: float = CONFIDENCE) -> Metric:
    """A proportion with Wilson's score interval, which is valid near 0 and 1 and for small n."""
    if n == 0:
        return Metric(None, None, None, None, 0, "wilson")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == n else min(1.0, centre + half)
    return Metric(p, math.sqrt(p * (1 - p) / n), low, high, n, "wilson")


def mean(values: Sequence[float], confidence: float = CONFIDENCE) -> Metric:
    """The mean with Student's interval; for values that are all 0 or 1, a proportion."""
    if all(v in (0, 1) for v in values):
        return proportion(int(sum(values)), len(values), confidence)
    return student_mean(values, confidence)


def student_mean(values: Sequence[float], confidence: float = CONFIDENCE) -> Metric:
    """The mean of unbounded values, with Student's interval."""
    n = len(values)
    if n == 0:
        return Metric(None, None, None, None, 0, "student-t")
    m = math.fsum(values) / n
    if n == 1:
        return Metric(m, None, None, None, 1, "student-t")
    stderr = math.sqrt(math.fsum((v - m) ** 2 for v in values) / (n - 1) / n)
    half = student_t_quantile((1 + confidence) / 2, n - 1) * stderr
    return Metric(m, stderr, m - half, m + half, n, "student-t")


def score_mean(values: Sequence[float], confidence: float = CONFIDENCE, clusters: Sequence[str] = ()) -> Metric:
    """The mean of scores, with an interval within [0, 1].

    Values of the same cluster are not independent; '' is a cluster of its own.
    """
    metric = clustered_mean(values, clusters, confidence) if any(clusters) else mean(values, confidence)
    if metric.value is None or metric.low is None or metric.high is None:
        return metric
    if metric.stderr == 0:
        # Equal values do not make the mean certain. Of all scores with this mean, binary scores
        # have the largest variance.
        return proportion(metric.value * metric.n, metric.n, confidence)
    return Metric(metric.value, metric.stderr, max(0.0, metric.low), min(1.0, metric.high), metric.n, metric.method)


def clustered_mean(values: Sequence[float], clusters: Sequence[str], confidence: float = CONFIDENCE) -> Metric:
    """The mean over all values, with the cluster-robust standard error (Liang and Zeger 1986) and Student's interval.

    The unit is the cluster: n and the degrees of freedom count clusters.
    """
    residuals: dict[str | int, float] = {}
    m = math.fsum(values) / len(values)
    for i, (value, cluster) in enumerate(zip(values, clusters, strict=True)):
        residuals[cluster or i] = residuals.get(cluster or i, 0.0) + value - m
    n = len(residuals)
    if n == 1:
        return Metric(m, None, None, None, 1, "clustered")
    stderr = math.sqrt(n / (n - 1) * math.fsum(r * r for r in residuals.values())) / len(values)
    half = student_t_quantile((1 + confidence) / 2, n - 1) * stderr
    return Metric(m, stderr, m - half, m + half, n, "clustered")


def bootstrap(
    values: Sequence[float],
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Metric:
    """The bootstrap percentile interval of a statistic, which reduces the last axis."""
    import numpy as np

    data = np.asarray(values, dtype=np.float64)
    if data.size == 0:
        return Metric(None, None, None, None, 0, "bootstrap")
    generator = np.random.default_rng(seed)
    # In slices, so that the resampled matrix stays below about 32 MB for any n.
    step = max(1, 4_000_000 // max(1, data.size))
    estimates = np.concatenate(
        [
            statistic(data[generator.integers(0, data.size, (min(step, resamples - start), data.size))])
            for start in range(0, resamples, step)
        ]
    )
    tail = (1 - confidence) / 2
    low, high = np.quantile(estimates, [tail, 1 - tail])
    value = float(statistic(data[np.newaxis, :])[0])
    return Metric(value, float(estimates.std(ddof=1)), float(low), float(high), int(data.size), "bootstrap")


@lru_cache(maxsize=64)
def student_t_quantile(p: float, df: int) -> float:
    """The quantile of Student's distribution, by bisection of its distribution function."""
    if p < 0.5:
        return -student_t_quantile(1 - p, df)
    low, high = 0.0, 1.0
    while _student_t_cdf(high, df) < p:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _student_t_cdf(middle, df) < p else (low, middle)
    return (low + high) / 2


def _student_t_cdf(t: float, df: int) -> float:
    return 1 - _incomplete_beta(df / 2, 0.5, df / (df + t * t)) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by Lentz's continued fraction."""
    if x in (0.0, 1.0):
        return x
    if x > (a + 1) / (a + b + 2):  # the fraction of the mirrored arguments converges faster
        return 1 - _incomplete_beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    tiny = 1e-300
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d, tiny)
            c = _away_from_zero(1 + term / c, tiny)
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return math.exp(log_front) * fraction / a


def _away_from_zero(x: float, tiny: float) -> float:
    return x if abs(x) > tiny else tiny
