"""Paired statistics against scipy, published examples, and what must hold for any data."""

import math
from random import Random
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, stats

from helpers.known import known
from proctor.metrics import paired
from proctor.metrics.paired import (
    Difference,
    bootstrap_interval,
    compare_pairs,
    detectable_difference,
    holm,
    least_spread,
    mcnemar,
    pairs_needed,
    samples_needed,
    sign_flip,
    tango_interval,
)
from proctor.metrics.statistics import RESAMPLES

Floats = NDArray[np.float64]

scores = st.sampled_from([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
passes = st.sampled_from([0.0, 1.0])
clusters = st.sampled_from(["", "a", "b", "c"])


def lists_of(values: st.SearchStrategy[float]) -> st.SearchStrategy[list[tuple[float, float, str]]]:
    return st.lists(st.tuples(values, values, clusters), min_size=1, max_size=40)


def columns(rows: list[tuple[float, float, str]]) -> tuple[list[float], list[float], list[str]]:
    first, second, names = zip(*rows, strict=True)
    return list(first), list(second), list(names)


def within(found: Difference, value: float) -> bool:
    return known(found.low) <= value <= known(found.high)


# -- McNemar --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gained", "lost", "p"),
    [
        (9, 2, 0.06543),  # Fay, vignette "Exact McNemar's test" of R's exact2x2: matrix(c(21, 9, 2, 12), 2, 2)
        (6, 16, 0.052479),  # Cavo et al. (2012), as R's contingencytables has it (Fagerland, Lydersen, Laake 2017)
    ],
)
def test_mcnemar_as_published(gained: int, lost: int, p: float) -> None:
    assert mcnemar(gained, lost) == pytest.approx(p, abs=5e-6)


def test_mid_p_as_published() -> None:
    """Cavo et al. (2012), as R's contingencytables has it (Fagerland, Lydersen, Laake 2017, chapter 8)."""
    assert mcnemar(6, 16, mid_p=True) == pytest.approx(0.034690, abs=5e-7)


def test_mcnemar_of_agrestis_approval_ratings() -> None:
    """Agresti, Categorical Data Analysis, section 10.1: 150 and 86 of 1,600 changed their minds, z² = 17.36."""
    assert mcnemar(150, 86) == pytest.approx(stats.chi2.sf(17.36, 1), rel=0.25)
    assert mcnemar(150, 86) == pytest.approx(stats.binomtest(86, 236).pvalue, rel=1e-9)


@given(st.integers(0, 20_000), st.integers(0, 20_000))
def test_mcnemar_equals_scipy(gained: int, lost: int) -> None:
    expected = stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
    assert mcnemar(gained, lost) == pytest.approx(expected, rel=1e-8, abs=1e-300)
    assert mcnemar(gained, lost) == mcnemar(lost, gained)
    assert mcnemar(gained, lost, mid_p=True) <= mcnemar(gained, lost)


def test_mcnemar_is_exact_at_any_size() -> None:
    assert mcnemar(1_000_000, 1_002_000) == pytest.approx(2 * stats.binom.cdf(1_000_000, 2_002_000, 0.5), rel=1e-6)


# -- Tango ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gained", "lost", "n", "confidence", "low", "high"),
    [
        (6, 16, 161, 0.95, -0.1240, -0.0054),  # Cavo et al. (2012), as R's contingencytables has it
        (28, 25, 618, 0.90, -0.0148, 0.0247),  # R's PropCIs: scoreci.mp(25, 28, 618, 0.90)
    ],
)
def test_tango_as_published(gained: int, lost: int, n: int, confidence: float, low: float, high: float) -> None:
    found = tango_interval(gained, lost, n, confidence)
    assert (round(found[0], 4), round(found[1], 4)) == (low, high)


tables = st.integers(1, 400).flatmap(
    lambda n: st.integers(0, n).flatmap(lambda b: st.tuples(st.just(b), st.integers(0, n - b), st.just(n)))
)


