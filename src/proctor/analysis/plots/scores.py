"""Scores with 95 % intervals, a row for each candidate, grouped by task."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from proctor.analysis.plots.drawing import SvgDrawing
from proctor.analysis.plots.header import PAD, PlotHeader, check_width, fit_height, select_labels
from proctor.analysis.plots.scales import Linear, axis_bounds, format_number, format_score, round_steps
from proctor.analysis.plots.text_layout import text_width
from proctor.core.types import Metric, Run

_NARROW = 520  # below this width, labels stand above their rows
_ROW, _NARROW_ROW, _MIN_ROW, _MIN_NARROW_ROW = 28.0, 42.0, 18.0, 36.0
_GROUP = 28.0
_AXIS = 26.0


class ScoreRow(Struct, frozen=True):
    label: str
    metric: Metric


class ScoreGroup(Struct, frozen=True):
    """Rows under one title, such as the candidates of one task."""

    title: str
    rows: Sequence[ScoreRow]


class Scores(Struct, frozen=True):
    title: str
    groups: Sequence[ScoreGroup]
    subtitle: str = ""

    def draw(self, width: int = 720, height: int | None = None) -> SvgDrawing:
        check_width(width)
        header = PlotHeader(self.title, self.subtitle)
        narrow = width < _NARROW
        rows = sum(len(group.rows) for group in self.groups)
        titles = sum(bool(group.title) for group in self.groups)
        minimum, default = (_MIN_NARROW_ROW, _NARROW_ROW) if narrow else (_MIN_ROW, _ROW)
        fixed = header.height(width) + titles * _GROUP + _AXIS + PAD
        total_height = fit_height(height, fixed + rows * minimum, fixed + rows * default)
        row_height = (total_height - fixed) / max(1, rows)

        drawing = SvgDrawing(width, total_height, self.title, self._description())
        header.draw(drawing)
        ends = [x for group in self.groups for row in group.rows for x in finite_bounds(row.metric) if x is not None]
        low, high = axis_bounds(ends)
        steps = round_steps(low, high, 6)
        names = [row.label for group in self.groups for row in group.rows]
        values = [_format_metric(row.metric) for group in self.groups for row in group.rows]
        before = 0.0 if narrow else min(max(map(text_width, names), default=0.0), 0.34 * width) + 14
        after = 0.0 if narrow else max((text_width(value) for value in values), default=0.0) + 14
        scale = Linear(steps[0], steps[-1], PAD + before + 6, width - PAD - after - 6)

        y = header.height(width)
        _draw_labels(drawing, scale, steps, total_height - PAD - 4)
        for group in self.groups:
            if group.title:
                drawing.text(PAD, y + 18, group.title, "pp-strong", max_width=width - 2 * PAD)
                y += _GROUP
            if not narrow:
                _draw_grid(drawing, scale, steps, y, y + len(group.rows) * row_height)
            for row in group.rows:
                middle = y + row_height - (11 if narrow else row_height / 2)
                if narrow:
                    value = _format_metric(row.metric)
                    _draw_grid(drawing, scale, steps, middle - 8, middle + 8)
                    drawing.text(width - PAD, y + row_height - 24, value, anchor="end", kind="pp-muted")
                    drawing.text(
                        PAD, y + row_height - 24, row.label, max_width=width - 2 * PAD - text_width(value) - 14
                    )
                else:
                    drawing.text(PAD, middle + 4, row.label, max_width=before - 14)
                    drawing.text(width - PAD, middle + 4, _format_metric(row.metric), anchor="end", kind="pp-muted")
                _draw_metric(drawing, scale, middle, row)
                y += row_height
        return drawing

    def _description(self) -> str:
        parts = [
            f"{group.title + ', ' if group.title else ''}{row.label}: {_format_metric(row.metric)}"
            for group in self.groups
            for row in group.rows
        ]
        return "; ".join(parts) + "."


def plot_run_scores(run: Run) -> Scores:
    """The metrics of one run, and its main metric by group."""
    main = run.main_metric
    rows = [ScoreRow(name, metric) for name, metric in run.metrics.items() if name == main or _is_score(metric)]
    groups = [ScoreGroup("", rows)]
    for key, values in run.groups.items():
        members = [ScoreRow(value, metrics[main]) for value, metrics in values.items() if main in metrics]
        groups.append(ScoreGroup(f"{main} by {key}", members))
    title = f"{run.task} · {run.candidate}"
    return Scores(title, groups, f"version {run.version} · {run.n:,} scored, with 95\u00a0% interval")


def _is_score(metric: Metric) -> bool:
    low, value, high = finite_bounds(metric)
    return low is not None and value is not None and high is not None and low >= 0 and high <= 1


def finite_bounds(metric: Metric) -> list[float | None]:
    """Low end, value and high end; None for what is missing or infinite."""
    return [x if x is not None and math.isfinite(x) else None for x in (metric.low, metric.value, metric.high)]


def _format_metric(metric: Metric) -> str:
    low, value, high = finite_bounds(metric)
    if value is None:
        return "nothing scored"
    if low is None or high is None:
        return format_score(value)
    return f"{format_score(value)}  [{format_score(low)}, {format_score(high)}]"


def _draw_grid(drawing: SvgDrawing, scale: Linear, steps: Sequence[float], top: float, bottom: float) -> None:
    for step in steps:
        drawing.line(scale.position(step), top, scale.position(step), bottom, "pp-grid")


def _draw_labels(drawing: SvgDrawing, scale: Linear, steps: Sequence[float], y: float) -> None:
    labels, positions = [format_number(step) for step in steps], [scale.position(step) for step in steps]
    for i in select_labels(labels, positions):
        half = text_width(labels[i], "pp-small") / 2
        x = min(max(positions[i], PAD / 2 + half), drawing.width - PAD / 2 - half)
        drawing.text(x, y, labels[i], "pp-small", anchor="middle")


def _draw_metric(drawing: SvgDrawing, scale: Linear, y: float, row: ScoreRow) -> None:
    low, value, high = finite_bounds(row.metric)
    if low is not None and high is not None:
        drawing.interval(scale.position(low), y, scale.position(high), y, 0)
    if value is not None:
        hint = f"{row.label}: {_format_metric(row.metric)}, n {row.metric.n:,}"
        drawing.marker(scale.position(value), y, 0, hint)
