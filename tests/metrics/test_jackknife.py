from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from helpers.known import known
from proctor.metrics.bleu import bleu, bleu_of, overlap
from proctor.metrics.jackknife import grouped_jackknife
from proctor.metrics.statistics import mean

Floats = NDArray[np.float64]


def mean_of(data: Floats) -> Callable[[list[int]], float]:
    return lambda indices: float(data[indices].mean())


@pytest.mark.parametrize("n", [2, 3, 20, 57])
def test_of_a_mean_one_by_one_it_is_the_textbook_standard_error(n: int) -> None:
    data = np.random.default_rng(n).normal(0.5, 0.1, n)
    metric = grouped_jackknife(mean_of(data), n, groups=n)
    textbook = mean(list(data))
    assert metric.value == pytest.approx(textbook.value)
    assert metric.stderr == pytest.approx(textbook.stderr)
    assert [metric.low, metric.high] == pytest.approx([textbook.low, textbook.high])
    assert (metric.n, metric.method) == (n, "jackknife")


def test_of_a_mean_in_equal_groups_it_is_the_standard_error_of_their_means() -> None:
    data = np.random.default_rng(1).exponential(size=200)
    metric = grouped_jackknife(mean_of(data), 200)
    group_means = [data[group::20].mean() for group in range(20)]
    assert metric.stderr == pytest.approx(stats.sem(group_means))
    low, high = stats.t.interval(0.95, 19, loc=data.mean(), scale=stats.sem(group_means))
    assert [metric.low, metric.high] == pytest.approx([low, high])


def test_unequal_groups_by_their_pseudo_values() -> None:
    """Busing, Meijer and van der Leeden (1999), as printed."""
    data, groups = np.random.default_rng(2).lognormal(size=47), 20
    n = data.size
    whole = data.std()
    left_out = [np.delete(data, range(group, n, groups)).std() for group in range(groups)]
    h = [n / len(data[group::groups]) for group in range(groups)]
    estimate = groups * whole - sum((1 - 1 / h[j]) * left_out[j] for j in range(groups))
    pseudo_values = [h[j] * whole - (h[j] - 1) * left_out[j] for j in range(groups)]
    variance = sum((pseudo_values[j] - estimate) ** 2 / (h[j] - 1) for j in range(groups)) / groups
    metric = grouped_jackknife(lambda indices: float(data[indices].std()), n)
    assert metric.value == pytest.approx(whole)
    assert metric.stderr == pytest.approx(variance**0.5)


def test_few_problems_are_groups_of_one() -> None:
    data = np.random.default_rng(3).normal(size=7)
    assert grouped_jackknife(mean_of(data), 7) == grouped_jackknife(mean_of(data), 7, groups=7)


@pytest.mark.parametrize(("n", "groups"), [(500, 20), (95, 20), (12, 20)])
def test_jackknife_interval_has_nominal_coverage(n: int, groups: int) -> None:
    """Simulated, for a quotient of two sums: about 95 % of the intervals contain the true value."""
    generator = np.random.default_rng(n)
    covered = 0
    for _ in range(500):
        weights = generator.gamma(4, size=n)
        hits = weights * generator.beta(2, 3, size=n)

        def quotient(chosen: list[int], hits: Floats = hits, weights: Floats = weights) -> float:
            return float(hits[chosen].sum() / weights[chosen].sum())

        metric = grouped_jackknife(quotient, n, groups)
        covered += known(metric.low) <= 0.4 <= known(metric.high)
    assert 0.92 < covered / 500 < 0.98


def test_jackknife_of_bleu() -> None:
    references = [f"this is line number {i} of the whole text" for i in range(40)]
    predictions = [r.replace("whole ", "") if i % 3 else r for i, r in enumerate(references)]
    overlaps = [overlap(*pair) for pair in zip(predictions, references, strict=True)]
    metric = grouped_jackknife(lambda indices: bleu_of(overlaps[i] for i in indices)["bleu"], 40, bounds=(0, 1))
    assert metric.value == bleu(predictions, references)["bleu"]
    assert 0 < known(metric.low) < known(metric.value) < known(metric.high) < 1


def test_the_interval_stays_within_the_scale() -> None:
    data = np.array([1.0, 1.0, 1.0, 0.9])
    metric = grouped_jackknife(mean_of(data), 4, bounds=(0, 1))
    assert metric.high == 1
    assert known(metric.low) < known(metric.value)


def test_too_few_or_equal_problems_have_no_interval() -> None:
    nothing = grouped_jackknife(lambda _: pytest.fail("asked for the statistic of nothing"), 0)
    assert (nothing.value, nothing.stderr, nothing.low, nothing.n) == (None, None, None, 0)
    one = grouped_jackknife(lambda _: 0.5, 1)
    assert (one.value, one.stderr, one.low, one.high, one.n) == (0.5, None, None, None, 1)
    alike = grouped_jackknife(lambda _: 0.0, 30)
    assert (alike.value, alike.stderr, alike.low, alike.high, alike.n) == (0.0, None, None, None, 30)


def test_single_group_is_refused() -> None:
    with pytest.raises(ValueError, match="two groups"):
        grouped_jackknife(lambda _: 0.5, 10, groups=1)
