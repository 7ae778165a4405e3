"""Lines with 95 % intervals: a metric over a setting, pass@k over k."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from proctor.analysis.plots.drawing import SvgDrawing
from proctor.analysis.plots.header import (
    CHANCE_SERIES,
    LABEL_GAP,
    PAD,
    LegendEntry,
    PlotHeader,
    check_width,
    fit_height,
    select_labels,
)
from proctor.analysis.plots.scales import (
    Linear,
    Logarithmic,
    Scale,
    axis_bounds,
    format_number,
    format_score,
    round_powers,
    round_steps,
)
from proctor.analysis.plots.scores import finite_bounds
from proctor.analysis.plots.style import SERIES
from proctor.analysis.plots.text_layout import shorten, text_width
from proctor.core.types import Metric

_NAME, _MIN_HEIGHT, _AXIS = 24.0, 120.0, 40.0  # heights: label above the plot, plot, axis below
_WIDE_RANGE = 25  # largest / smallest value from which the axis is logarithmic
_MAX_BANDS = 3  # with more lines, the bands are fainter
_DENSE = 16  # the least distance of points that all have markers


class PlotPoint(Struct, frozen=True):
    x: Any  # a number, or a name
    metric: Metric


class CurveLine(Struct, frozen=True):
    label: str
    points: Sequence[PlotPoint]


class Curves(Struct, frozen=True):
    title: str
    x: str  # the name of the values
    y: str
    lines: Sequence[CurveLine]
    chance: Sequence[tuple[Any, float]] = ()  # value, accuracy of a guess
    subtitle: str = ""

    def draw(self, width: int = 720, height: int | None = None) -> SvgDrawing:
        check_width(width)
        legend = [LegendEntry(line.label, i) for i, line in enumerate(self.lines)] if len(self.lines) > 1 else []
        if self.chance:
            legend.append(LegendEntry("chance", CHANCE_SERIES))
        header = PlotHeader(self.title, self.subtitle, legend)
        fixed = header.height(width) + _NAME + _AXIS + PAD
        total_height = fit_height(height, fixed + _MIN_HEIGHT, fixed + min(300.0, max(190.0, 0.42 * width)))
        drawing = SvgDrawing(width, total_height, self.title, self._description())
        header.draw(drawing)

        top, bottom = header.height(width) + _NAME, total_height - PAD - _AXIS
        steps = self._steps()
        left = PAD + max(text_width(format_number(step), "pp-small") for step in steps) + 10
        right = width - PAD - 8
        y_axis = Linear(steps[0], steps[-1], bottom, top)
        drawing.text(PAD, top - 12, self.y, "pp-small", max_width=width - 2 * PAD)
        for step in steps:
            y = y_axis.position(step)
            drawing.line(left, y, right, y, "pp-axis" if step == steps[0] else "pp-grid")
            drawing.text(left - 8, y + 4, format_number(step), "pp-small", anchor="end")

        x_axis = _XAxis([point.x for line in self.lines for point in line.points], left + 10, right - 10)
        self._draw_values(drawing, x_axis, bottom)
        if x_axis.numbers:
            for series, line in enumerate(self.lines):
                _draw_band(drawing, x_axis, y_axis, line, series, faint=len(self.lines) > _MAX_BANDS)
        chance = sorted((x_axis.position(x), y_axis.position(share)) for x, share in self.chance)
        if len(chance) == 1:  # one point becomes a horizontal line
            chance = [(x, chance[0][1]) for x in (left, right)]
        drawing.path(chance, "pp-dashed")
        for series, line in enumerate(self.lines):
            # Names have no order: their points stand side by side, without a line.
            offset = 0.0 if x_axis.numbers else (series - (len(self.lines) - 1) / 2) * min(14.0, 60 / len(self.lines))
            _draw_line(drawing, x_axis, y_axis, line, series, self.y, offset)
        return drawing

    def _steps(self) -> list[float]:
        ends = [x for line in self.lines for point in line.points for x in finite_bounds(point.metric) if x is not None]
        return round_steps(*axis_bounds([*ends, *(share for _, share in self.chance)]), 6)

    def _draw_values(self, drawing: SvgDrawing, x_axis: _XAxis, bottom: float) -> None:
        values = x_axis.values
        if len(values) > 12 and x_axis.numbers:
            low, high = float(values[0]), float(values[-1])
            steps = round_powers(low, high, 9) if x_axis.logarithmic else round_steps(low, high, 8)
            values = [low, *(step for step in steps if low < step <= high)]
        max_width = max((x_axis.end - x_axis.start) / max(1, len(values)) - LABEL_GAP - 1, 18.0)
        names = [_x_label(value) for value in values]
        labels = names if x_axis.numbers else [shorten(name, max_width, "pp-small") for name in names]
        positions = [x_axis.position(value) for value in values]
        for i in select_labels(labels, positions):
            half = text_width(labels[i], "pp-small") / 2
            x = min(max(positions[i], PAD / 2 + half), drawing.width - PAD / 2 - half)
            drawing.line(positions[i], bottom, positions[i], bottom + 4, "pp-axis")
            drawing.text(
                x, bottom + 18, names[i], "pp-small", anchor="middle", max_width=0 if x_axis.numbers else max_width
            )
        middle = (x_axis.start + x_axis.end) / 2
        max_width = 2 * min(middle - PAD, drawing.width - PAD - middle)
        drawing.text(middle, bottom + 38, self.x, anchor="middle", max_width=max_width)

    def _description(self) -> str:
        parts = []
        for line in self.lines:
            points = ", ".join(f"{_x_label(p.x)}: {_format_metric(p.metric)}" for p in line.points)
            parts.append(f"{line.label}, {self.y} by {self.x}: {points}")
        return "; ".join(parts) + "."


class _XAxis:
    """The positions of the values: numbers on a scale, names side by side in their order."""

    def __init__(self, values: Sequence[Any], start: float, end: float) -> None:
        self.start, self.end = start, end
        self.logarithmic = False
        self.numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in values)
        if self.numbers:
            self.values: list[Any] = sorted(set(values))
            self._scale = _numeric(self.values, start, end)
            self.logarithmic = isinstance(self._scale, Logarithmic)
            return
        self.values = list({_key(x): x for x in values}.values())
        self._order = {_key(x): i for i, x in enumerate(self.values)}
        inset = (end - start) / (2 * len(self.values))
        self._scale = Linear(0, len(self.values) - 1, start + inset, end - inset)

    def position(self, x: Any) -> float:
        return self._scale.position(float(x) if self.numbers else self._order[_key(x)])


def _numeric(values: list[Any], start: float, end: float) -> Scale:
    low, high = (float(values[0]), float(values[-1])) if values else (0.0, 1.0)
    if len(values) > 2 and low > 0 and high / low >= _WIDE_RANGE:
        return Logarithmic(low, high, start, end)
    return Linear(low, high, start, end)


def _key(x: Any) -> str:
    return json.dumps(x, ensure_ascii=False)


def _x_label(x: Any) -> str:
    if isinstance(x, int | float) and not isinstance(x, bool):
        return format_number(float(x))
    return x if isinstance(x, str) else _key(x)


def _format_metric(metric: Metric) -> str:
    low, value, high = finite_bounds(metric)
    if value is None:
        return "nothing scored"
    interval = "" if low is None or high is None else f" [{format_score(low)}, {format_score(high)}]"
    return f"{format_score(value)}{interval}"


def _draw_band(
    drawing: SvgDrawing, x_axis: _XAxis, y_axis: Linear, line: CurveLine, series: int, *, faint: bool
) -> None:
    lower, upper = [], []
    for point in sorted(line.points, key=lambda point: x_axis.position(point.x)):
        low, _, high = finite_bounds(point.metric)
        if low is not None and high is not None:
            lower.append((x_axis.position(point.x), y_axis.position(low)))
            upper.append((x_axis.position(point.x), y_axis.position(high)))
    if len(lower) > 1:
        kind = "pp-faint" if faint else "pp-band"
        drawing.path([*upper, *reversed(lower)], f"{kind} pp-fill-{series % SERIES}", closed=True)


def _draw_line(
    drawing: SvgDrawing, x_axis: _XAxis, y_axis: Linear, line: CurveLine, series: int, name: str, offset: float
) -> None:
    positions = []
    for point in sorted(line.points, key=lambda point: x_axis.position(point.x)):
        value = finite_bounds(point.metric)[1]
        if value is not None:
            positions.append((x_axis.position(point.x) + offset, y_axis.position(value), point))
    if x_axis.numbers:
        drawing.path([(x, y) for x, y, _ in positions], f"pp-line pp-stroke-{series % SERIES}")
    dense = len(positions) > 2 and (x_axis.end - x_axis.start) / len(positions) < _DENSE
    for x, y, point in (positions[0], positions[-1]) if dense else positions:
        low, _, high = finite_bounds(point.metric)
        if low is not None and high is not None and (len(positions) == 1 or not x_axis.numbers):
            drawing.interval(x, y_axis.position(low), x, y_axis.position(high), series)
        hint = f"{line.label}, {_x_label(point.x)}: {name} {_format_metric(point.metric)}, n {point.metric.n:,}"
        drawing.marker(x, y, series, hint, size=4.5)
