"""Plots as SVG: each takes numbers and draws itself at any width, in light and dark."""

from __future__ import annotations

from proctor.analysis.plots.curves import CurveLine, Curves, PlotPoint
from proctor.analysis.plots.drawing import Plot, PlotTooSmallError, SvgDrawing
from proctor.analysis.plots.histograms import Histogram, Histograms
from proctor.analysis.plots.rendering import render_png
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
    "PlotTooSmallError",
    "ScoreGroup",
    "ScoreRow",
    "Scores",
    "Spread",
    "Spreads",
    "SvgDrawing",
    "Theme",
    "render_png",
    "style_sheet",
]
