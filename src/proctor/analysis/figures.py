"""From stored runs to plots: which kind says most about them, and what it needs of their records."""

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
from proctor.analysis.plots.scores import scores_of
from proctor.analysis.report import Report
from proctor.core.errors import UnknownNameError, UsageError
from proctor.core.options import differing_options, format_options, result_options
from proctor.core.types import Metric, Record, Run
from proctor.metrics.passing import count_passes, estimates
from proctor.metrics.statistics import score_mean
from proctor.store.store import Store

MOST_POINTS = 60  # of a line of pass@k; more cannot be told apart
NS_PER_SECOND = 1e9
INTERVAL = "95\u00a0% interval"


class Figure(Struct, frozen=True):
    kind: str
    why: str  # this kind was chosen; nothing when it was asked for
    plot: Plot


def make_figure(store: Store, runs: Sequence[Run], kind: str = "", metric: str = "", by: str = "") -> Figure:
    """A plot of these runs, of the kind that is asked for or that suits them."""
    if not runs:
        raise UsageError("No run to plot.")
    if kind and kind not in KINDS:
        raise UnknownNameError("kind of plot", kind, KINDS, f"Kinds: {', '.join(KINDS)}.")
    if by and kind not in ("", "curve"):
        raise UsageError(f"A plot of {kind} goes by no setting; a curve does.")
    if metric and kind in ("passes", "histogram", "latency", "lags"):
        raise UsageError(f"A plot of {kind} is not of a metric; scores and curves are.")
    runs = list({run.id: run for run in runs}.values())
    chosen, why = (kind, "") if kind else _choose(runs, metric, by)
    return Figure(chosen, why, KINDS[chosen](store, runs, metric, by))


def _choose(runs: Sequence[Run], metric: str, by: str) -> tuple[str, str]:
    if by:
        return "curve", f"by {by}"
    if len(runs) > 1:
        try:
            return "curve", f"the runs differ in {swept_setting(runs)}"
        except UsageError:
            pass
    tries = [run.config.get("samples", 1) * run.config.get("epochs", 1) for run in runs]
    if not metric and all("pass@1" in run.metrics for run in runs) and min(tries) > 1:
        return "passes", f"there are {min(tries)} tries at each problem"
    return "scores", "it suits all runs"


def metric_of(run: Run, name: str = "") -> Metric:
    """The metric of this name, or the main one."""
    if not run.metrics:
        raise UsageError(f"Run {run.id} has no metrics: {run.reason or f'it is {run.status}'}.")
    if name and name not in run.metrics:
        raise UnknownNameError("metric", name, run.metrics, f"Run {run.id} has: {', '.join(run.metrics)}.")
    return run.metrics[name or run.main_metric]


def _scores(store: Store, runs: Sequence[Run], metric: str, by: str) -> Plot:
    if len(runs) == 1 and not metric:
        metric_of(runs[0])
        return scores_of(runs[0])
    names = list(dict.fromkeys(metric or run.main_metric for run in runs))
    exams: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        exams.setdefault((run.task, run.version), []).append(run)
    groups = []
    for (task, version), of_exam in exams.items():
        title = f"{task} (version {version})"
        if len(names) > 1:
            title += f" · {of_exam[0].main_metric}"
        rows = [ScoreRow(label, metric_of(run, metric)) for run, label in zip(of_exam, _labels(of_exam), strict=True)]
        groups.append(ScoreGroup(title, rows))
    return Scores(f"{names[0] if len(names) == 1 else 'scores'} with {INTERVAL}", groups, _samples(runs))


def _curves(store: Store, runs: Sequence[Run], metric: str, by: str) -> Plot:
    for run in runs:
        metric_of(run, metric)
    return plot_curves(gather_curves([Report(run, store.url) for run in runs], by, metric))


