"""Histograms of scores, a panel for each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from proctor.analysis.plots.drawing import SvgDrawing
from proctor.analysis.plots.header import PlotHeader
from proctor.analysis.plots.panels import Axis, Bar, Panel, draw_panels
from proctor.analysis.plots.scales import format_number

BARS = 20  # each bar counts the scores nearest to it, so that 0 and 1 have bars of their own


class Histogram(Struct, frozen=True):
    label: str
    scores: Sequence[float]  # each from 0 to 1
    unscored: int = 0


class Histograms(Struct, frozen=True):
    title: str
    runs: Sequence[Histogram]
    subtitle: str = ""

    def draw(self, width: int = 720, height: int | None = None) -> SvgDrawing:
        panels = [_panel(run, series) for series, run in enumerate(self.runs)]
        half = 0.5 / BARS
        steps = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        axis = Axis(-half, 1 + half, steps, [format_number(step) for step in steps], "score")
        description = "; ".join(
            f"{panel.title}: {', '.join(bar.hint for bar in panel.bars if bar.share)}" for panel in panels
        )
        return draw_panels(PlotHeader(self.title, self.subtitle), panels, axis, f"{description}.", width, height)


def _panel(run: Histogram, series: int) -> Panel:
    counts = Counter(int(score * BARS + 0.5) for score in run.scores)
    n = len(run.scores)
    half = 0.5 / BARS
    bars = [
        Bar(i / BARS - half, i / BARS + half, counts[i] / n if n else 0.0, _hint(i, counts[i], n))
        for i in range(BARS + 1)
    ]
    note = f"{n:,} scored" + (f", {run.unscored:,} without a score" if run.unscored else "")
    return Panel(run.label, note, bars, series)


def _hint(index: int, count: int, n: int) -> str:
    share = f"{100 * count / n:.1f} %" if n else "none"
    return f"score {format_number(index / BARS)}: {share} ({count:,})"