@given(tables)
def test_tango_inverts_the_score_test(table: tuple[int, int, int]) -> None:
    """At both ends the score statistic is z, with the likelihood maximised by scipy instead of solved."""
    gained, lost, n = table
    low, high = tango_interval(gained, lost, n)
    assert -1 <= low <= (gained - lost) / n <= high <= 1
    for edge in (low, high):
        if -0.99 < edge < 0.99:
            z = (gained - lost - n * edge) / math.sqrt(n * _variance(gained, lost, n, edge))
            assert abs(z) == pytest.approx(1.96, abs=2e-3)


def _variance(gained: int, lost: int, n: int, difference: float) -> float:
    def surprise(share: float) -> float:
        cells = ((gained, share + difference), (lost, share), (n - gained - lost, 1 - 2 * share - difference))
        return -sum(count * math.log(max(p, 1e-300)) for count, p in cells if count)

    bounds = (max(0.0, -difference), (1 - difference) / 2)
    share = float(optimize.minimize_scalar(surprise, bounds=bounds, method="bounded", options={"xatol": 1e-12}).x)
    # The likelihood may be highest at the very end of the range, which the search does not reach.
    share = min((share, *bounds), key=surprise)
    return 2 * share + difference - difference**2


@given(tables)
def test_tango_is_mcnemars_test_at_zero(table: tuple[int, int, int]) -> None:
    gained, lost, n = table
    low, high = tango_interval(gained, lost, n)
    z = abs(gained - lost) / math.sqrt(gained + lost) if gained + lost else 0.0
    if abs(z - 1.959964) > 1e-6:
        assert (low > 0 or high < 0) == (z > 1.959964)
    assert tango_interval(lost, gained, n) == pytest.approx((-high, -low), abs=1e-9)


def test_tango_without_any_disagreement_is_not_certain() -> None:
    low, high = tango_interval(0, 0, 20)
    z2 = NormalDist().inv_cdf(0.975) ** 2
    assert [low, high] == pytest.approx([-z2 / (20 + z2), z2 / (20 + z2)])


@pytest.mark.parametrize("n", [15, 40, 150])
@pytest.mark.parametrize(("gain", "loss"), [(0.02, 0.02), (0.10, 0.03), (0.30, 0.20), (0.25, 0.0)])
def test_tango_interval_has_nominal_coverage(n: int, gain: float, loss: float) -> None:
    """Simulated, with fixed seeds."""
    drawn = np.random.default_rng(5).multinomial(n, [gain, loss, 1 - gain - loss], 3000)
    tables, counts = np.unique(drawn, axis=0, return_counts=True)
    covered = 0
    for (gained, lost, _), count in zip(tables.tolist(), counts.tolist(), strict=True):
        low, high = tango_interval(gained, lost, n)
        covered += count * (low <= gain - loss <= high)
    assert covered / 3000 > 0.93


# -- sign flips -----------------------------------------------------------------------------------


@given(st.integers(0, 8), st.integers(0, 8))
def test_flipping_ones_is_mcnemars_test(gained: int, lost: int) -> None:
    assert sign_flip([1.0] * gained + [-1.0] * lost) == pytest.approx(mcnemar(gained, lost))


def test_drawn_flips_agree_with_mcnemar() -> None:
    assert sign_flip([1.0] * 40 + [-1.0] * 22) == pytest.approx(mcnemar(40, 22), abs=0.005)


