"""The curve of a task: one metric over the values of one setting, as text and as JSON."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from proctor.report import Report
from proctor.types import Metric, Status

WIDTH = 31  # of the drawing: with the figures beside it, a line fits a terminal of 80 columns
MARKS = ("─", "┊", "●")  # interval, chance, metric
ASCII_MARKS = ("-", ":", "o")


class Point(Struct, frozen=True):
    value: Any
    run: str
    status: Status
    n: int
    metric: Metric
    chance: float | None  # how often a guess among the possible answers is right; None where the set is open


class Curve:
    """What came out of a sweep. Prints as a table with a drawing; its points are ordinary runs."""

    def __init__(self, setting: str, reports: Sequence[Report], metric: str = "") -> None:
        """The curve of the metric with this name, by default the first that the runs have."""
        self.setting = setting
        self.reports = list(reports)
        self.task = reports[0].run.task
        self.candidate = reports[0].run.candidate
        self.metric = metric or next(iter(reports[0].metrics), "")
        self.points = [
            _point(report, setting, report.metrics[self.metric]) for report in reports if self.metric in report.metrics
        ]

    def to_dict(self) -> dict[str, Any]:
        """The shape that `--json` prints."""
        names = ("task", "candidate", "metric", "setting", "points")
        built: dict[str, Any] = msgspec.to_builtins({name: getattr(self, name) for name in names})
        return built

    def __str__(self) -> str:
        rows = [_figures(point) for point in self.points]
        titles = [self.setting, "n", self.metric, "95 % interval", "chance"]
        shown = [column for column in zip(titles, *rows, strict=True) if any(column[1:])]
        aligned = [[cell.rjust(max(map(len, column))) for cell in column] for column in shown]
        drawing = _draw(self.points)
        lines = ["  ".join(["", *cells]).rstrip() for cells in zip(*aligned, drawing, strict=True)]
        return "\n".join([f"{self.task} · {self.candidate} · {self.metric} by {self.setting}", *lines])

    __repr__ = __str__


def trace_curves(setting: str, reports: Iterable[Report]) -> list[Curve]:
    """A curve for each task and metric of the runs, which come task by task."""
    curves = []
    for _, group in groupby(reports, key=lambda report: report.run.task):
        of_task = list(group)
        names = dict.fromkeys(name for report in of_task for name in report.metrics)
        curves += [Curve(setting, of_task, name) for name in names]
    return curves


def _point(report: Report, setting: str, metric: Metric) -> Point:
    run = report.run
    return Point(run.config["settings"][setting], run.id, run.status, run.n, metric, _chance(report))


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


def _figures(point: Point) -> list[str]:
    metric, chance = point.metric, point.chance
    return [
        str(point.value),
        f"{point.n:,}",
        "–" if metric.value is None else f"{metric.value:.3f}",
        "" if metric.low is None or metric.high is None else f"{metric.low:.3f} – {metric.high:.3f}",
        "" if chance is None else f"{chance:.3f}",
    ]


def _draw(points: Sequence[Point]) -> list[str]:
    """A line for each point under a line with the ends of the scale, which are 0 and 1 unless a metric goes beyond."""
    reached = [x for point in points for x in _bounds(point) if x is not None]
    start, end = min([0.0, *reached]), max([1.0, *reached])

    def column(x: float) -> int:
        return round((x - start) / (end - start) * (WIDTH - 1))

    interval, guess, dot = MARKS if _can_be_shown("".join(MARKS)) else ASCII_MARKS
    lines = [f"{start:g}".ljust(WIDTH - len(f"{end:g}")) + f"{end:g}"]
    for point in points:
        cells = [" "] * WIDTH
        low, value, high = _bounds(point)
        if low is not None and high is not None:
            first, last = column(low), column(high) + 1
            cells[first:last] = interval * (last - first)
        if point.chance is not None:
            cells[column(point.chance)] = guess
        if value is not None:
            cells[column(value)] = dot
        lines.append("".join(cells) + ("" if point.status == "done" else f"  {point.status}"))
    return lines


def _bounds(point: Point) -> list[float | None]:
    """Low end, value and high end, as far as they can be drawn."""
    numbers = (point.metric.low, point.metric.value, point.metric.high)
    return [x if x is not None and math.isfinite(x) else None for x in numbers]


def _can_be_shown(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True
