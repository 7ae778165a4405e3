"""Paired comparison of two runs over the same samples: difference, interval, test and power.

Binary scores of independent samples: McNemar's exact test, and Tango's score interval, which
inverts that test. Other scores, and clustered samples: a sign-flip test and a bootstrap over
clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from proctor.metrics.statistics import CONFIDENCE, RESAMPLES, student_t_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ALPHA = 0.05
POWER = 0.8
MAX_EXACT_UNITS = 16  # up to so many, all sign changes are enumerated: 65,536
MAX_KINDS = 100  # distinct units that are resampled; with more, the normal approximation is used
DIGITS, EQUAL = 12, 1e-12  # smaller differences are rounding errors, as in 0.1 + 0.2


class Difference(Struct, frozen=True):
    """How much higher the second run scores than the first; None with too few pairs."""

    value: float | None
    stderr: float | None
    low: float | None  # of the 95 % interval
    high: float | None
    p: float | None  # of the null hypothesis of no difference
    n: int  # pairs
    units: int  # independent units: clusters, or pairs without a cluster
    gained: int  # pairs in which the second is higher
    lost: int  # pairs in which the first is higher
    whole: bool  # every difference is -1, 0 or 1, as for binary scores
    spread: float  # mean square of the differences; for binary scores, the share of discordant pairs
    design: float  # design effect: variance inflation by clusters; 1 without any
    interval: str  # name of the method
    test: str  # name of the method


def compare_pairs(
    first: Floats | Sequence[float],
    second: Floats | Sequence[float],
    clusters: Sequence[str] | None = None,
    *,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Difference:
    """Compare scores in [0, 1], pair by pair.

    Pairs of the same cluster are not independent; '' is a cluster of its own. Average the scores
    of several epochs beforehand, because the sample is the unit.
    """
    differences = np.round(np.asarray(second, dtype=np.float64) - np.asarray(first, dtype=np.float64), DIGITS)
    n = differences.size
    gained, lost = int((differences > 0).sum()), int((differences < 0).sum())
    if n == 0:
        return Difference(None, None, None, None, None, 0, 0, 0, 0, True, 0.0, 1.0, "", "")
    value = float(differences.mean())
    spread = float((differences**2).mean())
    totals, sizes = _units(differences, clusters)
    units = totals.size
    stderr = _robust_stderr(totals, sizes)
    design = 1.0
    if units < n and stderr > EQUAL:
        independent = float(differences.var(ddof=1)) / n
        design = max(1.0, stderr**2 / independent)

    whole = bool(np.isin(differences, (-1, 0, 1)).all())
    if units == n and whole:
        low, high = tango_interval(gained, lost, n, confidence)
        p = mcnemar(gained, lost)
        interval, test = "tango", "mcnemar-exact"
    elif units == 1:
        return Difference(value, None, None, None, None, n, 1, gained, lost, whole, spread, 1.0, "", "")
    else:
        low, high, interval = _interval(totals, sizes, stderr, confidence, seed)
        p, test = sign_flip(totals, seed), "sign-flip"
        if units < n:
            interval, test = f"clustered-{interval}", f"clustered-{test}"
    known = stderr if units > 1 else None
    return Difference(value, known, low, high, p, n, units, gained, lost, whole, spread, design, interval, test)


# -- binary scores --------------------------------------------------------------------------------


def mcnemar(gained: int, lost: int, *, mid_p: bool = False) -> float:
    """McNemar's exact test: each discordant pair is equally likely to go either way.

    The binomial sum is cheap at any size, so no approximation is needed. `mid_p` counts half of
    the observed term, which makes the test less conservative, and slightly anti-conservative.
    """
    n, fewer = gained + lost, min(gained, lost)
    log_term = math.lgamma(n + 1) - math.lgamma(fewer + 1) - math.lgamma(n - fewer + 1) - n * math.log(2)
    share, tail = 1.0, 0.0  # the current term and the sum, in units of the observed term
    for k in range(fewer, -1, -1):
        tail += share
        share *= k / (n - k + 1)
        if share < 1e-18 * tail:
            break
    return min(1.0, 2 * math.exp(log_term) * (tail - 0.5 * mid_p))


def tango_interval(gained: int, lost: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """All differences of two proportions that a score test does not reject (Tango 1998).

    The interval stays within [-1, 1], is valid with few or no discordant pairs, and is consistent
    with McNemar's test, which is this score test at a difference of 0.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    estimate = (gained - lost) / n

    def rejected(difference: float) -> bool:
        # The maximum-likelihood share of lost pairs given this difference: the larger root of a
        # quadratic equation.
        linear = gained * (1 + difference) + lost * (1 - difference) - 2 * n * difference
        constant = lost * difference * (1 - difference)
        share = (linear + math.sqrt(max(0.0, linear**2 + 8 * n * constant))) / (4 * n)
        variance = n * (2 * share + difference * (1 - difference))
        return (gained - lost - n * difference) ** 2 > z * z * variance

    return _bisect(rejected, estimate, -1.0), _bisect(rejected, estimate, 1.0)


