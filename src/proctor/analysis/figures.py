"""Figures of stored runs: chooses a kind of plot and reads its data from the records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from proctor.agents.metrics import gather_lags
from proctor.agents.runtime.lags import WIDTH, Lags
from proctor.analysis.curve import gather_curves, plot_curves, swept_setting
from proctor.analysis.plots import (
    CurveLine,
    Curves,
    Histogram,
    Histograms,
    Plot,
    PlotPoint,
    ScoreGroup,
    ScoreRow,
    Scores,
    Spread,
    Spreads,
)
from proctor.analysis.plots.scores import plot_run_scores
from proctor.analysis.report import Report
from proctor.core.errors import UnknownNameError, UsageError
from proctor.core.options import differing_options, format_options, result_options
from proctor.core.types import Metric, Record, Run
from proctor.metrics.passing import count_passes, estimates
from proctor.metrics.statistics import score_mean
from proctor.store.store import Store

MAX_POINTS = 60  # of a pass@k line; more are not visible
NS_PER_SECOND = 1e9
INTERVAL = "95\u00a0% interval"


class Figure(Struct, frozen=True):
    kind: str
    why: str  # the reason for this kind; empty if the caller chose it
    plot: Plot


def make_figure(store: Store, runs: Sequence[Run], kind: str = "", metric: str = "", by: str = "") -> Figure:
    """A plot of these runs, of the given kind or of the kind that fits them."""
    if not runs:
        raise UsageError("No run to plot.")
    if kind and kind not in KINDS:
        raise UnknownNameError("kind of plot", kind, KINDS, f"Kinds: {', '.join(KINDS)}.")
    if by and kind not in ("", "curve"):
        raise UsageError(f"--by is for curves, not for {kind}: leave it out, or use --kind curve.")
    if metric and kind in ("passes", "histogram", "latency", "lags"):
        raise UsageError(f"--metric is for scores and curves, not for {kind}: leave it out.")
    runs = list({run.id: run for run in runs}.values())
    chosen, why = (kind, "") if kind else _choose_kind(runs, metric, by)
    return Figure(chosen, why, KINDS[chosen](store, runs, metric, by))


def _choose_kind(runs: Sequence[Run], metric: str, by: str) -> tuple[str, str]:
    if by:
        return "curve", f"by {by}"
    if len(runs) > 1:
        try:
            return "curve", f"the runs differ in {swept_setting(runs)}"
        except UsageError:
            pass
    attempts = [run.config.get("samples", 1) * run.config.get("epochs", 1) for run in runs]
    if not metric and all("pass@1" in run.metrics for run in runs) and min(attempts) > 1:
        return "passes", f"{min(attempts)} attempts per problem"
    return "scores", "it fits all runs"


def select_metric(run: Run, name: str = "") -> Metric:
    """The metric of this name, by default the main metric."""
    if not run.metrics:
        raise UsageError(f"Run {run.id} has no metrics: {run.reason or f'it is {run.status}'}.")
    if name and name not in run.metrics:
        raise UnknownNameError("metric", name, run.metrics, f"Run {run.id} has: {', '.join(run.metrics)}.")
    return run.metrics[name or run.main_metric]


def _scores(store: Store, runs: Sequence[Run], metric: str, by: str) -> Plot:
    if len(runs) == 1 and not metric:
        select_metric(runs[0])
        return plot_run_scores(runs[0])
    names = list(dict.fromkeys(metric or run.main_metric for run in runs))
    tasks: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        tasks.setdefault((run.task, run.version), []).append(run)
    groups = []
    for (task, version), group in tasks.items():
        title = f"{task} (version {version})"
        if len(names) > 1:
            title += f" · {group[0].main_metric}"
        rows = [ScoreRow(label, select_metric(run, metric)) for run, label in zip(group, _labels(group), strict=True)]
        groups.append(ScoreGroup(title, rows))
    return Scores(f"{names[0] if len(names) == 1 else 'scores'} with {INTERVAL}", groups, _sample_counts(runs))


def _curves(store: Store, runs: Sequence[Run], metric: str, by: str) -> Plot:
    for run in runs:
        select_metric(run, metric)
    return plot_curves(gather_curves([Report(run, store.url) for run in runs], by, metric))


def _passes(store: Store, runs: Sequence[Run], metric: str, by: str) -> Plot:
    lines, problems = [], set()
    for run, label in zip(runs, _labels(runs), strict=True):
        counts = list(count_passes(store.records(run)).values())
        if not counts:
            raise UsageError(f"Run {run.id} has no samples that passed or failed.")
        fewest = min(n for n, _ in counts)
        problems.add(len(counts))
        passes = estimates(counts, _select_ks(fewest))
        lines.append(CurveLine(label, [PlotPoint(k, score_mean(values)) for k, values in passes.items()]))
    if all(len(line.points) < 2 for line in lines):
        raise UsageError("There is one attempt per problem, and no curve: run with --samples or --epochs above 1.")
    several = f"{' to '.join(f'{n:,}' for n in dict.fromkeys((min(problems), max(problems))))} problems"
    who = f"{lines[0].label} · " if len(lines) == 1 else ""
    subtitle = f"{_task_names(runs)} · {who}{several}, with {INTERVAL}"
    return Curves("How often one of k attempts passes", "k", "pass@k", lines, (), subtitle)


def _select_ks(last: int) -> list[int]:
    """All k up to the last, or at most MAX_POINTS, evenly spaced on a logarithmic scale."""
    if last <= MAX_POINTS:
        return list(range(1, last + 1))
    return sorted({round(last ** (i / (MAX_POINTS - 1))) for i in range(MAX_POINTS)})


def _histograms(store: Store, runs: Sequence[Run], metric: str, by: str) -> Plot:
    histograms = []
    for run, label in zip(runs, _labels(runs), strict=True):
        values = store.columns(run).value
        scores = [value for value in values if value is not None]
        histograms.append(Histogram(label, scores, len(values) - len(scores)))
    if not any(histogram.scores for histogram in histograms):
        raise UsageError("Nothing to plot: these runs have no scores.")
    return Histograms("Distribution of scores", histograms, _task_names(runs))


def _latency(store: Store, runs: Sequence[Run], metric: str, by: str) -> Plot:
    spreads = []
    for run, label in zip(runs, _labels(runs), strict=True):
        spread = _spread(label, _output_times(store.records(run)))
        if spread is not None:
            spreads.append(spread)
    if not spreads:
        raise UsageError("Nothing to plot: these runs have no times, or all outputs came from the cache.")
    agents = all(run.config.get("agent") for run in runs)
    title = "Time of an episode" if agents else "Time of an output"
    return Spreads(title, spreads, "time", f"{_task_names(runs)}.")


def _output_times(records: Iterable[Record]) -> Lags:
    """The times of all outputs that did not come from the cache."""
    lags = Lags()
    for record in records:
        for output in record.outputs:
            if output.seconds > 0 and not output.cached:
                lags.add(round(output.seconds * NS_PER_SECOND))
    return lags


def _lags(store: Store, runs: Sequence[Run], metric: str, by: str) -> Plot:
    spreads = []
    for run, label in zip(runs, _labels(runs), strict=True):
        for kind, lags in gather_lags(store.records(run)).items():
            spread = _spread(kind if len(runs) == 1 else f"{kind} · {label}", lags)
            if spread is not None:
                spreads.append(spread)
    if not spreads:
        raise UsageError("Nothing to plot: these runs have no lags; only agents that act in real time do.")
    who = f" · {_labels(runs)[0]}" if len(runs) == 1 else ""
    return Spreads("Lags of all actions", spreads, "delay", f"{_task_names(runs)}{who}.")


def _spread(label: str, lags: Lags) -> Spread | None:
    median, late = lags.quantile(0.5), lags.quantile(0.95)
    if median is None or late is None:
        return None
    counts = {math.exp(bucket * WIDTH): n for bucket, n in lags.counts.items()}
    return Spread(label, counts, median, late, lags.longest)


def _labels(runs: Sequence[Run]) -> list[str]:
    """The candidate of each run, with as much of its task, options and id as makes it unique."""
    several = len({(run.task, run.version) for run in runs}) > 1
    names = [f"{run.task} · {run.candidate}" if several else run.candidate for run in runs]
    alike: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        alike.setdefault(name, []).append(i)
    for indices in alike.values():
        distinct = differing_options([runs[i] for i in indices])
        for i in indices if len(indices) > 1 else ():
            options = {key: value for key, value in result_options(runs[i]).items() if key in distinct}
            names[i] += f" ({format_options(options) or runs[i].id})"
    if len(set(names)) == len(names):
        return names
    return [f"{name} · {run.id}" for name, run in zip(names, runs, strict=True)]


def _task_names(runs: Sequence[Run]) -> str:
    tasks = dict.fromkeys(f"{run.task} (version {run.version})" for run in runs)
    return ", ".join(tasks) if len(tasks) <= 2 else f"{len(tasks)} tasks"


def _sample_counts(runs: Sequence[Run]) -> str:
    low, high = min(run.n for run in runs), max(run.n for run in runs)
    return f"{high:,} scored" + (" each" if len(runs) > 1 else "") if low == high else f"{low:,} to {high:,} scored"


KINDS: dict[str, Callable[[Store, Sequence[Run], str, str], Plot]] = {
    "scores": _scores,
    "curve": _curves,
    "passes": _passes,
    "histogram": _histograms,
    "latency": _latency,
    "lags": _lags,
}
