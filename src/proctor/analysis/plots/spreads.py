"""How long things took: delays on a logarithmic axis, a panel for each kind or run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from proctor.analysis.plots.drawing import SvgDrawing
from proctor.analysis.plots.head import Head
from proctor.analysis.plots.panels import Axis, Bar, Panel, draw_panels
from proctor.analysis.plots.scales import duration, round_powers

_BARS = 36  # over the whole axis


class Spread(Struct, frozen=True):
    """Delays in milliseconds, all above 0."""

    label: str
    counts: Mapping[float, int]  # delay -> how many, as finely as they are known
    median: float
    late: float  # 95 % of all are not later
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
        if high / low < 4:  # an axis of less than that says nothing
            low, high = middle / 2, middle * 2
        # Bars begin at whole multiples of their width, and so does the axis: two plots can be laid side by side.
        bar = (math.log(high) - math.log(low)) / _BARS
        first, last = math.floor(math.log(low) / bar), math.floor(math.log(high) / bar) + 1
        low, high = math.exp(first * bar), math.exp(last * bar)
        panels = [_panel(spread, bar, series) for series, spread in enumerate(self.spreads)]
        steps = round_powers(low, high, 9)
        axis = Axis(low, high, steps, [duration(step) for step in steps], self.x, logarithmic=True)
        said = "; ".join(f"{spread.label}: {_figures(spread)}" for spread in self.spreads)
        legend = "Solid line: median. Dashed: 95 % came no later."
        head = Head(self.title, f"{self.subtitle} {legend}".strip())
        return draw_panels(head, panels, axis, f"{said}.", width, height)


def _panel(spread: Spread, bar: float, series: int) -> Panel:
    counts: dict[int, int] = {}
    for ms, count in spread.counts.items():
        place = math.floor(math.log(ms) / bar)
        counts[place] = counts.get(place, 0) + count
    bars = []
    for place, count in sorted(counts.items()):
        low, high = math.exp(place * bar), math.exp((place + 1) * bar)
        hint = f"{duration(low)} to {duration(high)}: {100 * count / spread.n:.1f} % ({count:,})"
        bars.append(Bar(low, high, count / spread.n, hint))
    return Panel(spread.label, _figures(spread), bars, series, spread.median, spread.late)


def _figures(spread: Spread) -> str:
    figures = {"p50": spread.median, "p95": spread.late, "longest": spread.longest}
    return " · ".join(f"{name} {duration(ms)}" for name, ms in figures.items()) + f" · n {spread.n:,}"
