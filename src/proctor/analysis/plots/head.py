"""What stands above every plot: its title, what it is about, and which line is whose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from proctor.analysis.plots.drawing import NARROWEST, WIDEST, RoomError, SvgDrawing
from proctor.analysis.plots.lettering import text_width, wrap
from proctor.analysis.plots.style import SERIES
from proctor.core.errors import UsageError

PAD = 16.0
TITLE_LINE, SMALL_LINE, LEGEND_LINE = 20.0, 16.0, 20.0
GAP = 10.0
_KEY, _BETWEEN = 22.0, 18.0  # the mark before a name, and the room after it
APART = 12.0  # the room between labels of an axis
GUESS = -1  # the series of chance


class LegendEntry(Struct, frozen=True):
    """A name in the legend."""

    label: str
    series: int  # or GUESS


class Head(Struct, frozen=True):
    title: str
    subtitle: str = ""
    legend: Sequence[LegendEntry] = ()

    def height(self, width: float) -> float:
        titles, subtitles = self._lines(width)
        rows = 1 + max((row for row, _, _ in self._legend(width)), default=-1)
        return PAD + len(titles) * TITLE_LINE + len(subtitles) * SMALL_LINE + rows * LEGEND_LINE + GAP

    def draw(self, drawing: SvgDrawing) -> None:
        room = drawing.width - 2 * PAD
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
            if entry.series == GUESS:
                drawing.line(x, middle, x + 16, middle, "pp-guess")
            else:
                drawing.line(x, middle, x + 16, middle, f"pp-line pp-stroke-{entry.series % SERIES}")
                drawing.marker(x + 8, middle, entry.series, size=4)
            drawing.text(x + _KEY, y + row * LEGEND_LINE, entry.label, room=room - _KEY)

    def _lines(self, width: float) -> tuple[list[str], list[str]]:
        room = width - 2 * PAD
        return wrap(self.title, room, "pp-title", 2), wrap(self.subtitle, room, "pp-small")

    def _legend(self, width: float) -> Iterator[tuple[int, float, LegendEntry]]:
        """Row and place of each entry."""
        row, x = 0, PAD
        for entry in self.legend:
            needed = _KEY + text_width(entry.label)
            if x > PAD and x + needed > width - PAD:
                row, x = row + 1, PAD
            yield row, x, entry
            x += needed + _BETWEEN


def check_width(width: int) -> None:
    if not NARROWEST <= width <= WIDEST:
        raise UsageError(f"width: a plot is {NARROWEST} to {WIDEST:,} wide, not {width}.")


def fit_height(height: int | None, needed: float, usual: float) -> float:
    """The height that was asked for, if all has room in it."""
    if height is None:
        return usual
    if height < needed:
        raise RoomError(height, needed)
    return float(height)


def fitting(labels: Sequence[str], places: Sequence[float]) -> list[int]:
    """Which of the labels under an axis can stand there without touching: the ends first, then as many as can."""
    half = [text_width(label, "pp-small") / 2 for label in labels]
    order = sorted(range(len(labels)), key=lambda i: places[i])
    for step in range(1, max(2, len(order))):
        chosen = order[::step]
        if all(places[b] - places[a] >= half[a] + half[b] + APART for a, b in pairwise(chosen)):
            return chosen
    return order[:1]
