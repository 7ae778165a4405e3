"""Scores with their 95 % intervals, a row for each candidate, under the name of each exam."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from proctor.analysis.plots.drawing import SvgDrawing
from proctor.analysis.plots.head import PAD, Head, check_width, fit_height, fitting
from proctor.analysis.plots.lettering import text_width
from proctor.analysis.plots.scales import Linear, bounds_of, round_steps, score_text, written
from proctor.core.types import Metric, Run

_NARROW = 520  # below it, a name stands above its line instead of before it
_ROW, _NARROW_ROW, _LEAST_ROW, _LEAST_NARROW_ROW = 28.0, 42.0, 18.0, 36.0
_GROUP = 28.0
_AXIS = 26.0


class ScoreRow(Struct, frozen=True):
    label: str
    metric: Metric


class ScoreGroup(Struct, frozen=True):
    """Rows that belong together, such as the candidates of one exam."""

    title: str
    rows: Sequence[ScoreRow]


class Scores(Struct, frozen=True):
    title: str
    groups: Sequence[ScoreGroup]
    subtitle: str = ""

    def draw(self, width: int = 720, height: int | None = None) -> SvgDrawing:
        check_width(width)
        head = Head(self.title, self.subtitle)
        narrow = width < _NARROW
        rows = sum(len(group.rows) for group in self.groups)
        titles = sum(bool(group.title) for group in self.groups)
        least, usual = (_LEAST_NARROW_ROW, _NARROW_ROW) if narrow else (_LEAST_ROW, _ROW)
        around = head.height(width) + titles * _GROUP + _AXIS + PAD
        whole = fit_height(height, around + rows * least, around + rows * usual)
        row_height = (whole - around) / max(1, rows)

        drawing = SvgDrawing(width, whole, self.title, self._described())
        head.draw(drawing)
        ends = [x for group in self.groups for row in group.rows for x in drawable(row.metric) if x is not None]
        low, high = bounds_of(ends)
        steps = round_steps(low, high, 6)
        names = [row.label for group in self.groups for row in group.rows]
        values = [_written(row.metric) for group in self.groups for row in group.rows]
        before = 0.0 if narrow else min(max(map(text_width, names), default=0.0), 0.34 * width) + 14
        after = 0.0 if narrow else max((text_width(value) for value in values), default=0.0) + 14
        scale = Linear(steps[0], steps[-1], PAD + before + 6, width - PAD - after - 6)

        y = head.height(width)
        _draw_labels(drawing, scale, steps, whole - PAD - 4)
        for group in self.groups:
            if group.title:
                drawing.text(PAD, y + 18, group.title, "pp-strong", room=width - 2 * PAD)
                y += _GROUP
            if not narrow:
                _draw_grid(drawing, scale, steps, y, y + len(group.rows) * row_height)
            for row in group.rows:
                middle = y + row_height - (11 if narrow else row_height / 2)
                if narrow:
                    value = _written(row.metric)
                    _draw_grid(drawing, scale, steps, middle - 8, middle + 8)
                    drawing.text(width - PAD, y + row_height - 24, value, anchor="end", kind="pp-muted")
                    drawing.text(PAD, y + row_height - 24, row.label, room=width - 2 * PAD - text_width(value) - 14)
                else:
                    drawing.text(PAD, middle + 4, row.label, room=before - 14)
                    drawing.text(width - PAD, middle + 4, _written(row.metric), anchor="end", kind="pp-muted")
                _draw_metric(drawing, scale, middle, row)
                y += row_height
        return drawing

    def _described(self) -> str:
        said = [
            f"{group.title + ', ' if group.title else ''}{row.label}: {_written(row.metric)}"
            for group in self.groups
            for row in group.rows
        ]
        return "; ".join(said) + "."


def scores_of(run: Run) -> Scores:
    """Of one run: its metrics, and the first of them by group where the report has groups."""
    main = run.main_metric
    rows = [ScoreRow(name, metric) for name, metric in run.metrics.items() if name == main or _is_score(metric)]
    groups = [ScoreGroup("", rows)]
    for key, values in run.groups.items():
        found = [ScoreRow(value, metrics[main]) for value, metrics in values.items() if main in metrics]
        groups.append(ScoreGroup(f"{main} by {key}", found))
    title = f"{run.task} · {run.candidate}"
    return Scores(title, groups, f"version {run.version} · {run.n:,} scored, with 95\u00a0% interval")


def _is_score(metric: Metric) -> bool:
    low, value, high = drawable(metric)
    return low is not None and value is not None and high is not None and low >= 0 and high <= 1


def drawable(metric: Metric) -> list[float | None]:
    """Low end, value and high end, as far as they can be drawn."""
    return [x if x is not None and math.isfinite(x) else None for x in (metric.low, metric.value, metric.high)]


def _written(metric: Metric) -> str:
    low, value, high = drawable(metric)
    if value is None:
        return "nothing scored"
    if low is None or high is None:
        return score_text(value)
    return f"{score_text(value)}  [{score_text(low)}, {score_text(high)}]"


def _draw_grid(drawing: SvgDrawing, scale: Linear, steps: Sequence[float], top: float, bottom: float) -> None:
    for step in steps:
        drawing.line(scale.place(step), top, scale.place(step), bottom, "pp-grid")


def _draw_labels(drawing: SvgDrawing, scale: Linear, steps: Sequence[float], y: float) -> None:
    labels, places = [written(step) for step in steps], [scale.place(step) for step in steps]
    for i in fitting(labels, places):
        half = text_width(labels[i], "pp-small") / 2
        x = min(max(places[i], PAD / 2 + half), drawing.width - PAD / 2 - half)
        drawing.text(x, y, labels[i], "pp-small", anchor="middle")


def _draw_metric(drawing: SvgDrawing, scale: Linear, y: float, row: ScoreRow) -> None:
    low, value, high = drawable(row.metric)
    if low is not None and high is not None:
        drawing.interval(scale.place(low), y, scale.place(high), y, 0)
    if value is not None:
        hint = f"{row.label}: {_written(row.metric)}, n {row.metric.n:,}"
        drawing.marker(scale.place(value), y, 0, hint)
