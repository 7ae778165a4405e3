"""How often which score was given, a panel for each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from proctor.analysis.plots.drawing import SvgDrawing
from proctor.analysis.plots.head import Head
from proctor.analysis.plots.panels import Axis, Bar, Panel, draw_panels
from proctor.analysis.plots.scales import written

CLASSES = 20  # a bar holds the scores nearest to it, so that full marks and none have bars of their own


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
        half = 0.5 / CLASSES
        steps = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        axis = Axis(-half, 1 + half, steps, [written(step) for step in steps], "score")
        said = "; ".join(f"{panel.title}: {', '.join(bar.hint for bar in panel.bars if bar.share)}" for panel in panels)
        return draw_panels(Head(self.title, self.subtitle), panels, axis, f"{said}.", width, height)


def _panel(run: Histogram, series: int) -> Panel:
    counts = Counter(int(score * CLASSES + 0.5) for score in run.scores)
    n = len(run.scores)
    half = 0.5 / CLASSES
    bars = [
        Bar(i / CLASSES - half, i / CLASSES + half, counts[i] / n if n else 0.0, _hint(i, counts[i], n))
        for i in range(CLASSES + 1)
    ]
    note = f"{n:,} scored" + (f", {run.unscored:,} without a score" if run.unscored else "")
    return Panel(run.label, note, bars, series)


def _hint(place: int, count: int, n: int) -> str:
    share = f"{100 * count / n:.1f} %" if n else "none"
    return f"score {written(place / CLASSES)}: {share} ({count:,})"
