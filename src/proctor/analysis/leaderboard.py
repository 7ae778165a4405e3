"""Who did best at which exam: the runs of a store, ranked, with how sure each rank is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import Any

import msgspec
from msgspec import Struct

from proctor.core.config import options_affecting
from proctor.core.loading import is_task_file
from proctor.core.options import non_default_options, result_options
from proctor.core.types import Metric, Run
from proctor.metrics.statistics import CONFIDENCE

# How a candidate answers; all other options define another ranking.
_CANDIDATE_OPTIONS = options_affecting("candidate")
_SAMPLE_OPTIONS = options_affecting("samples")  # the digest of the samples covers them


class RankedCandidate(Struct, frozen=True):
    """A candidate with its best run."""

    rank: int  # 1 + how many have a higher value
    best_rank: int  # the ranks that cannot be ruled out, from …
    worst_rank: int  # … to
    candidate: str
    metric: Metric
    n: int
    errors: int
    created: float
    run: str
    runs: int  # of the candidate; the more there are, the luckier the best of them may be
    options: dict[str, Any]  # by which the candidate answered, as far as they were not the usual ones


class Ranking(Struct, frozen=True):
    """One exam: the same task and version, the same settings, the same samples."""

    task: str
    version: str
    metric: str
    settings: dict[str, Any]  # all of the task's
    non_default_options: dict[str, Any]  # settings and options that were not the defaults
    samples: int
    digest: str  # of the samples
    entries: list[RankedCandidate]


def rank_runs(runs: Iterable[Run]) -> list[Ranking]:
    """A board for each exam that was done to its end, the tasks in order, those with most candidates first."""
    exams: dict[str, list[Run]] = {}
    for run in runs:
        if run.status == "done" and run.main_metric:
            exams.setdefault(_exam(run), []).append(run)
    boards = [board for found in exams.values() if (board := _board(found)) is not None]
    return sorted(boards, key=lambda board: (board.task, board.version, -len(board.entries), -_newest(board)))


def _exam(run: Run) -> str:
    same = {
        name: value
        for name, value in result_options(run).items()
        if name not in _CANDIDATE_OPTIONS and name not in _SAMPLE_OPTIONS
    }
    digest = run.provenance.get("samples_sha256", "")
    # A file that was edited may mark otherwise, whatever its version says.
    source = run.provenance.get("task_source") if is_task_file(run.task) else None
    return msgspec.json.encode([run.task, run.version, run.main_metric, digest, source, same], order="sorted").decode()


def _board(runs: Sequence[Run]) -> Ranking | None:
    by_candidate: dict[str, list[Run]] = {}
    for run in runs:
        if run.metrics[run.main_metric].value is not None:
            by_candidate.setdefault(run.candidate, []).append(run)
    if not by_candidate:
        return None
    best = [max(found, key=_standing) for found in by_candidate.values()]
    best.sort(key=_standing, reverse=True)
    metrics = [run.metrics[run.main_metric] for run in best]
    values = [_value(metric) for metric in metrics]
    ranges = rank_ranges(metrics)
    entries = [
        RankedCandidate(
            rank=1 + values.index(_value(metric)),
            best_rank=first,
            worst_rank=last,
            candidate=run.candidate,
            metric=metric,
            n=run.n,
            errors=run.errors,
            created=run.created,
            run=run.id,
            runs=len(by_candidate[run.candidate]),
            options={name: value for name, value in non_default_options(run).items() if name in _CANDIDATE_OPTIONS},
        )
        for run, metric, (first, last) in zip(best, metrics, ranges, strict=True)
    ]
    run = best[0]
    samples = max(metric.n for metric in metrics)
    return Ranking(
        task=run.task,
        version=run.version,
        metric=run.main_metric,
        settings=run.config.get("settings", {}),
        non_default_options={
            name: value for name, value in non_default_options(run).items() if name not in _CANDIDATE_OPTIONS
        },
        samples=samples,
        digest=run.provenance.get("samples_sha256", ""),
        entries=entries,
    )


def rank_ranges(metrics: Sequence[Metric]) -> list[tuple[int, int]]:
    """For each the ranks that cannot be ruled out with 95 % confidence, whatever the samples have in common.

    A rank is given up where the interval of the difference to another one does not hold 0. That interval is made of
    the intervals of the two (Newcombe's method), widened as Bonferroni says for as many comparisons as there are
    others, so that the whole range is right in 95 of 100 cases. As if the runs were independent: that they have their
    samples in common makes most differences surer than is said here; `proctor compare` pairs them.
    """
    import numpy as np

    others = max(1, len(metrics) - 1)
    normal = NormalDist()
    wider = normal.inv_cdf(1 - (1 - CONFIDENCE) / (2 * others)) / normal.inv_cdf((1 + CONFIDENCE) / 2)
    # What is not known is no number, and no number is larger than another.
    low, value, high = (np.array([getattr(m, end) for m in metrics], float) for end in ("low", "value", "high"))
    down, up = value - low, high - value
    found = []
    for i in range(len(metrics)):
        better = value - value[i] > wider * np.hypot(down, up[i])
        worse = value[i] - value > wider * np.hypot(down[i], up)
        found.append((1 + int(better.sum()), len(metrics) - int(worse.sum())))
    return found


def _standing(run: Run) -> tuple[float, float, float]:
    """Of runs with the same value, the one with more samples stands higher, then the newer one."""
    return _value(run.metrics[run.main_metric]), run.n, run.created


def _value(metric: Metric) -> float:
    return -math.inf if metric.value is None else metric.value


def _newest(board: Ranking) -> float:
    return max(entry.created for entry in board.entries)
