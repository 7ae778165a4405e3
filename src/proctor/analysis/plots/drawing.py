"""SVG drawings: elements of a fixed size, with a text alternative."""

from __future__ import annotations

import re
from html import escape
from typing import Any, Protocol

from proctor.analysis.plots.style import ROOT, SERIES, Theme, style_sheet
from proctor.analysis.plots.text_layout import shorten
from proctor.core.errors import UsageError

MIN_WIDTH, MAX_WIDTH = 240, 8_000
# Characters that XML cannot hold, not even escaped.
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class PlotTooSmallError(UsageError):
    """The requested height is too small for the plot."""

    def __init__(self, height: float, needed: float) -> None:
        super().__init__(f"This plot needs a height of {needed:.0f} at this width; {height:.0f} is too little.")


class Plot(Protocol):
    """Anything that can be drawn."""

    def draw(self, width: int = 720, height: int | None = None) -> SvgDrawing:
        """Draws the plot; the height defaults to what it needs."""
        ...


def escape_xml(text: str) -> str:
    return escape(_NOT_IN_XML.sub("\ufffd", text), quote=True)


class SvgDrawing:
    def __init__(self, width: float, height: float, title: str, description: str) -> None:
        self.width, self.height = width, height
        self._title, self._description = title, description
        self._elements: list[str] = []

    @property
    def words(self) -> str:
        """The text alternative."""
        return f"{self._title}. {self._description}".strip()

    def svg(self, theme: Theme | None = "auto") -> str:
        """The SVG as text. Without a theme it has no style; the page supplies `style_sheet`."""
        style = f"<style>{style_sheet(theme)}</style>" if theme else ""
        size = f'width="{self.width:g}" height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}"'
        label = escape_xml(self.words)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{ROOT}" role="img" aria-label="{label}" {size}>'
            f"<title>{escape_xml(self._title)}</title><desc>{escape_xml(self._description)}</desc>{style}"
            f'<rect class="pp-surface" width="{self.width:g}" height="{self.height:g}"/>'
            f"{''.join(self._elements)}</svg>\n"
        )

    def text(
        self, x: float, y: float, text: str, kind: str = "", *, anchor: str = "start", max_width: float = 0
    ) -> None:
        """Adds a line of text, shortened to `max_width`; a tooltip then shows the full text."""
        shown = shorten(text, max_width, kind) if max_width else text
        if not shown:
            return
        title = f"<title>{escape_xml(text)}</title>" if shown != text else ""
        alignment = "" if anchor == "start" else f' text-anchor="{anchor}"'
        style = f' class="{kind}"' if kind else ""
        self._elements.append(
            f'<text{style} x="{_coordinate(x)}" y="{_coordinate(y)}"{alignment}>{title}{escape_xml(shown)}</text>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        positions = " ".join(
            f'{name}="{_coordinate(v)}"' for name, v in (("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2))
        )
        self._elements.append(f'<line class="{kind}" {positions}/>')

    def rect(self, x: float, y: float, width: float, height: float, kind: str, hint: str = "") -> None:
        size = f'x="{_coordinate(x)}" y="{_coordinate(y)}" width="{_coordinate(width)}" height="{_coordinate(height)}"'
        inner = f"><title>{escape_xml(hint)}</title></rect>" if hint else "/>"
        self._elements.append(f'<rect class="{kind}" {size}{inner}')

    def path(self, positions: list[tuple[float, float]], kind: str, *, closed: bool = False) -> None:
        if positions:
            steps = "L".join(f"{_coordinate(x)} {_coordinate(y)}" for x, y in positions)
            self._elements.append(f'<path class="{kind}" d="M{steps}{"Z" if closed else ""}"/>')

    def marker(self, x: float, y: float, series: int, hint: str = "", size: float = 5) -> None:
        """Adds a point; its shape identifies the series without its colour."""
        forms: dict[int, list[tuple[float, float]]] = {
            0: [(0, 0)],
            1: [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            2: [(0, -1.15), (1.1, 0.85), (-1.1, 0.85)],
            3: [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
            4: [(0, 1.15), (1.1, -0.85), (-1.1, -0.85)],
            5: [(-0.6, -1.1), (0.6, -1.1), (1.2, 0), (0.6, 1.1), (-0.6, 1.1), (-1.2, 0)],
        }
        # Shapes shift when the colours repeat, so that their combinations repeat late.
        form = forms[(series + series // SERIES) % len(forms)]
        inner = f"><title>{escape_xml(hint)}</title>" if hint else ">"
        kind = f"pp-point pp-fill-{series % SERIES}"
        if len(form) == 1:
            self._elements.append(
                f'<circle class="{kind}" cx="{_coordinate(x)}" cy="{_coordinate(y)}" r="{size:g}"{inner}</circle>'
            )
            return
        steps = "L".join(f"{_coordinate(x + dx * size)} {_coordinate(y + dy * size)}" for dx, dy in form)
        self._elements.append(f'<path class="{kind}" d="M{steps}Z"{inner}</path>')

    def interval(self, x1: float, y1: float, x2: float, y2: float, series: int, cap: float = 4) -> None:
        """A line with end caps."""
        dx, dy = (0.0, cap) if y1 == y2 else (cap, 0.0)
        kind = f"pp-interval pp-stroke-{series % SERIES}"
        self.line(x1, y1, x2, y2, kind)
        for x, y in ((x1, y1), (x2, y2)):
            self.line(x - dx, y - dy, x + dx, y + dy, kind)


def _coordinate(x: Any) -> str:
    return f"{x:.2f}".rstrip("0").rstrip(".")
