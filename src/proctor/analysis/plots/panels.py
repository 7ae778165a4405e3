"""Panels of bars over a shared axis, for histograms and spreads."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from proctor.analysis.plots.drawing import SvgDrawing
from proctor.analysis.plots.header import PAD, PlotHeader, check_width, fit_height, select_labels
from proctor.analysis.plots.scales import Linear, Logarithmic, round_steps
from proctor.analysis.plots.style import SERIES
from proctor.analysis.plots.text_layout import text_width

_TITLE, _NOTE, _DEFAULT_HEIGHT, _MIN_HEIGHT, _BELOW = 22.0, 16.0, 104.0, 44.0, 12.0
_AXIS = 28.0
_MAX_BAR_LABELS = 3  # with more bars, none has a label


class Bar(Struct, frozen=True):
    low: float
    high: float
    share: float  # of all in the panel
    hint: str


class Panel(Struct, frozen=True):
    title: str
    note: str
    bars: Sequence[Bar]
    series: int = 0
    middle: float | None = None  # a line through the panel
    late: float | None = None  # a dashed line


class Axis(Struct, frozen=True):
    low: float
    high: float
    steps: Sequence[float]
    labels: Sequence[str]
    title: str
    logarithmic: bool = False

    def scale(self, start: float, end: float) -> Linear | Logarithmic:
        kind = Logarithmic if self.logarithmic else Linear
        return kind(self.low, self.high, start, end)


def draw_panels(
    header: PlotHeader, panels: Sequence[Panel], axis: Axis, description: str, width: int, height: int | None
) -> SvgDrawing:
    check_width(width)
    captions = [text_width(panel.title, "pp-strong") + 20 + text_width(panel.note, "pp-small") for panel in panels]
    notes = _NOTE if max(captions, default=0.0) > width - 2 * PAD else 0.0  # on a line of their own
    fixed = header.height(width) + _AXIS + PAD + len(panels) * (_TITLE + notes + _BELOW)
    total_height = fit_height(height, fixed + len(panels) * _MIN_HEIGHT, fixed + len(panels) * _DEFAULT_HEIGHT)
    field = (total_height - fixed) / max(1, len(panels))
    drawing = SvgDrawing(width, total_height, header.title, description)
    header.draw(drawing)

    steps = round_steps(0.0, max((bar.share for panel in panels for bar in panel.bars), default=1.0), 5)
    labels = [f"{100 * step:.3g} %" for step in steps]
    left = PAD + max(text_width(label, "pp-small") for label in labels) + 10
    right = width - PAD - 8
    x_scale = axis.scale(left + 6, right - 6)
    y = header.height(width)
    for panel in panels:
        _draw_caption(drawing, panel, y, below=notes > 0)
        top, bottom = y + _TITLE + notes + 6, y + _TITLE + notes + field
        y_scale = Linear(steps[0], steps[-1], bottom, top)
        chosen = range(len(steps)) if field > 80 else (0, len(steps) - 1)
        for i in chosen:
            y_step = y_scale.position(steps[i])
            drawing.line(left, y_step, right, y_step, "pp-axis" if i == 0 else "pp-grid")
            drawing.text(left - 8, y_step + 4, labels[i], "pp-small", anchor="end")
        _draw_bars(drawing, panel, x_scale, y_scale)
        for x, kind in ((panel.middle, "pp-mark"), (panel.late, "pp-dashed")):
            if x is not None:
                drawing.line(x_scale.position(x), top, x_scale.position(x), bottom, kind)
        y = bottom + _BELOW
    _draw_steps(drawing, axis, x_scale, y - _BELOW)
    drawing.text((left + right) / 2, total_height - PAD, axis.title, anchor="middle", max_width=right - left)
    return drawing


def _draw_caption(drawing: SvgDrawing, panel: Panel, y: float, *, below: bool) -> None:
    max_width = drawing.width - 2 * PAD
    if below:
        drawing.text(PAD, y + 12, panel.title, "pp-strong", max_width=max_width)
        drawing.text(PAD, y + 28, panel.note, "pp-small", max_width=max_width)
        return
    drawing.text(PAD, y + 12, panel.title, "pp-strong", max_width=max_width)
    drawing.text(drawing.width - PAD, y + 12, panel.note, "pp-small", anchor="end", max_width=max_width)


def _draw_bars(drawing: SvgDrawing, panel: Panel, x_scale: Linear | Logarithmic, y_scale: Linear) -> None:
    filled = [bar for bar in panel.bars if bar.share > 0]
    bottom = y_scale.position(0)
    for bar in filled:
        start, end = x_scale.position(bar.low), x_scale.position(bar.high)
        gap = min(1.0, (end - start) / 5)
        top = min(y_scale.position(bar.share), bottom - 1)  # at least one pixel high
        size = max(end - start - gap, 0.5), bottom - top
        drawing.rect(start + gap / 2, top, *size, f"pp-fill-{panel.series % SERIES}", bar.hint)
    for bar in filled if len(filled) <= _MAX_BAR_LABELS else ():
        label = f"{100 * bar.share:.1f} %"
        start, end = x_scale.position(bar.low), x_scale.position(bar.high)
        # Beside the bar, where its height does not matter.
        left = (start + end) / 2 > drawing.width / 2
        x = start - 6 if left else end + 6
        y = min(y_scale.position(bar.share) + 9, bottom - 4)
        drawing.text(x, y, label, "pp-small", anchor="end" if left else "start")


def _draw_steps(drawing: SvgDrawing, axis: Axis, x_scale: Linear | Logarithmic, bottom: float) -> None:
    positions = [x_scale.position(step) for step in axis.steps]
    for i in select_labels(axis.labels, positions):
        half = text_width(axis.labels[i], "pp-small") / 2
        x = min(max(positions[i], PAD / 2 + half), drawing.width - PAD / 2 - half)
        drawing.line(positions[i], bottom, positions[i], bottom + 4, "pp-axis")
        drawing.text(x, bottom + 18, axis.labels[i], "pp-small", anchor="middle")
