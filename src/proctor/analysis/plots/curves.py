"""Lines with their 95 % intervals: a metric over a setting, pass@k over k."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from proctor.analysis.plots.drawing import SvgDrawing
from proctor.analysis.plots.head import APART, GUESS, PAD, Head, LegendEntry, check_width, fit_height, fitting
from proctor.analysis.plots.lettering import shorten, text_width
from proctor.analysis.plots.scales import (
    Linear,
    Logarithmic,
    Scale,
    bounds_of,
    round_powers,
    round_steps,
    score_text,
    written,
)
from proctor.analysis.plots.scores import drawable
from proctor.analysis.plots.style import SERIES
from proctor.core.types import Metric

_NAME, _LEAST, _AXIS = 24.0, 120.0, 40.0  # of what stands above the field, of the field, and below it
_WIDE_RANGE = 25  # from here on, the smaller ones of the values would lie upon each other
_FEW = 3  # so many bands may lie upon each other
_DENSE = 16  # points that are nearer than this are not marked one by one


class PlotPoint(Struct, frozen=True):
    x: Any  # a number, or a name
    metric: Metric


class CurveLine(Struct, frozen=True):
    label: str
    points: Sequence[PlotPoint]


class Curves(Struct, frozen=True):
    title: str
    x: str  # what the values are values of
    y: str
    lines: Sequence[CurveLine]
    chance: Sequence[tuple[Any, float]] = ()  # a value, and how often a guess is right there
    subtitle: str = ""

    def draw(self, width: int = 720, height: int | None = None) -> SvgDrawing:
        check_width(width)
        legend = [LegendEntry(line.label, i) for i, line in enumerate(self.lines)] if len(self.lines) > 1 else []
        if self.chance:
            legend.append(LegendEntry("chance", GUESS))
        head = Head(self.title, self.subtitle, legend)
        around = head.height(width) + _NAME + _AXIS + PAD
        whole = fit_height(height, around + _LEAST, around + min(300.0, max(190.0, 0.42 * width)))
        drawing = SvgDrawing(width, whole, self.title, self._described())
        head.draw(drawing)

        top, bottom = head.height(width) + _NAME, whole - PAD - _AXIS
        steps = self._steps()
        left = PAD + max(text_width(written(step), "pp-small") for step in steps) + 10
        right = width - PAD - 8
        across = Linear(steps[0], steps[-1], bottom, top)
        drawing.text(PAD, top - 12, self.y, "pp-small", room=width - 2 * PAD)
        for step in steps:
            y = across.place(step)
            drawing.line(left, y, right, y, "pp-axis" if step == steps[0] else "pp-grid")
            drawing.text(left - 8, y + 4, written(step), "pp-small", anchor="end")

        along = _Along([point.x for line in self.lines for point in line.points], left + 10, right - 10)
        self._draw_values(drawing, along, bottom)
        if along.numbers:
            for series, line in enumerate(self.lines):
                _draw_band(drawing, along, across, line, series, faint=len(self.lines) > _FEW)
        guesses = sorted((along.place(x), across.place(share)) for x, share in self.chance)
        if len(guesses) == 1:  # one place is no line
            guesses = [(x, guesses[0][1]) for x in (left, right)]
        drawing.path(guesses, "pp-guess")
        for series, line in enumerate(self.lines):
            # Between two names there is nothing: their points stand side by side, and no line goes through them.
            aside = 0.0 if along.numbers else (series - (len(self.lines) - 1) / 2) * min(14.0, 60 / len(self.lines))
            _draw_line(drawing, along, across, line, series, self.y, aside)
        return drawing

    def _steps(self) -> list[float]:
        ends = [x for line in self.lines for point in line.points for x in drawable(point.metric) if x is not None]
        return round_steps(*bounds_of([*ends, *(share for _, share in self.chance)]), 6)

    def _draw_values(self, drawing: SvgDrawing, along: _Along, bottom: float) -> None:
        values = along.values
        if len(values) > 12 and along.numbers:
            low, high = float(values[0]), float(values[-1])
            steps = round_powers(low, high, 9) if along.logarithmic else round_steps(low, high, 8)
            values = [low, *(step for step in steps if low < step <= high)]
        room = max((along.end - along.start) / max(1, len(values)) - APART - 1, 18.0)
        wholes = [_label(value) for value in values]
        labels = wholes if along.numbers else [shorten(whole, room, "pp-small") for whole in wholes]
        places = [along.place(value) for value in values]
        for i in fitting(labels, places):
            half = text_width(labels[i], "pp-small") / 2
            x = min(max(places[i], PAD / 2 + half), drawing.width - PAD / 2 - half)
            drawing.line(places[i], bottom, places[i], bottom + 4, "pp-axis")
            drawing.text(x, bottom + 18, wholes[i], "pp-small", anchor="middle", room=0 if along.numbers else room)
        middle = (along.start + along.end) / 2
        room = 2 * min(middle - PAD, drawing.width - PAD - middle)
        drawing.text(middle, bottom + 38, self.x, anchor="middle", room=room)

    def _described(self) -> str:
        said = []
        for line in self.lines:
            shown = ", ".join(f"{_label(p.x)}: {_figure(p.metric)}" for p in line.points)
            said.append(f"{line.label}, {self.y} by {self.x}: {shown}")
        return "; ".join(said) + "."


class _Along:
    """Where the values lie: numbers by their size, names side by side in the order in which they come."""

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

    def place(self, x: Any) -> float:
        return self._scale.place(float(x) if self.numbers else self._order[_key(x)])


def _numeric(values: list[Any], start: float, end: float) -> Scale:
    low, high = (float(values[0]), float(values[-1])) if values else (0.0, 1.0)
    if len(values) > 2 and low > 0 and high / low >= _WIDE_RANGE:
        return Logarithmic(low, high, start, end)
    return Linear(low, high, start, end)


def _key(x: Any) -> str:
    return json.dumps(x, ensure_ascii=False)


def _label(x: Any) -> str:
    if isinstance(x, int | float) and not isinstance(x, bool):
        return written(float(x))
    return x if isinstance(x, str) else _key(x)


def _figure(metric: Metric) -> str:
    low, value, high = drawable(metric)
    if value is None:
        return "nothing scored"
    interval = "" if low is None or high is None else f" [{score_text(low)}, {score_text(high)}]"
    return f"{score_text(value)}{interval}"


def _draw_band(
    drawing: SvgDrawing, along: _Along, across: Linear, line: CurveLine, series: int, *, faint: bool
) -> None:
    lower, upper = [], []
    for point in sorted(line.points, key=lambda point: along.place(point.x)):
        low, _, high = drawable(point.metric)
        if low is not None and high is not None:
            lower.append((along.place(point.x), across.place(low)))
            upper.append((along.place(point.x), across.place(high)))
    if len(lower) > 1:
        kind = "pp-faint" if faint else "pp-band"
        drawing.path([*upper, *reversed(lower)], f"{kind} pp-fill-{series % SERIES}", closed=True)


def _draw_line(
    drawing: SvgDrawing, along: _Along, across: Linear, line: CurveLine, series: int, name: str, aside: float
) -> None:
    places = []
    for point in sorted(line.points, key=lambda point: along.place(point.x)):
        value = drawable(point.metric)[1]
        if value is not None:
            places.append((along.place(point.x) + aside, across.place(value), point))
    if along.numbers:
        drawing.path([(x, y) for x, y, _ in places], f"pp-line pp-stroke-{series % SERIES}")
    dense = len(places) > 2 and (along.end - along.start) / len(places) < _DENSE
    for x, y, point in (places[0], places[-1]) if dense else places:
        low, _, high = drawable(point.metric)
        if low is not None and high is not None and (len(places) == 1 or not along.numbers):
            drawing.interval(x, across.place(low), x, across.place(high), series)
        hint = f"{line.label}, {_label(point.x)}: {name} {_figure(point.metric)}, n {point.metric.n:,}"
        drawing.marker(x, y, series, hint, size=4.5)
