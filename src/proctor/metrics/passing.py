"""How often programs pass, estimated from several tries at each problem."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from statistics import fmean

from proctor.core.types import Metric, Record
from proctor.metrics.statistics import score_mean

DEFAULT_KS = (1, 10, 100)


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that at least one of k tries passes, drawn from n tries of which c passed (Chen et al. 2021)."""
    _check(n, c, k)
    # The chance that c marked tries miss k drawn ones is the same either way round; the shorter product is cheaper.
    few, many = sorted((c, k))
    all_draws = math.perm(n, few)
    # Of whole numbers, Python's division is correctly rounded, however large they are.
    return (all_draws - math.perm(n - many, few)) / all_draws


def pass_hat_k(n: int, c: int, k: int) -> float:
    """The chance that all of k tries pass, drawn from n tries of which c passed: pass^k."""
    _check(n, c, k)
    return math.perm(c, k) / math.perm(n, k)


def estimates(
    counts: Collection[tuple[int, int]], ks: Iterable[int], estimate: Callable[[int, int, int], float] = pass_at_k
) -> dict[int, list[float]]:
    """By k, what each problem is worth, of which there are as many tries, and so many of them passed.

    A k that some problem has fewer tries for is left out: a mean would be over other problems than for the smaller k.
    """
    fewest = min((tries for tries, _ in counts), default=1)
    return {k: [estimate(tries, passed, k) for tries, passed in counts] for k in ks if k <= fewest}


def mean_pass_at_k(counts: Collection[tuple[int, int]], ks: Iterable[int]) -> dict[str, float]:
    """The same over all problems, by the names of the metrics."""
    return {f"pass@{k}": fmean(values) for k, values in estimates(counts, ks).items() if values}


def _check(n: int, c: int, k: int) -> None:
    if not 0 <= c <= n:
        raise ValueError(f"of {n} tries, {c} cannot have passed")
    if not 1 <= k <= n:
        raise ValueError(f"k lies between 1 and the number of tries, {n}; it is {k}")


def count_passes(records: Iterable[Record]) -> dict[int, tuple[int, int]]:
    """By problem, how many tries there were and how many of them passed; nothing of what was not passed or failed.

    A score whose answer lists no verdicts is one try, if it is the score of one output: of several epochs, pass@k
    can be said of any exam.
    """
    found: dict[int, tuple[int, int]] = {}
    for record in records:
        tries = _count_record(record)
        if tries is not None:
            before = found.get(record.sample.index, (0, 0))
            found[record.sample.index] = before[0] + tries[0], before[1] + tries[1]
    return found


def _count_record(record: Record) -> tuple[int, int] | None:
    if record.score is None:
        return None
    answer = record.score.answer
    if isinstance(answer, list) and answer and all(isinstance(one, dict) and "passed" in one for one in answer):
        return len(answer), sum(bool(one["passed"]) for one in answer)
    if isinstance(answer, dict) and "pass@1" in answer.get("metrics", {}):  # counted by the task itself
        n = len(answer["generations"])
        return n, round(answer["metrics"]["pass@1"] * n)
    if record.score.value in (0, 1) and len(record.outputs) == 1:
        return 1, int(record.score.value)
    return None


class PassAtK:
    """pass@k and pass^k over problems, whose tries may be the outputs of one record, or of several epochs.

    The score's answer lists the outputs' verdicts, as dictionaries with the key "passed".
    """

    def __init__(self, ks: Sequence[int] = DEFAULT_KS) -> None:
        if any(k < 1 for k in ks):
            raise ValueError(f"pass@k needs at least one try, k ≥ 1; not {min(ks)}")
        self._ks = sorted({1, *ks})
        self._tries: Counter[int] = Counter()
        self._passed: Counter[int] = Counter()
        self._clusters: dict[int, str] = {}

    def add(self, record: Record) -> None:
        if record.score is None or not record.score.answer:
            return
        verdicts = [bool(verdict["passed"]) for verdict in record.score.answer]
        self._tries[record.sample.index] += len(verdicts)
        self._passed[record.sample.index] += sum(verdicts)
        if record.sample.cluster:
            self._clusters[record.sample.index] = record.sample.cluster

    def metrics(self) -> dict[str, Metric]:
        counts = [(tries, self._passed[index]) for index, tries in self._tries.items()]
        several = [k for k in self._ks if k > 1]
        at_least_one = {f"pass@{k}": values for k, values in estimates(counts, self._ks).items()}
        all_of_them = {f"pass^{k}": values for k, values in estimates(counts, several, pass_hat_k).items()}
        clusters = [self._clusters.get(index, "") for index in self._tries]
        return {name: score_mean(values, clusters=clusters) for name, values in (at_least_one | all_of_them).items()}
