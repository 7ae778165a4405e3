"""Leaderboards: the candidates of each task, ranked by their best run, with a range for each rank."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import Any

import msgspec
from msgspec import Struct

from proctor.core.loading import is_task_file
from proctor.core.options import non_default_options, result_options
from proctor.core.types import Metric, Run
from proctor.metrics.statistics import CONFIDENCE

# Options of the candidate. All other options separate rankings.
_CANDIDATE_OPTIONS = frozenset(
    {
        *("temperature", "top_p", "top_k", "max_tokens", "max_length", "stop", "samples", "epochs"),
        *("prefix", "instruction_tokens", "fim", "precision", "load_in_8bit", "load_in_4bit"),
        *("revision", "trust_remote_code", "peft_model", "modeltype", "generations", "partial_generations"),
    }
)
# Options that choose the samples, which are compared by their digest.
_SAMPLE_OPTIONS = frozenset({"limit", "limit_start", "seed", "data"})


class RankedCandidate(Struct, frozen=True):
    """A candidate with its best run."""

    rank: int  # 1 + the number of candidates with a higher value
    best_rank: int  # the range of ranks at 95 % confidence: from …
    worst_rank: int  # … to
    candidate: str
    metric: Metric
    n: int
    errors: int
    created: float
    run: str
    runs: int  # of the candidate; the best of many is partly luck
    options: dict[str, Any]  # non-default options of the candidate


class Ranking(Struct, frozen=True):
    """The candidates of one task, version, settings and samples."""

    task: str
    version: str
    metric: str
    settings: dict[str, Any]
    non_default_options: dict[str, Any]  # settings and options
    samples: int
    digest: str  # of the samples
    entries: list[RankedCandidate]


def rank_runs(runs: Iterable[Run]) -> list[Ranking]:
    """The rankings of all complete runs, sorted by task; the one with most candidates first."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        if run.status == "done" and run.ranking_metric:
            groups.setdefault(_ranking_key(run), []).append(run)
    rankings = [ranking for group in groups.values() if (ranking := _rank(group)) is not None]
    return sorted(rankings, key=lambda r: (r.task, r.version, -len(r.entries), -_newest(r)))


def _ranking_key(run: Run) -> str:
    shared = {
        name: value
        for name, value in result_options(run).items()
        if name not in _CANDIDATE_OPTIONS and name not in _SAMPLE_OPTIONS
    }
    digest = run.provenance.get("samples_sha256", "")
    # An edited file may score differently under the same version.
    source = run.provenance.get("task_source") if is_task_file(run.task) else None
    return msgspec.json.encode(
        [run.task, run.version, run.ranking_metric, digest, source, shared], order="sorted"
    ).decode()


def _rank(runs: Sequence[Run]) -> Ranking | None:
    by_candidate: dict[str, list[Run]] = {}
    for run in runs:
        if run.metrics[run.ranking_metric].value is not None:
            by_candidate.setdefault(run.candidate, []).append(run)
    if not by_candidate:
        return None
    best = [max(group, key=_sort_key) for group in by_candidate.values()]
    best.sort(key=_sort_key, reverse=True)
    metrics = [run.metrics[run.ranking_metric] for run in best]
    values = [_value_of(metric) for metric in metrics]
    ranges = rank_ranges(metrics)
    entries = [
        RankedCandidate(
            rank=1 + values.index(_value_of(metric)),
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
        metric=run.ranking_metric,
        settings=run.config.get("settings", {}),
        non_default_options={
            name: value for name, value in non_default_options(run).items() if name not in _CANDIDATE_OPTIONS
        },
        samples=samples,
        digest=run.provenance.get("samples_sha256", ""),
        entries=entries,
    )


def rank_ranges(metrics: Sequence[Metric]) -> list[tuple[int, int]]:
    """The range of ranks of each metric that 95 % confidence cannot rule out.

    One metric ranks below another if the interval of their difference excludes 0. That
    interval combines the two intervals (Newcombe's method), widened by Bonferroni's
    correction for the number of other metrics, so that the whole range holds in 95 of
    100 cases. The runs are treated as independent. They share samples, so that this is
    conservative; `proctor compare` pairs the samples.
    """
    import numpy as np

    others = max(1, len(metrics) - 1)
    normal = NormalDist()
    wider = normal.inv_cdf(1 - (1 - CONFIDENCE) / (2 * others)) / normal.inv_cdf((1 + CONFIDENCE) / 2)
    # A missing bound becomes NaN, and comparisons with NaN are false.
    low, value, high = (np.array([getattr(m, end) for m in metrics], float) for end in ("low", "value", "high"))
    down, up = value - low, high - value
    ranges = []
    for i in range(len(metrics)):
        better = value - value[i] > wider * np.hypot(down, up[i])
        worse = value[i] - value > wider * np.hypot(down[i], up)
        ranges.append((1 + int(better.sum()), len(metrics) - int(worse.sum())))
    return ranges


def _sort_key(run: Run) -> tuple[float, float, float]:
    """The value, then the number of samples, then the time."""
    return _value_of(run.metrics[run.ranking_metric]), run.n, run.created


def _value_of(metric: Metric) -> float:
    return -math.inf if metric.value is None else metric.value


def _newest(ranking: Ranking) -> float:
    return max(entry.created for entry in ranking.entries)
