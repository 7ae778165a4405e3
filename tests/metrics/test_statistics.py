import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from helpers.known import known
from proctor.metrics.statistics import bootstrap, mean, proportion, score_mean, student_t_quantile


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    # Newcombe (1998), Statistics in Medicine 17, table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_as_published(successes: int, n: int, low: float, high: float) -> None:
    metric = proportion(successes, n)
    assert (round(known(metric.low), 4), round(known(metric.high), 4)) == (low, high)
    assert metric.method == "wilson"


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_equals_scipy(case: tuple[int, int]) -> None:
    successes, n = case
    expected = stats.binomtest(successes, n).proportion_ci(method="wilson")
    metric = proportion(successes, n)
    assert metric.low == pytest.approx(expected.low, abs=1e-12)
    assert metric.high == pytest.approx(expected.high, abs=1e-12)
    assert 0 <= known(metric.low) <= known(metric.value) <= known(metric.high) <= 1


@given(st.floats(0.001, 0.999), st.integers(1, 100_000))
def test_student_quantile_equals_scipy(p: float, df: int) -> None:
    assert student_t_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-7, abs=1e-6)


def test_student_quantile_as_in_the_tables() -> None:
    assert [round(student_t_quantile(0.975, df), 3) for df in (1, 2, 5, 10, 30, 120)] == [
        12.706, 4.303, 2.571, 2.228, 2.042, 1.980,
    ]  # fmt: skip


@given(st.lists(st.floats(0, 1), min_size=2, max_size=200))
def test_mean_equals_scipy(values: list[float]) -> None:
    if set(values) <= {0.0, 1.0}:
        return
    metric = mean(values)
    assert metric.value == pytest.approx(np.mean(values), abs=1e-12)
    assert metric.stderr == pytest.approx(stats.sem(values), abs=1e-12)
    if known(metric.stderr) > 1e-12:
        low, high = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
        assert [metric.low, metric.high] == pytest.approx([low, high], abs=1e-9)


def test_score_mean_stays_within_the_scale() -> None:
    metric = score_mean([1, 1, 1, 0.9])
    assert metric.high == 1
    assert known(metric.low) < known(metric.value)


def test_a_perfect_score_is_not_certain() -> None:
    """The normal interval would be 1 ± 0."""
    metric = mean([1] * 10)
    assert metric.value == metric.high == 1
    assert metric.low == pytest.approx(0.7225, abs=1e-4)


def test_equal_scores_are_not_certain_either() -> None:
    metric = score_mean([0.5] * 10)
    assert metric.value == 0.5
    assert known(metric.low) < 0.3 < 0.7 < known(metric.high)


def test_too_few_values_have_no_interval() -> None:
    assert (proportion(0, 0).value, proportion(0, 0).low) == (None, None)
    assert (mean([0.5]).value, mean([0.5]).stderr) == (0.5, None)


def test_wilson_interval_has_nominal_coverage() -> None:
    """Simulated: about 95 % of the intervals contain the true value."""
    generator = np.random.default_rng(0)
    for p in (0.1, 0.5, 0.9):
        hits = [proportion(int(s), 50) for s in generator.binomial(50, p, 4000)]
        covered = sum(known(m.low) <= p <= known(m.high) for m in hits) / len(hits)
        assert 0.92 < covered < 0.98


def test_bootstrap_of_a_median_equals_scipy() -> None:
    data = np.random.default_rng(1).exponential(size=200)
    ours = bootstrap(list(data), lambda x: np.median(x, axis=-1))
    theirs = stats.bootstrap((data,), np.median, method="percentile", n_resamples=10_000, rng=np.random.default_rng(2))
    assert ours.value == pytest.approx(np.median(data))
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.02)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.02)
    assert ours.stderr == pytest.approx(theirs.standard_error, rel=0.05)
    assert ours == bootstrap(list(data), lambda x: np.median(x, axis=-1)), "same data, same interval"


def test_bootstrap_of_a_mean_agrees_with_the_closed_form() -> None:
    data = list(np.random.default_rng(3).normal(0.5, 0.1, 500))
    drawn = bootstrap(data, lambda x: x.mean(axis=-1))
    assert drawn.low == pytest.approx(mean(data).low, abs=1e-3)
    assert math.isclose(known(drawn.value), known(mean(data).value))
