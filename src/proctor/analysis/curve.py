"""Curves of a task: one metric over the values of one setting, as text and as JSON."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from proctor.analysis.report import Report, html_table
from proctor.core.errors import UsageError
from proctor.core.options import differing_options, format_options, result_options
from proctor.core.types import Metric, Run, Status

if TYPE_CHECKING:
    from proctor.analysis.plots import Curves

WIDTH = 31  # of the drawing: with the table beside it, a line fits a terminal of 80 columns
MARKS = ("─", "┊", "●")  # interval, chance, metric
ASCII_MARKS = ("-", ":", "o")
# Options that make a task no harder.
_SAMPLE_COUNT_OPTIONS = frozenset({"limit", "limit_start", "seed", "epochs", "samples"})


class CurvePoint(Struct, frozen=True):
    value: Any
    run: str
    status: Status
    n: int
    metric: Metric
    chance: float | None  # accuracy of a guess among the choices; None if a sample has no choices


class Curve:
    """The result of a sweep: prints as a table with a drawing. Each point is a run."""

    def __init__(self, setting: str, reports: Sequence[Report], metric: str = "", label: str = "") -> None:
        """The metric defaults to the main metric of the first run."""
        self.setting = setting
        self.label = label or reports[0].run.candidate  # its name in a plot of several curves
        self.reports = list(reports)
        self.task = reports[0].run.task
        self.candidate = reports[0].run.candidate
        self.metric = metric or reports[0].run.main_metric
        self.points = [
            _point(report, setting, report.metrics[self.metric]) for report in reports if self.metric in report.metrics
        ]

    def to_dict(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        names = ("task", "candidate", "metric", "setting", "points")
        built: dict[str, Any] = msgspec.to_builtins({name: getattr(self, name) for name in names})
        return built

    def __str__(self) -> str:
        rows = [_cells(point) for point in self.points]
        titles = [self.setting, "n", self.metric, "95 % interval", "chance"]
        columns = [column for column in zip(titles, *rows, strict=True) if any(column[1:])]
        aligned = [[cell.rjust(max(map(len, column))) for cell in column] for column in columns]
        drawing = _draw(self.points)
        lines = ["  ".join(["", *cells]).rstrip() for cells in zip(*aligned, drawing, strict=True)]
        return "\n".join([f"{self.task} · {self.candidate} · {self.metric} by {self.setting}", *lines])

    __repr__ = __str__

    def plot(self) -> Curves:
        return plot_curves([self])

    def _repr_html_(self) -> str:
        """A table with a plot, for notebooks."""
        rows = [_cells(point) for point in self.points]
        titles = [self.setting, "n", self.metric, "95 % interval", "chance"]
        table = html_table(f"{self.task} · {self.candidate} · {self.metric} by {self.setting}", titles, rows)
        return table + (self.plot().draw(560).svg() if self.points else "")


def plot_curves(curves: Sequence[Curve]) -> Curves:
    """Plots curves of one metric over one setting; with chance, if they are of one task."""
    from proctor.analysis.plots import CurveLine, Curves, PlotPoint

    first = curves[0]
    lines = [
        CurveLine(curve.label, [PlotPoint(point.value, point.metric) for point in curve.points]) for curve in curves
    ]
    points = [point for curve in curves for point in curve.points]
    alike = points if len({curve.task for curve in curves}) == 1 else []
    chance = {_key(point.value): (point.value, point.chance) for point in alike if point.chance is not None}
    tasks = list(dict.fromkeys(f"{c.task} (version {c.reports[0].run.version})" for c in curves))
    numbers = sorted({point.n for point in points})
    subtitle = " · ".join(
        [
            ", ".join(tasks) if len(tasks) < 3 else f"{len(tasks)} tasks",
            *([first.label] if len(curves) == 1 else []),
            f"{' to '.join(f'{n:,}' for n in dict.fromkeys((numbers[0], numbers[-1])))} scored with 95\u00a0% interval",
        ]
    )
    return Curves(
        f"{first.metric} by {first.setting}", first.setting, first.metric, lines, list(chance.values()), subtitle
    )


def _key(value: Any) -> bytes:
    """A hashable key for the value of a setting, which may be a list."""
    return msgspec.json.encode(value)


def trace_curves(setting: str, reports: Iterable[Report]) -> list[Curve]:
    """A curve for each task and metric of the runs, which are grouped by task."""
    curves: list[Curve] = []
    for _, group in groupby(reports, key=lambda report: report.run.task):
        of_task = list(group)
        names = dict.fromkeys(name for report in of_task for name in report.metrics)
        curves += [Curve(setting, of_task, name) for name in names]
    return curves


def gather_curves(reports: Sequence[Report], setting: str = "", metric: str = "") -> list[Curve]:
    """Curves from stored runs: one for all runs that differ only in the setting.

    The setting defaults to the one in which runs of the same task and candidate differ. Of
    several runs with the same options, the newest counts.
    """
    setting = setting or swept_setting([report.run for report in reports])
    lines: dict[str, list[Report]] = {}
    for report in sorted(reports, key=lambda report: report.run.created):
        if setting not in result_options(report.run):
            known = ", ".join(report.run.config["settings"]) or "none"
            raise UsageError(f"Run {report.run.id} of {report.run.task} has no setting {setting!r}; it has: {known}.")
        lines.setdefault(_line_key(setting, report.run), []).append(report)
    if all(len({_key(result_options(report.run)[setting]) for report in line}) == 1 for line in lines.values()):
        raise UsageError(f"No two of these runs differ only in {setting}: a curve needs at least two points.")
    names = _labels([line[0].run for line in lines.values()], setting)
    return [
        Curve(setting, _sort_points(line, setting), metric, name)
        for line, name in zip(lines.values(), names, strict=True)
    ]


def swept_setting(runs: Sequence[Run]) -> str:
    """The one setting in which runs of the same task and candidate differ."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.task, run.version, run.candidate), []).append(run)
    names = list(dict.fromkeys(name for group in groups.values() for name in differing_options(group)))
    if set(names) <= _SAMPLE_COUNT_OPTIONS:
        raise UsageError("These runs differ in no setting: a curve needs runs of one task and candidate that do.")
    if len(names) > 1:
        raise UsageError(f"These runs differ in {', '.join(names)}: choose one for the curve, as in --by {names[0]}.")
    return names[0]


