"""pass@k and pass^k, estimated from several completions per problem."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from statistics import fmean

from proctor.core.types import Metric, Record
from proctor.metrics.statistics import score_mean

DEFAULT_KS = (1, 10, 100)


def pass_at_k(n: int, c: int, k: int) -> float:
    """The probability that at least one of k completions passes, given that c of n passed
    (Chen et al. 2021)."""
    _check(n, c, k)
    # The probability of no overlap is symmetric in c and k; the shorter product is cheaper.
    few, many = sorted((c, k))
    all_draws = math.perm(n, few)
    # Python divides integers of any size with correct rounding.
    return (all_draws - math.perm(n - many, few)) / all_draws


def pass_hat_k(n: int, c: int, k: int) -> float:
    """pass^k: the probability that all of k completions pass, given that c of n passed."""
    _check(n, c, k)
    return math.perm(c, k) / math.perm(n, k)


def estimates(
    counts: Collection[tuple[int, int]], ks: Iterable[int], estimate: Callable[[int, int, int], float] = pass_at_k
) -> dict[int, list[float]]:
    """By k, the estimate of each problem, from its numbers of completions and passes.

    A k larger than the completions of any problem is left out, because its mean would be over
    fewer problems.
    """
    fewest = min((n for n, _ in counts), default=1)
    return {k: [estimate(n, passed, k) for n, passed in counts] for k in ks if k <= fewest}


def mean_pass_at_k(counts: Collection[tuple[int, int]], ks: Iterable[int]) -> dict[str, float]:
    """The means over all problems, by metric name."""
    return {f"pass@{k}": fmean(values) for k, values in estimates(counts, ks).items() if values}


def _check(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n:
        raise ValueError(f"c must lie between 0 and n, the number of completions ({n}), not {c}")
    if not 1 <= k <= n:
        raise ValueError(f"k must lie between 1 and n, the number of completions ({n}), not {k}")


def count_passes(records: Iterable[Record]) -> dict[int, tuple[int, int]]:
    """By problem, the numbers of completions and of passes; records that neither passed nor
    failed are left out.

    A score of a single output without a list of verdicts counts as one completion, so that
    pass@k over several epochs is defined for any task.
    """
    totals: dict[int, tuple[int, int]] = {}
    for record in records:
        counts = _count_record(record)
        if counts is not None:
            n, passed = totals.get(record.sample.index, (0, 0))
            totals[record.sample.index] = n + counts[0], passed + counts[1]
    return totals


def _count_record(record: Record) -> tuple[int, int] | None:
    if record.score is None:
        return None
    answer = record.score.answer
    if isinstance(answer, list) and answer and all(isinstance(one, dict) and "passed" in one for one in answer):
        return len(answer), sum(bool(one["passed"]) for one in answer)
    if isinstance(answer, dict) and "pass@1" in answer.get("metrics", {}):  # aggregated by the task
        n = len(answer["generations"])
        return n, round(answer["metrics"]["pass@1"] * n)
    if record.score.value in (0, 1) and len(record.outputs) == 1:
        return 1, int(record.score.value)
    return None


class PassAtK:
    """Accumulates pass@k and pass^k over problems; completions may be spread over epochs.

    The score's answer lists the verdicts of the outputs, as dictionaries with the key "passed".
    """

    def __init__(self, ks: Sequence[int] = DEFAULT_KS) -> None:
        if any(k < 1 for k in ks):
            raise ValueError(f"pass@k: k must be at least 1, not {min(ks)}")
        self._ks = sorted({1, *ks})
        self._completions: Counter[int] = Counter()
        self._passed: Counter[int] = Counter()
        self._clusters: dict[int, str] = {}

    def add(self, record: Record) -> None:
        if record.score is None or not record.score.answer:
            return
        verdicts = [bool(verdict["passed"]) for verdict in record.score.answer]
        self._completions[record.sample.index] += len(verdicts)
        self._passed[record.sample.index] += sum(verdicts)
        if record.sample.cluster:
            self._clusters[record.sample.index] = record.sample.cluster

    def metrics(self) -> dict[str, Metric]:
        counts = [(n, self._passed[index]) for index, n in self._completions.items()]
        above_one = [k for k in self._ks if k > 1]
        pass_at = {f"pass@{k}": values for k, values in estimates(counts, self._ks).items()}
        pass_hat = {f"pass^{k}": values for k, values in estimates(counts, above_one, pass_hat_k).items()}
        clusters = [self._clusters.get(index, "") for index in self._completions]
        return {name: score_mean(values, clusters=clusters) for name, values in (pass_at | pass_hat).items()}
