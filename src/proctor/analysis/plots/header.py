"""The header of a plot: title, subtitle and legend; and helpers to lay out the plot below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from proctor.analysis.plots.drawing import MAX_WIDTH, MIN_WIDTH, PlotTooSmallError, SvgDrawing
from proctor.analysis.plots.style import SERIES
from proctor.analysis.plots.text_layout import text_width, wrap
from proctor.core.errors import UsageError

PAD = 16.0
TITLE_LINE, SMALL_LINE, LEGEND_LINE = 20.0, 16.0, 20.0
GAP = 10.0
_KEY, _BETWEEN = 22.0, 18.0  # widths: the marker before a label, the gap after it
LABEL_GAP = 12.0  # between labels of an axis
CHANCE_SERIES = -1  # the series of chance


class LegendEntry(Struct, frozen=True):
    label: str
    series: int  # or GUESS


class PlotHeader(Struct, frozen=True):
    title: str
    subtitle: str = ""
    legend: Sequence[LegendEntry] = ()

    def height(self, width: float) -> float:
        titles, subtitles = self._lines(width)
        rows = 1 + max((row for row, _, _ in self._legend(width)), default=-1)
        return PAD + len(titles) * TITLE_LINE + len(subtitles) * SMALL_LINE + rows * LEGEND_LINE + GAP

    def draw(self, drawing: SvgDrawing) -> None:
        max_width = drawing.width - 2 * PAD
        titles, subtitles = self._lines(drawing.width)
        y = PAD - 4
        for line in titles:
            y += TITLE_LINE
            drawing.text(PAD, y, line, "pp-title")
        for line in subtitles:
            y += SMALL_LINE
            drawing.text(PAD, y, line, "pp-small")
        y += LEGEND_LINE + 2
        for row, x, entry in self._legend(drawing.width):
            middle = y + row * LEGEND_LINE - 4
            if entry.series == CHANCE_SERIES:
                drawing.line(x, middle, x + 16, middle, "pp-dashed")
            else:
                drawing.line(x, middle, x + 16, middle, f"pp-line pp-stroke-{entry.series % SERIES}")
                drawing.marker(x + 8, middle, entry.series, size=4)
            drawing.text(x + _KEY, y + row * LEGEND_LINE, entry.label, max_width=max_width - _KEY)

    def _lines(self, width: float) -> tuple[list[str], list[str]]:
        max_width = width - 2 * PAD
        return wrap(self.title, max_width, "pp-title", 2), wrap(self.subtitle, max_width, "pp-small")

    def _legend(self, width: float) -> Iterator[tuple[int, float, LegendEntry]]:
        """Row, x and entry."""
        row, x = 0, PAD
        for entry in self.legend:
            needed = _KEY + text_width(entry.label)
            if x > PAD and x + needed > width - PAD:
                row, x = row + 1, PAD
            yield row, x, entry
            x += needed + _BETWEEN


def check_width(width: int) -> None:
    if not MIN_WIDTH <= width <= MAX_WIDTH:
        raise UsageError(f"width: a plot is {MIN_WIDTH} to {MAX_WIDTH:,} wide, not {width}.")


def fit_height(height: int | None, needed: float, usual: float) -> float:
    """The requested height, if it is enough; by default the usual one."""
    if height is None:
        return usual
    if height < needed:
        raise PlotTooSmallError(height, needed)
    return float(height)


def select_labels(labels: Sequence[str], positions: Sequence[float]) -> list[int]:
    """The indices of as many evenly spaced labels as fit under an axis without touching."""
    half = [text_width(label, "pp-small") / 2 for label in labels]
    order = sorted(range(len(labels)), key=lambda i: positions[i])
    for step in range(1, max(2, len(order))):
        chosen = order[::step]
        if all(positions[b] - positions[a] >= half[a] + half[b] + LABEL_GAP for a, b in pairwise(chosen)):
            return chosen
    return order[:1]
