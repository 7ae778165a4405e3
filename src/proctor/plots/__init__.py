"""Plots as SVG text, written here: each takes plain figures and draws itself at any width, in light and dark."""

from __future__ import annotations

from proctor.plots.curves import Curves, Line, Point
from proctor.plots.drawing import Drawing, Plot, RoomError
from proctor.plots.histograms import Histogram, Histograms
from proctor.plots.picture import png
from proctor.plots.scores import Group, Row, Scores
from proctor.plots.spreads import Spread, Spreads
from proctor.plots.style import THEMES, Theme, style_sheet

__all__ = [
    "THEMES",
    "Curves",
    "Drawing",
    "Group",
    "Histogram",
    "Histograms",
    "Line",
    "Plot",
    "Point",
    "RoomError",
    "Row",
    "Scores",
    "Spread",
    "Spreads",
    "Theme",
    "png",
    "style_sheet",
]