def _line_key(setting: str, run: Run) -> str:
    others = {name: value for name, value in result_options(run).items() if name != setting}
    return msgspec.json.encode([run.task, run.version, run.candidate, others], order="sorted").decode()


def _labels(runs: Sequence[Run], setting: str) -> list[str]:
    """A label for each line: as short as the other lines allow."""
    several = len({(run.task, run.version) for run in runs}) > 1
    versions = Counter(task for task, _ in {(run.task, run.version) for run in runs})
    uses = Counter((run.task, run.version, run.candidate) for run in runs)
    distinct = [name for name in differing_options(runs) if name != setting]
    names = []
    for run in runs:
        task = f"{run.task} (version {run.version})" if versions[run.task] > 1 else run.task
        name = f"{task} · {run.candidate}" if several else run.candidate
        if uses[run.task, run.version, run.candidate] > 1:
            name += (
                f" ({format_options({key: value for key, value in result_options(run).items() if key in distinct})})"
            )
        names.append(name)
    return names


def _sort_points(reports: Sequence[Report], setting: str) -> list[Report]:
    """The newest run for each value: numbers sorted, other values in the order of the runs."""
    newest = {_key(result_options(report.run)[setting]): report for report in reports}
    values = [result_options(report.run)[setting] for report in newest.values()]
    if all(isinstance(value, int | float) for value in values):
        return sorted(newest.values(), key=lambda report: float(result_options(report.run)[setting]))
    return list(newest.values())


def _point(report: Report, setting: str, metric: Metric) -> CurvePoint:
    run = report.run
    return CurvePoint(result_options(run)[setting], run.id, run.status, run.n, metric, _chance(report))


def _chance(report: Report) -> float | None:
    total, n = 0.0, 0
    for record in report.records():
        if record.score is None:
            continue
        if not record.sample.choices:
            return None
        total += 1 / len(record.sample.choices)
        n += 1
    return total / n if n else None


def _cells(point: CurvePoint) -> list[str]:
    metric, chance = point.metric, point.chance
    return [
        str(point.value),
        f"{point.n:,}",
        "–" if metric.value is None else f"{metric.value:.3f}",
        "" if metric.low is None or metric.high is None else f"{metric.low:.3f} – {metric.high:.3f}",
        "" if chance is None else f"{chance:.3f}",
    ]


def _draw(points: Sequence[CurvePoint]) -> list[str]:
    """A line with the ends of the scale, then a line for each point. The scale includes 0 and 1."""
    bounds = [x for point in points for x in _bounds(point) if x is not None]
    start, end = min([0.0, *bounds]), max([1.0, *bounds])

    def column(x: float) -> int:
        return round((x - start) / (end - start) * (WIDTH - 1))

    interval, chance, dot = MARKS if _is_encodable("".join(MARKS)) else ASCII_MARKS
    lines = [f"{start:g}".ljust(WIDTH - len(f"{end:g}")) + f"{end:g}"]
    for point in points:
        cells = [" "] * WIDTH
        low, value, high = _bounds(point)
        if low is not None and high is not None:
            first, last = column(low), column(high) + 1
            cells[first:last] = interval * (last - first)
        if point.chance is not None:
            cells[column(point.chance)] = chance
        if value is not None:
            cells[column(value)] = dot
        lines.append("".join(cells) + ("" if point.status == "done" else f"  {point.status}"))
    return lines


def _bounds(point: CurvePoint) -> list[float | None]:
    """Low end, value and high end; None for what is missing or infinite."""
    numbers = (point.metric.low, point.metric.value, point.metric.high)
    return [x if x is not None and math.isfinite(x) else None for x in numbers]


def _is_encodable(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
