"""The grouped jackknife: standard errors of corpus-level statistics such as BLEU."""

from __future__ import annotations

import math
from collections.abc import Callable

from proctor.core.types import Metric
from proctor.metrics.statistics import CONFIDENCE, student_t_quantile

GROUPS = 20  # evaluations of the statistic; enough for Student's quantile to be near the normal one


def grouped_jackknife(
    statistic: Callable[[list[int]], float],
    n: int,
    groups: int = GROUPS,
    *,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    confidence: float = CONFIDENCE,
) -> Metric:
    """The statistic of problems 0 … n-1, with a standard error from leaving out one group at a time.

    Problems are assigned to groups in turn, which spreads neighbours, because those are often
    similar. If leaving out groups never changes the statistic, there is no interval.
    """
    if groups < 2:
        raise ValueError(f"the jackknife needs at least two groups, not {groups}")
    if n == 0:
        return Metric(None, None, None, None, 0, "jackknife")
    value = statistic(list(range(n)))
    groups = min(groups, n)
    if groups < 2:
        return Metric(value, None, None, None, n, "jackknife")

    # Group sizes may differ by one: the delete-m_j jackknife of Busing, Meijer and van der
    # Leeden (1999), in terms of the changes that leaving out each group causes.
    sizes = [len(range(group, n, groups)) for group in range(groups)]
    changes = [statistic([i for i in range(n) if i % groups != group]) - value for group in range(groups)]
    if not any(changes):
        return Metric(value, None, None, None, n, "jackknife")
    bias = math.fsum((1 - size / n) * change for size, change in zip(sizes, changes, strict=True))
    deviations = (
        (bias - (n / size - 1) * change) ** 2 / (n / size - 1) for size, change in zip(sizes, changes, strict=True)
    )
    stderr = math.sqrt(math.fsum(deviations) / groups)
    half = student_t_quantile((1 + confidence) / 2, groups - 1) * stderr
    return Metric(value, stderr, max(bounds[0], value - half), min(bounds[1], value + half), n, "jackknife")
