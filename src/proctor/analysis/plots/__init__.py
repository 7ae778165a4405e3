"""Plots as SVG text, written here: each takes plain figures and draws itself at any width, in light and dark."""

from __future__ import annotations

from proctor.analysis.plots.curves import CurveLine, Curves, PlotPoint
from proctor.analysis.plots.drawing import Plot, RoomError, SvgDrawing
from proctor.analysis.plots.histograms import Histogram, Histograms
from proctor.analysis.plots.picture import png
from proctor.analysis.plots.scores import ScoreGroup, ScoreRow, Scores
from proctor.analysis.plots.spreads import Spread, Spreads
from proctor.analysis.plots.style import THEMES, Theme, style_sheet

__all__ = [
    "THEMES",
    "CurveLine",
    "Curves",
    "Histogram",
    "Histograms",
    "Plot",
    "PlotPoint",
    "RoomError",
    "ScoreGroup",
    "ScoreRow",
    "Scores",
    "Spread",
    "Spreads",
    "SvgDrawing",
    "Theme",
    "png",
    "style_sheet",
]