# -- any scores, and clusters ---------------------------------------------------------------------


def sign_flip(totals: Floats | Sequence[float], seed: int = 0) -> float:
    """The sign-flip test: under the null hypothesis, each unit's difference has a random sign.

    The p-value is the share of sign changes whose total is at least as large. All are enumerated
    for few units, else 10,000 are drawn; with more than 100 distinct differences the total is
    approximately normal (for clusters, the test of Yang, Sun and Hardin 2010). For independent
    binary scores this is McNemar's exact test.
    """
    values = np.round(np.asarray(totals, dtype=np.float64), DIGITS)
    observed = abs(math.fsum(values))
    sizes, counts = np.unique(np.abs(values[values != 0]), return_counts=True)
    if sizes.size == 0:
        return 1.0
    if sizes.size > MAX_KINDS:
        return math.erfc(observed / math.sqrt(2 * float((counts * sizes**2).sum())))
    if counts.sum() <= MAX_EXACT_UNITS:
        sums = np.zeros(1)
        for size in np.repeat(sizes, counts):
            sums = np.concatenate([sums + size, sums - size])
        return float((np.abs(sums) >= observed * (1 - 1e-9)).mean())
    generator = np.random.default_rng(seed)
    up = generator.binomial(counts, 0.5, (RESAMPLES, sizes.size))
    sums = (2 * up - counts) @ sizes
    # The observed signs count as one draw.
    return (1 + int((np.abs(sums) >= observed * (1 - 1e-9)).sum())) / (1 + RESAMPLES)


