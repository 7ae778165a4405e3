"""Bars in panels, one below the other over one axis: what histograms and spreads share."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from proctor.analysis.plots.drawing import SvgDrawing
from proctor.analysis.plots.head import PAD, Head, check_width, fit_height, fitting
from proctor.analysis.plots.lettering import text_width
from proctor.analysis.plots.scales import Linear, Logarithmic, round_steps
from proctor.analysis.plots.style import SERIES

_TITLE, _NOTE, _USUAL, _LEAST, _BELOW = 22.0, 16.0, 104.0, 44.0, 12.0
_AXIS = 28.0
_FEW = 3  # so many bars have their share written above them


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
    late: float | None = None  # another one, dashed


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
    head: Head, panels: Sequence[Panel], axis: Axis, said: str, width: int, height: int | None
) -> SvgDrawing:
    check_width(width)
    captions = [text_width(panel.title, "pp-strong") + 20 + text_width(panel.note, "pp-small") for panel in panels]
    notes = _NOTE if max(captions, default=0.0) > width - 2 * PAD else 0.0  # in a line of their own
    around = head.height(width) + _AXIS + PAD + len(panels) * (_TITLE + notes + _BELOW)
    whole = fit_height(height, around + len(panels) * _LEAST, around + len(panels) * _USUAL)
    field = (whole - around) / max(1, len(panels))
    drawing = SvgDrawing(width, whole, head.title, said)
    head.draw(drawing)

    steps = round_steps(0.0, max((bar.share for panel in panels for bar in panel.bars), default=1.0), 5)
    labels = [f"{100 * step:.3g} %" for step in steps]
    left = PAD + max(text_width(label, "pp-small") for label in labels) + 10
    right = width - PAD - 8
    along = axis.scale(left + 6, right - 6)
    y = head.height(width)
    for panel in panels:
        _draw_caption(drawing, panel, y, below=notes > 0)
        top, bottom = y + _TITLE + notes + 6, y + _TITLE + notes + field
        across = Linear(steps[0], steps[-1], bottom, top)
        chosen = range(len(steps)) if field > 80 else (0, len(steps) - 1)
        for i in chosen:
            place = across.place(steps[i])
            drawing.line(left, place, right, place, "pp-axis" if i == 0 else "pp-grid")
            drawing.text(left - 8, place + 4, labels[i], "pp-small", anchor="end")
        _draw_bars(drawing, panel, along, across)
        for x, kind in ((panel.middle, "pp-mark"), (panel.late, "pp-guess")):
            if x is not None:
                drawing.line(along.place(x), top, along.place(x), bottom, kind)
        y = bottom + _BELOW
    _draw_steps(drawing, axis, along, y - _BELOW)
    drawing.text((left + right) / 2, whole - PAD, axis.title, anchor="middle", room=right - left)
    return drawing


def _draw_caption(drawing: SvgDrawing, panel: Panel, y: float, *, below: bool) -> None:
    room = drawing.width - 2 * PAD
    if below:
        drawing.text(PAD, y + 12, panel.title, "pp-strong", room=room)
        drawing.text(PAD, y + 28, panel.note, "pp-small", room=room)
        return
    drawing.text(PAD, y + 12, panel.title, "pp-strong", room=room)
    drawing.text(drawing.width - PAD, y + 12, panel.note, "pp-small", anchor="end", room=room)


def _draw_bars(drawing: SvgDrawing, panel: Panel, along: Linear | Logarithmic, across: Linear) -> None:
    filled = [bar for bar in panel.bars if bar.share > 0]
    bottom = across.place(0)
    for bar in filled:
        start, end = along.place(bar.low), along.place(bar.high)
        gap = min(1.0, (end - start) / 5)
        top = min(across.place(bar.share), bottom - 1)  # what is there is seen, however little it is
        size = max(end - start - gap, 0.5), bottom - top
        drawing.rect(start + gap / 2, top, *size, f"pp-fill-{panel.series % SERIES}", bar.hint)
    for bar in filled if len(filled) <= _FEW else ():
        label = f"{100 * bar.share:.1f} %"
        start, end = along.place(bar.low), along.place(bar.high)
        # Beside the bar, where it does not matter how high it is.
        left = (start + end) / 2 > drawing.width / 2
        x = start - 6 if left else end + 6
        y = min(across.place(bar.share) + 9, bottom - 4)
        drawing.text(x, y, label, "pp-small", anchor="end" if left else "start")


def _draw_steps(drawing: SvgDrawing, axis: Axis, along: Linear | Logarithmic, bottom: float) -> None:
    places = [along.place(step) for step in axis.steps]
    for i in fitting(axis.labels, places):
        half = text_width(axis.labels[i], "pp-small") / 2
        x = min(max(places[i], PAD / 2 + half), drawing.width - PAD / 2 - half)
        drawing.line(places[i], bottom, places[i], bottom + 4, "pp-axis")
        drawing.text(x, bottom + 18, axis.labels[i], "pp-small", anchor="middle")
