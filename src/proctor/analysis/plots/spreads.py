"""Distributions of delays on a logarithmic axis, a panel for each kind or run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from proctor.analysis.plots.drawing import SvgDrawing
from proctor.analysis.plots.header import PlotHeader
from proctor.analysis.plots.panels import Axis, Bar, Panel, draw_panels
from proctor.analysis.plots.scales import format_duration, round_powers

_BARS = 36  # over the whole axis


class Spread(Struct, frozen=True):
    """Delays in milliseconds, all above 0."""

    label: str
    counts: Mapping[float, int]  # delay -> number
    median: float
    late: float  # the 95th percentile
    longest: float

    @property
    def n(self) -> int:
        return sum(self.counts.values())


class Spreads(Struct, frozen=True):
    title: str
    spreads: Sequence[Spread]
    x: str
    subtitle: str = ""

    def draw(self, width: int = 720, height: int | None = None) -> SvgDrawing:
        delays = [ms for spread in self.spreads for ms in spread.counts] or [1.0]
        low, high = min(delays), max(delays)
        middle = math.sqrt(low) * math.sqrt(high)
        if high / low < 4:  # a narrower axis is unreadable
            low, high = middle / 2, middle * 2
        # Bars and axis begin at multiples of the bar width, so that plots can be compared.
        bar = (math.log(high) - math.log(low)) / _BARS
        first, last = math.floor(math.log(low) / bar), math.floor(math.log(high) / bar) + 1
        low, high = math.exp(first * bar), math.exp(last * bar)
        panels = [_panel(spread, bar, series) for series, spread in enumerate(self.spreads)]
        steps = round_powers(low, high, 9)
        axis = Axis(low, high, steps, [format_duration(step) for step in steps], self.x, logarithmic=True)
        description = "; ".join(f"{spread.label}: {_percentiles(spread)}" for spread in self.spreads)
        legend = "Solid line: median. Dashed: 95th percentile."
        header = PlotHeader(self.title, f"{self.subtitle} {legend}".strip())
        return draw_panels(header, panels, axis, f"{description}.", width, height)


def _panel(spread: Spread, bar: float, series: int) -> Panel:
    counts: dict[int, int] = {}
    for ms, count in spread.counts.items():
        index = math.floor(math.log(ms) / bar)
        counts[index] = counts.get(index, 0) + count
    bars = []
    for index, count in sorted(counts.items()):
        low, high = math.exp(index * bar), math.exp((index + 1) * bar)
        hint = f"{format_duration(low)} to {format_duration(high)}: {100 * count / spread.n:.1f} % ({count:,})"
        bars.append(Bar(low, high, count / spread.n, hint))
    return Panel(spread.label, _percentiles(spread), bars, series, spread.median, spread.late)


def _percentiles(spread: Spread) -> str:
    figures = {"p50": spread.median, "p95": spread.late, "longest": spread.longest}
    return " · ".join(f"{name} {format_duration(ms)}" for name, ms in figures.items()) + f" · n {spread.n:,}"
