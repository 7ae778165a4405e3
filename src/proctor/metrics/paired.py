"""Two runs over the same samples: the difference of their scores, its interval and test, and what could be seen at all.

Pass and fail of independent samples: McNemar's exact test, and Tango's score interval, which turns that test around.
Everything else, and samples in clusters: a sign-flip test and a bootstrap, both over the clusters.
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
MAX_EXACT_UNITS = 16  # so many can be flipped in all ways: 65,536 of them
MAX_KINDS = 100  # kinds of units that are drawn one by one; with more, a sum over them is normal
DIGITS, EQUAL = 12, 1e-12  # sums that differ less are equal: 0.1 + 0.2 is 0.3


class Difference(Struct, frozen=True):
    """How much higher the second run scores than the first; None where there are too few pairs to tell."""

    value: float | None
    stderr: float | None
    low: float | None  # of the 95 % interval
    high: float | None
    p: float | None  # of the test that there is no difference
    n: int  # pairs
    units: int  # independent ones among them: clusters, where samples share them
    gained: int  # pairs in which the second is higher
    lost: int  # pairs in which the first is
    whole: bool  # whether every pair differs by 1 or not at all, as pass and fail do
    spread: float  # mean square of the differences: for pass and fail, the share of pairs that disagree
    design: float  # by how much clusters inflate the variance; 1 without any
    interval: str  # the method's name
    test: str


def compare_pairs(
    first: Floats | Sequence[float],
    second: Floats | Sequence[float],
    clusters: Sequence[str] | None = None,
    *,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> Difference:
    """Scores in [0, 1], pair by pair. Pairs that name the same cluster are not independent; '' is a cluster of its own.

    Values of several epochs are averaged beforehand: the sample is the unit.
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


# -- pass and fail --------------------------------------------------------------------------------


def mcnemar(gained: int, lost: int, *, mid_p: bool = False) -> float:
    """McNemar's test, exact: of all pairs that disagree, each is as likely to go one way as the other.

    The sum of binomial terms is cheap at any size, so that no approximation is needed. With `mid_p` only half of the
    observed term counts, which makes the test less careful, and a little wrong.
    """
    n, fewer = gained + lost, min(gained, lost)
    log_term = math.lgamma(n + 1) - math.lgamma(fewer + 1) - math.lgamma(n - fewer + 1) - n * math.log(2)
    share, tail = 1.0, 0.0  # of the observed term, and of those before it, in units of the observed one
    for k in range(fewer, -1, -1):
        tail += share
        share *= k / (n - k + 1)
        if share < 1e-18 * tail:
            break
    return min(1.0, 2 * math.exp(log_term) * (tail - 0.5 * mid_p))