def test_sign_flip_equals_scipys_permutation_test() -> None:
    data = np.round(np.random.default_rng(2).normal(0.03, 0.1, 12), 3)
    theirs = stats.permutation_test((data,), np.sum, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip(data) == pytest.approx(theirs.pvalue)


def test_many_different_values_are_summed_as_normal() -> None:
    data = np.random.default_rng(3).normal(0.01, 0.1, 400)
    theirs = stats.permutation_test(
        (data,), np.sum, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(1)
    )
    assert sign_flip(data) == pytest.approx(theirs.pvalue, abs=0.01)


def test_clusters_in_large_numbers_are_yangs_test() -> None:
    """Yang, Sun and Hardin (2010): the square of the sum over the sum of the squares is chi squared."""
    totals = np.random.default_rng(4).integers(-3, 5, 300).astype(float)
    expected = stats.chi2.sf(totals.sum() ** 2 / (totals**2).sum(), 1)
    assert sign_flip(totals) == pytest.approx(expected, abs=0.005)


def test_the_test_keeps_its_level_with_clusters() -> None:
    """Five variants of a problem go the same way: a test of single samples would cry wolf, this one does not."""
    generator = np.random.default_rng(6)
    alarms = naive = 0
    for _ in range(400):
        kinds = generator.choice([-1, 0, 1], 40, p=[0.15, 0.7, 0.15])
        differences = np.repeat(kinds, 5)
        second = (differences > 0).astype(float)
        first = (differences < 0).astype(float)
        names = [str(i // 5) for i in range(200)]
        alarms += known(compare_pairs(first, second, names).p) < 0.05
        naive += known(compare_pairs(first, second).p) < 0.05
    assert alarms / 400 < 0.07
    assert naive / 400 > 0.25


# -- the bootstrap --------------------------------------------------------------------------------


def test_pseudo_units_as_published() -> None:
    """With pass and fail, and many pairs, this is the interval of Bonett and Price: Cavo et al. (2012), as above."""
    differences = [1.0] * 6 + [-1.0] * 16 + [0.0] * 139
    low, high = bootstrap_interval(differences, [1.0] * 161)
    assert [low, high] == pytest.approx([-0.1195, -0.0032], abs=0.004)


def test_bootstrap_equals_scipys_for_many_pairs() -> None:
    data = np.round(np.random.default_rng(7).normal(0.05, 0.2, 3000), 1)
    theirs = stats.bootstrap((data,), np.mean, method="percentile", n_resamples=5000, rng=np.random.default_rng(8))
    low, high = bootstrap_interval(data, np.ones(3000))
    assert low == pytest.approx(theirs.confidence_interval.low, abs=6e-4)
    assert high == pytest.approx(theirs.confidence_interval.high, abs=6e-4)


def test_many_different_differences_have_students_interval() -> None:
    generator = np.random.default_rng(9)
    first, second = generator.random(500), generator.random(500)
    found = compare_pairs(first, second)
    low, high = stats.t.interval(0.95, 499, loc=(second - first).mean(), scale=stats.sem(second - first))
    assert found.interval == "student-t"
    assert [found.low, found.high] == pytest.approx([low, high])


@pytest.fixture
def _fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paired, "RESAMPLES", 2000)  # enough for a simulation, whose noise is larger


@pytest.mark.usefixtures("_fewer_draws")
@pytest.mark.parametrize("n", [12, 40, pytest.param(120, marks=pytest.mark.slow)])
def test_bootstrap_interval_has_nominal_coverage(n: int) -> None:
    """Five epochs of samples of which most are always right or always wrong, as it is with models."""
    generator = np.random.default_rng(10)
    # What is estimated is the difference over all samples that could have been drawn.
    gain = stats.beta(0.3, 0.3).expect(lambda skill: min(1, skill + 0.1 * (skill > 0.5)) - skill)
    covered = 0
    for _ in range(300):
        skill = generator.beta(0.3, 0.3, n)
        first = generator.binomial(5, skill, n) / 5
        second = generator.binomial(5, np.minimum(1, skill + 0.1 * (skill > 0.5)), n) / 5
        found = compare_pairs(first, second)
        covered += within(found, gain)
    assert covered / 300 > 0.93


@pytest.mark.usefixtures("_fewer_draws")
@pytest.mark.parametrize("groups", [8, *(pytest.param(groups, marks=pytest.mark.slow) for groups in (30, 100))])
def test_clustered_bootstrap_interval_has_nominal_coverage(groups: int) -> None:
    generator = np.random.default_rng(12)
    covered = 0
    for _ in range(300):
        sizes = generator.integers(1, 9, groups)
        gain = generator.normal(0.05, 0.1, groups)
        names = np.repeat([f"c{i}" for i in range(groups)], sizes)
        first = np.full(sizes.sum(), 0.5)
        second = np.round(0.5 + np.repeat(gain, sizes) + generator.normal(0, 0.05, sizes.sum()), 1)
        found = compare_pairs(first, second, list(names))
        covered += within(found, 0.05)
    assert covered / 300 > 0.93


def test_few_differences_on_one_side_are_no_certainty() -> None:
    """One of fifty samples got a little better: a plain bootstrap would exclude that it gets worse."""
    found = compare_pairs([0.4] * 50, [0.9] + [0.4] * 49)
    assert known(found.low) < 0 < known(found.value) < known(found.high)
    assert found.p == 1.0


@pytest.mark.parametrize("gain", [0.0, 0.1])
def test_equal_differences_are_not_certain(gain: float) -> None:
    found = compare_pairs([0.3] * 20, [0.3 + gain] * 20)
    assert known(found.low) < gain < known(found.high)
    assert found.p == (1.0 if gain == 0 else pytest.approx(2**-19, abs=1e-4))


# -- clusters -------------------------------------------------------------------------------------


def test_cluster_robust_error_is_that_of_a_regression() -> None:
    """The sandwich of Liang and Zeger for a mean, with the factor G / (G - 1), written out."""
    first, second = [1, 0, 1, 1, 0, 0, 1], [1, 1, 1, 0, 1, 1, 1]
    names = ["a", "a", "b", "b", "b", "c", "c"]
    d = np.subtract(second, first)
    residual = d - d.mean()
    meat = sum(residual[[i for i, name in enumerate(names) if name == c]].sum() ** 2 for c in "abc")
    assert compare_pairs(first, second, names).stderr == pytest.approx(math.sqrt(3 / 2 * meat) / 7)


def test_without_clusters_the_error_is_the_usual_one() -> None:
    first, second = [1, 0, 1, 1, 0], [1, 1, 1, 0, 1]
    assert compare_pairs(first, second).stderr == pytest.approx(stats.sem(np.subtract(second, first)))


def test_a_cluster_that_repeats_itself_counts_once() -> None:
    once = compare_pairs([0, 1, 0, 0] * 3, [1, 0, 1, 0] * 3, [str(i) for i in range(12)])
    tenfold = compare_pairs([0, 1, 0, 0] * 30, [1, 0, 1, 0] * 30, [str(i % 12) for i in range(120)])
    assert tenfold.stderr == pytest.approx(once.stderr)
    assert tenfold.design == pytest.approx(10, rel=0.1)
    assert (tenfold.n, tenfold.units) == (120, 12)


def test_one_cluster_has_no_p_value() -> None:
    found = compare_pairs([0, 0], [1, 1], ["a", "a"])
    assert (found.value, found.low, found.p) == (1.0, None, None)
    assert compare_pairs([], []).value is None
    single = compare_pairs([0], [1])
    assert (single.value, single.stderr, single.p) == (1.0, None, 1.0)
    assert known(single.low) < 0


# -- whatever the data ----------------------------------------------------------------------------


@given(st.one_of(lists_of(scores), lists_of(passes)))
def test_swapping_the_runs_changes_the_sign(rows: list[tuple[float, float, str]]) -> None:
    first, second, names = columns(rows)
    there, back = compare_pairs(first, second, names), compare_pairs(second, first, names)
    assert back.value == pytest.approx(-known(there.value))
    assert (back.gained, back.lost, back.p) == (there.lost, there.gained, there.p)
    if there.low is not None:
        high = known(there.high)
        assert [back.low, back.high] == pytest.approx([-high, -there.low])
        assert -1 <= there.low <= high <= 1


@given(st.one_of(lists_of(scores), lists_of(passes)), st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(rows: list[tuple[float, float, str]], random: Random) -> None:
    shuffled = random.sample(rows, len(rows))
    one, other = compare_pairs(*columns(rows)), compare_pairs(*columns(shuffled))
    for name in ("value", "stderr", "low", "high", "p", "spread", "design"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9)


@given(lists_of(passes))
def test_a_run_does_not_differ_from_itself(rows: list[tuple[float, float, str]]) -> None:
    first, _, names = columns(rows)
    found = compare_pairs(first, first, names)
    assert found.value == 0
    assert found.p in (1.0, None)


# -- Holm -----------------------------------------------------------------------------------------


def test_holm_by_hand() -> None:
    """0.005 × 4, 0.01 × 3, 0.03 × 2, and 0.04, which may not be less than the one before."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_never_kinder_than_the_test_nor_harder_than_bonferroni(ps: list[float]) -> None:
    for p, adjusted in zip(ps, holm(ps), strict=True):
        assert p <= adjusted <= min(1.0, p * len(ps)) + 1e-12


# -- what could be seen ---------------------------------------------------------------------------


def test_connors_number_of_pairs_as_published() -> None:
    """powerandsamplesize.com, McNemar's Z-test, 2-sided, after Connor (1987): 0.45 and 0.05 need 23 pairs."""
    assert pairs_needed(0.40, 0.50) == 23


def test_number_of_unpaired_samples_as_published() -> None:
    """The example of R's power.prop.test(p1 = .50, p2 = .75, power = .90): n = 76.7."""
    assert samples_needed(0.25, [0, 1] * 50, power=0.9) == 77


def test_number_of_unpaired_samples_of_scores() -> None:
    """Equal to the formula for two means in any text book: 2 (z + z)² s² / d²."""
    values = [0.2, 0.4, 0.5, 0.9, 0.3]
    assert samples_needed(0.1, values) == math.ceil(2 * 7.8489 * np.var(values, ddof=1) / 0.01)


@pytest.mark.parametrize(("difference", "spread"), [(0.05, 0.1), (0.02, 0.3), (0.1, 0.2)])
def test_pairs_needed_has_nominal_power(difference: float, spread: float) -> None:
    """Simulated with the score test that the formula is about; the exact one is a little more careful."""
    n = pairs_needed(difference, spread)
    gain, loss = (spread + difference) / 2, (spread - difference) / 2
    drawn = np.random.default_rng(13).multinomial(n, [gain, loss, 1 - spread], 4000)
    z = (drawn[:, 0] - drawn[:, 1]) / np.sqrt(np.maximum(1, drawn[:, 0] + drawn[:, 1]))
    assert (np.abs(z) > 1.96).mean() == pytest.approx(0.8, abs=0.04)


@given(st.integers(20, 100_000), st.floats(0, 1), st.booleans())
def test_detectable_difference_inverts_pairs_needed(n: int, spread: float, whole: bool) -> None:
    found = known(detectable_difference(n, spread, whole=whole))
    assert pairs_needed(found, least_spread(found, spread, whole)) <= n
    if found > 1e-5:
        smaller = found * 0.999
        assert pairs_needed(smaller, least_spread(smaller, spread, whole)) >= n


def test_too_few_pairs_detect_nothing() -> None:
    assert detectable_difference(2, 0.2, whole=True) is None


def test_clusters_need_more() -> None:
    assert pairs_needed(0.05, 0.2, design=4) == pytest.approx(4 * pairs_needed(0.05, 0.2), abs=4)


@pytest.mark.parametrize("difference", [0, 1.5])
def test_impossible_differences_are_refused(difference: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        pairs_needed(difference, 0.5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        samples_needed(difference, [0, 1])


def test_large_differences_need_few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bootstrap's cost follows the kinds of differences, not the samples: no draw is made per sample."""
    drawn: list[int] = []
    original = np.random.default_rng

    class Watched:
        def __init__(self, seed: int) -> None:
            self._generator = original(seed)

        def multinomial(self, n: int, shares: Floats, size: int) -> NDArray[np.int64]:
            drawn.append(len(shares) * size)
            return self._generator.multinomial(n, shares, size)

    monkeypatch.setattr(np.random, "default_rng", Watched)
    bootstrap_interval(np.tile([0.2, -0.4, 0.0, 0.6], 12_500), np.ones(50_000))
    assert drawn == [5 * RESAMPLES], "four kinds, and one that was imagined"


def test_a_share_of_passes_stays_within_its_bounds() -> None:
    assert samples_needed(0.5, [0, 1] * 50) == samples_needed(0.5, [1, 0] * 50), "0 and 1 are shares, too"
    assert samples_needed(0.9, [0.0] * 9 + [1.0]) == samples_needed(0.9, [1.0] * 9 + [0.0]), "0.1 + 0.9 is 1"
    with pytest.raises(ValueError, match=r"no proportion differs by 0\.6 from 0\.500"):
        samples_needed(0.6, [0, 1] * 50)