def _passes(store: Store, runs: Sequence[Run], metric: str, by: str) -> Plot:
    lines, problems = [], set()
    for run, label in zip(runs, _labels(runs), strict=True):
        counts = list(count_passes(store.records(run)).values())
        if not counts:
            raise UsageError(f"Run {run.id} has nothing that passed or failed.")
        fewest = min(n for n, _ in counts)
        problems.add(len(counts))
        found = estimates(counts, _spaced(fewest))
        lines.append(CurveLine(label, [PlotPoint(k, score_mean(values)) for k, values in found.items()]))
    if all(len(line.points) < 2 for line in lines):
        raise UsageError("There is one try at each problem, and no curve: run with --samples or --epochs above 1.")
    several = f"{' to '.join(f'{n:,}' for n in dict.fromkeys((min(problems), max(problems))))} problems"
    who = f"{lines[0].label} · " if len(lines) == 1 else ""
    subtitle = f"{_exams(runs)} · {who}{several}, with {INTERVAL}"
    return Curves("How often one of k tries passes", "k", "pass@k", lines, (), subtitle)


def _spaced(last: int) -> list[int]:
    """All numbers up to the last, or as many as can be told apart."""
    if last <= MOST_POINTS:
        return list(range(1, last + 1))
    return sorted({round(last ** (i / (MOST_POINTS - 1))) for i in range(MOST_POINTS)})


def _histograms(store: Store, runs: Sequence[Run], metric: str, by: str) -> Plot:
    found = []
    for run, label in zip(runs, _labels(runs), strict=True):
        values = store.columns(run).value
        scores = [value for value in values if value is not None]
        found.append(Histogram(label, scores, len(values) - len(scores)))
    if not any(histogram.scores for histogram in found):
        raise UsageError("Nothing to plot: these runs have no scores.")
    return Histograms("How often each score was given", found, _exams(runs))


def _latency(store: Store, runs: Sequence[Run], metric: str, by: str) -> Plot:
    found = [_spread(label, _answers(store.records(run))) for run, label in zip(runs, _labels(runs), strict=True)]
    spreads = [spread for spread in found if spread is not None]
    if not spreads:
        raise UsageError("Nothing to plot: no answer of these runs took any time, or all came from the cache.")
    whole = "Time of an episode" if all(run.config.get("agent") for run in runs) else "Time of an answer"
    return Spreads(whole, spreads, "time", f"{_exams(runs)}.")


def _answers(records: Iterable[Record]) -> Lags:
    """How long the answers took that were not remembered from before."""
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
        raise UsageError("Nothing to plot: these runs have no lags, which only agents that play in real time have.")
    who = f" · {_labels(runs)[0]}" if len(runs) == 1 else ""
    return Spreads("Lags of all actions", spreads, "delay", f"{_exams(runs)}{who}.")


def _spread(label: str, lags: Lags) -> Spread | None:
    median, late = lags.quantile(0.5), lags.quantile(0.95)
    if median is None or late is None:
        return None
    return Spread(label, {math.exp(place * WIDTH): n for place, n in lags.counts.items()}, median, late, lags.longest)


def _labels(runs: Sequence[Run]) -> list[str]:
    """Who sat the exam; with the exam, and what else tells the runs apart, where that is not enough."""
    several = len({(run.task, run.version) for run in runs}) > 1
    names = [f"{run.task} · {run.candidate}" if several else run.candidate for run in runs]
    alike: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        alike.setdefault(name, []).append(i)
    for places in alike.values():
        apart = differing_options([runs[i] for i in places])
        for i in places if len(places) > 1 else ():
            found = {key: value for key, value in result_options(runs[i]).items() if key in apart}
            names[i] += f" ({format_options(found) or runs[i].id})"
    return names if len(set(names)) == len(names) else [f"{n} · {run.id}" for n, run in zip(names, runs, strict=True)]


def _exams(runs: Sequence[Run]) -> str:
    exams = dict.fromkeys(f"{run.task} (version {run.version})" for run in runs)
    return ", ".join(exams) if len(exams) <= 2 else f"{len(exams)} exams"


def _samples(runs: Sequence[Run]) -> str:
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