def bootstrap_interval(
    totals: Floats | Sequence[float],
    sizes: Floats | Sequence[float],
    *,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> tuple[float, float]:
    """The bootstrap percentile interval of sum(totals) / sum(sizes), corrected for few units.

    - Two pseudo-units are added, one per sign, as large as the largest, so that differences of one
      sign alone do not exclude the other. Bonett and Price (2012) do so for binary scores.
    - The percentiles are widened as Student's distribution is wider than the normal (Hesterberg
      2015).

    Equal units are resampled together, as one multinomial count, so the cost depends on the
    number of distinct units.
    """
    totals, sizes = np.asarray(totals, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    largest = np.abs(totals).max()
    totals = np.round(np.concatenate([totals, [largest, -largest]]), DIGITS)
    sizes = np.concatenate([sizes, np.full(2, sizes.mean())])
    units = totals.size
    values, weights, counts = _group_equal(totals, sizes)
    # The order of the runs must not matter, so the same orientation is always resampled.
    mirrored = _is_mirrored(values, weights, counts)
    if mirrored:
        values, weights, counts = _group_equal(-totals, sizes)
    drawn = np.random.default_rng(seed).multinomial(units, counts / units, RESAMPLES)
    estimates = (drawn @ values) / (drawn @ weights)
    reach = student_t_quantile((1 + confidence) / 2, units - 1) * math.sqrt(units / (units - 1))
    tail = NormalDist().cdf(-reach)
    low, high = (float(edge) for edge in np.quantile(estimates, [tail, 1 - tail]))
    return (-high, -low) if mirrored else (low, high)


def _interval(totals: Floats, sizes: Floats, stderr: float, confidence: float, seed: int) -> tuple[float, float, str]:
    mean = math.fsum(totals) / math.fsum(sizes)
    if stderr <= EQUAL:
        # Equal differences do not exclude others: so large a share of 1 or -1 could be unseen.
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        unseen = z * z / (totals.size + z * z)
        return mean - (1 + mean) * unseen, mean + (1 - mean) * unseen, "unseen"
    if _group_equal(totals, sizes)[0].size > MAX_KINDS:
        half = student_t_quantile((1 + confidence) / 2, totals.size - 1) * stderr
        return max(-1.0, mean - half), min(1.0, mean + half), "student-t"
    low, high = bootstrap_interval(totals, sizes, confidence=confidence, seed=seed)
    return max(-1.0, low), min(1.0, high), "bootstrap"


def _units(differences: Floats, clusters: Sequence[str] | None) -> tuple[Floats, Floats]:
    """The sum of differences and the number of pairs of each cluster."""
    if clusters is None or not any(clusters):
        return differences, np.ones(differences.size)
    numbers: dict[str | int, int] = {}
    codes = [numbers.setdefault(cluster or i, len(numbers)) for i, cluster in enumerate(clusters)]
    return np.round(np.bincount(codes, differences), DIGITS), np.bincount(codes).astype(np.float64)


def _robust_stderr(totals: Floats, sizes: Floats) -> float:
    """The cluster-robust standard error of the mean over all pairs."""
    units = totals.size
    if units < 2:
        return 0.0
    residuals = totals - sizes * (totals.sum() / sizes.sum())
    return math.sqrt(units / (units - 1) * float((residuals**2).sum())) / float(sizes.sum())


def _group_equal(totals: Floats, sizes: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """The totals, sizes and counts of the distinct units, sorted."""
    # As complex numbers, because unique rows take ten times as long.
    kinds, counts = np.unique(totals + 1j * sizes, return_counts=True)
    return kinds.real, kinds.imag, counts


def _is_mirrored(values: Floats, weights: Floats, counts: NDArray[np.int64]) -> bool:
    """Whether these units, rather than those of opposite sign, are the mirrored orientation."""
    kinds = sorted(zip(values.tolist(), weights.tolist(), counts.tolist(), strict=True))
    return sorted((-value, weight, count) for value, weight, count in kinds) > kinds


# -- several comparisons --------------------------------------------------------------------------


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's correction (1979), which controls the family-wise error rate."""
    adjusted = [0.0] * len(ps)
    largest = 0.0
    for rank, i in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[i]))
        adjusted[i] = largest
    return adjusted


# -- power ----------------------------------------------------------------------------------------


def pairs_needed(
    difference: float, spread: float, *, design: float = 1.0, alpha: float = ALPHA, power: float = POWER
) -> int:
    """The number of pairs needed to detect a difference (Connor 1987).

    `spread` is the mean square of the differences; for binary scores, the share of discordant
    pairs. It must be at least the square of the difference, and for binary scores at least the
    difference.
    """
    d = abs(difference)
    if not 0 < d <= 1:
        raise ValueError(f"the difference must lie between 0 and 1, not {difference}")
    z_alpha, z_power = _quantiles(alpha, power)
    root = z_alpha * math.sqrt(spread) + z_power * math.sqrt(max(0.0, spread - d * d))
    return math.ceil(design * (root / d) ** 2 - 1e-9)


def detectable_difference(n: int, spread: float, *, whole: bool, design: float = 1.0) -> float | None:
    """The smallest difference that n pairs detect at this spread; None if they detect none."""

    def is_detected(difference: float) -> bool:
        return pairs_needed(difference, least_spread(difference, spread, whole), design=design) <= n

    return _bisect(lambda d: not is_detected(d), 1.0, 1e-6) if is_detected(1.0) else None


def least_spread(difference: float, spread: float, whole: bool) -> float:
    """The observed spread, or the minimum that the difference implies (`whole`: binary scores)."""
    return max(spread, abs(difference) if whole or spread == 0 else difference**2)


def samples_needed(difference: float, values: Sequence[float], *, alpha: float = ALPHA, power: float = POWER) -> int:
    """The samples per run to detect a difference between two runs over different samples, one of
    which has these scores.

    For binary scores by the two proportions (Fleiss 1981, without continuity correction), on the
    side that needs more samples; else by the variance of the scores.
    """
    d = abs(difference)
    if not 0 < d <= 1:
        raise ValueError(f"the difference must lie between 0 and 1, not {difference}")
    z_alpha, z_power = _quantiles(alpha, power)
    scores = np.asarray(values, dtype=np.float64)
    mean = float(scores.mean())
    if not np.isin(scores, (0, 1)).all():
        return math.ceil(2 * float(scores.var(ddof=1)) * ((z_alpha + z_power) / d) ** 2)

    def needed(other: float) -> float:
        pooled = (mean + other) / 2
        unpooled = mean * (1 - mean) + other * (1 - other)
        numerator = z_alpha * math.sqrt(2 * pooled * (1 - pooled)) + z_power * math.sqrt(unpooled)
        return (numerator / d) ** 2

    others = [other for other in (mean - d, mean + d) if -EQUAL <= other <= 1 + EQUAL]
    if not others:
        raise ValueError(f"no proportion differs by {d:g} from {mean:.3f}")
    return math.ceil(max(needed(min(1.0, max(0.0, other))) for other in others) - 1e-9)


def _quantiles(alpha: float, power: float) -> tuple[float, float]:
    return NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(power)


def _bisect(rejected: Callable[[float], bool], inside: float, outside: float) -> float:
    """The boundary of rejection between `inside`, which is not rejected, and `outside`."""
    if not rejected(outside):
        return outside
    while abs(outside - inside) > 1e-12:
        middle = (inside + outside) / 2
        if rejected(middle):
            outside = middle
        else:
            inside = middle
    return inside