def tango_interval(gained: int, lost: int, n: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """All differences of the two shares that a score test does not refuse (Tango 1998).

    It never leaves [-1, 1], is honest where few pairs or none disagree, and goes with McNemar's test, which is this
    score test at a difference of 0.
    """
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    estimate = (gained - lost) / n

    def refused(difference: float) -> bool:
        # The likeliest share of lost pairs if this were the difference: the larger root of a quadratic equation.
        linear = gained * (1 + difference) + lost * (1 - difference) - 2 * n * difference
        constant = lost * difference * (1 - difference)
        share = (linear + math.sqrt(max(0.0, linear**2 + 8 * n * constant))) / (4 * n)
        variance = n * (2 * share + difference * (1 - difference))
        return (gained - lost - n * difference) ** 2 > z * z * variance

    return _bisect(refused, estimate, -1.0), _bisect(refused, estimate, 1.0)


# -- any scores, and clusters ---------------------------------------------------------------------


def sign_flip(totals: Floats | Sequence[float], seed: int = 0) -> float:
    """If the runs were alike, each unit's difference could as well have had the other sign.

    The share of all sign changes that make a difference at least as large: all of them for a few units, else of 10,000
    that are drawn; with more than 100 sizes of differences, their sum is normal (for clusters, this is the test of
    Yang, Sun and Hardin 2010). For independent pass and fail it is McNemar's exact test.
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
    # The signs that were observed are one of the ways, too.
    return (1 + int((np.abs(sums) >= observed * (1 - 1e-9)).sum())) / (1 + RESAMPLES)


def bootstrap_interval(
    totals: Floats | Sequence[float],
    sizes: Floats | Sequence[float],
    *,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> tuple[float, float]:
    """The percentile interval of sum(totals) / sum(sizes) when units are drawn again, made honest for few units.

    - Two imagined units are added, one for each side, as large as the largest: what was seen on one side alone is not
      taken for certain. Bonett and Price (2012) do so for pass and fail.
    - The percentiles lie as far out as Student's distribution lies outside of the normal one (Hesterberg 2015).

    Units of one kind are drawn together, as one multinomial count: the cost depends on how many kinds there are, not on
    the number of units.
    """
    totals, sizes = np.asarray(totals, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    largest = np.abs(totals).max()
    totals = np.round(np.concatenate([totals, [largest, -largest]]), DIGITS)
    sizes = np.concatenate([sizes, np.full(2, sizes.mean())])
    units = totals.size
    values, weights, counts = _group_equal(totals, sizes)
    # Which run is the first must not matter: it is always the same side that is drawn.
    turned = _is_mirrored(values, weights, counts)
    if turned:
        values, weights, counts = _group_equal(-totals, sizes)
    drawn = np.random.default_rng(seed).multinomial(units, counts / units, RESAMPLES)
    estimates = (drawn @ values) / (drawn @ weights)
    reach = student_t_quantile((1 + confidence) / 2, units - 1) * math.sqrt(units / (units - 1))
    tail = NormalDist().cdf(-reach)
    low, high = (float(edge) for edge in np.quantile(estimates, [tail, 1 - tail]))
    return (-high, -low) if turned else (low, high)


def _interval(totals: Floats, sizes: Floats, stderr: float, confidence: float, seed: int) -> tuple[float, float, str]:
    mean = math.fsum(totals) / math.fsum(sizes)
    if stderr <= EQUAL:
        # Equal differences do not make the next one sure: so many others could be there unseen, all of them 1 or -1.
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        unseen = z * z / (totals.size + z * z)
        return mean - (1 + mean) * unseen, mean + (1 - mean) * unseen, "unseen"
    if _group_equal(totals, sizes)[0].size > MAX_KINDS:
        half = student_t_quantile((1 + confidence) / 2, totals.size - 1) * stderr
        return max(-1.0, mean - half), min(1.0, mean + half), "student-t"
    low, high = bootstrap_interval(totals, sizes, confidence=confidence, seed=seed)
    return max(-1.0, low), min(1.0, high), "bootstrap"


def _units(differences: Floats, clusters: Sequence[str] | None) -> tuple[Floats, Floats]:
    """The sum of differences, and the number of pairs, of each cluster."""
    if clusters is None or not any(clusters):
        return differences, np.ones(differences.size)
    places: dict[str | int, int] = {}
    codes = [places.setdefault(cluster or place, len(places)) for place, cluster in enumerate(clusters)]
    return np.round(np.bincount(codes, differences), DIGITS), np.bincount(codes).astype(np.float64)


def _robust_stderr(totals: Floats, sizes: Floats) -> float:
    """Of the mean over all pairs: with clusters of one, the usual standard error of a mean."""
    units = totals.size
    if units < 2:
        return 0.0
    residuals = totals - sizes * (totals.sum() / sizes.sum())
    return math.sqrt(units / (units - 1) * float((residuals**2).sum())) / float(sizes.sum())


def _group_equal(totals: Floats, sizes: Floats) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Total and size of each kind of unit, in order, and how many of them there are."""
    kinds, counts = np.unique(totals + 1j * sizes, return_counts=True)  # as one number: ten times as fast as by rows
    return kinds.real, kinds.imag, counts


def _is_mirrored(values: Floats, weights: Floats, counts: NDArray[np.int64]) -> bool:
    """Of these kinds and the same with other signs, one is mirrored, unless they are the same."""
    kinds = sorted(zip(values.tolist(), weights.tolist(), counts.tolist(), strict=True))
    return sorted((-value, weight, count) for value, weight, count in kinds) > kinds


# -- several comparisons --------------------------------------------------------------------------


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's correction (1979): if all those below 0.05 are believed, the chance of a false one among them is 5 %."""
    adjusted = [0.0] * len(ps)
    reached = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        reached = max(reached, min(1.0, (len(ps) - rank) * ps[place]))
        adjusted[place] = reached
    return adjusted


# -- what could be seen ---------------------------------------------------------------------------


def pairs_needed(
    difference: float, spread: float, *, design: float = 1.0, alpha: float = ALPHA, power: float = POWER
) -> int:
    """How many pairs it takes to see such a difference (Connor 1987).

    `spread` is the mean square of the differences between pairs: for pass and fail, the share of pairs that disagree.
    It must be at least the square of the difference, and for pass and fail at least the difference.
    """
    d = abs(difference)
    if not 0 < d <= 1:
        raise ValueError(f"a difference to be seen lies between 0 and 1, not {difference}")
    z_alpha, z_power = _quantiles(alpha, power)
    root = z_alpha * math.sqrt(spread) + z_power * math.sqrt(max(0.0, spread - d * d))
    return math.ceil(design * (root / d) ** 2 - 1e-9)


def detectable_difference(n: int, spread: float, *, whole: bool, design: float = 1.0) -> float | None:
    """The least difference that n pairs would show, if runs disagree so much; None if they would show none at all."""

    def seen(difference: float) -> bool:
        return pairs_needed(difference, least_spread(difference, spread, whole), design=design) <= n

    return _bisect(lambda d: not seen(d), 1.0, 1e-6) if seen(1.0) else None


def least_spread(difference: float, spread: float, whole: bool) -> float:
    """The spread that was seen, or what the difference brings by itself: pass and fail (`whole`) differ by 1."""
    return max(spread, abs(difference) if whole or spread == 0 else difference**2)


def samples_needed(difference: float, values: Sequence[float], *, alpha: float = ALPHA, power: float = POWER) -> int:
    """How many samples each of two runs over different samples needs, if one is like this one and the other differs so.

    For pass and fail by the two proportions, of which the second lies on the side where more are needed (Fleiss 1981,
    without continuity correction), else by the variance of the scores.
    """
    d = abs(difference)
    if not 0 < d <= 1:
        raise ValueError(f"a difference to be seen lies between 0 and 1, not {difference}")
    z_alpha, z_power = _quantiles(alpha, power)
    scores = np.asarray(values, dtype=np.float64)
    mean = float(scores.mean())
    if not np.isin(scores, (0, 1)).all():
        return math.ceil(2 * float(scores.var(ddof=1)) * ((z_alpha + z_power) / d) ** 2)

    def needed(other: float) -> float:
        both = (mean + other) / 2
        apart = mean * (1 - mean) + other * (1 - other)
        return ((z_alpha * math.sqrt(2 * both * (1 - both)) + z_power * math.sqrt(apart)) / d) ** 2

    others = [other for other in (mean - d, mean + d) if -EQUAL <= other <= 1 + EQUAL]
    if not others:
        raise ValueError(f"no share of passes lies {d:g} from {mean:.3f}")
    return math.ceil(max(needed(min(1.0, max(0.0, other))) for other in others) - 1e-9)


def _quantiles(alpha: float, power: float) -> tuple[float, float]:
    return NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(power)


def _bisect(refused: Callable[[float], bool], inside: float, outside: float) -> float:
    """Where refusal begins on the way from a number that is not refused; the end of the way, where none is."""
    if not refused(outside):
        return outside
    while abs(outside - inside) > 1e-12:
        middle = (inside + outside) / 2
        if refused(middle):
            outside = middle
        else:
            inside = middle
    return inside
