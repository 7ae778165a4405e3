"""A drawing: SVG elements in a frame, with its words for those who cannot see it."""

from __future__ import annotations

import re
from html import escape
from typing import Any, Protocol

from proctor.analysis.plots.lettering import shorten
from proctor.analysis.plots.style import ROOT, SERIES, Theme, style_sheet
from proctor.core.errors import UsageError

NARROWEST, WIDEST = 240, 8_000
# What XML cannot hold, however it is written.
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class RoomError(UsageError):
    """The plot does not fit into the height that was asked for."""

    def __init__(self, height: float, needed: float) -> None:
        super().__init__(f"This plot needs a height of {needed:.0f} at this width; {height:.0f} is too little.")


class Plot(Protocol):
    """Anything that can be drawn."""

    def draw(self, width: int = 720, height: int | None = None) -> SvgDrawing:
        """At this size; without a height, as high as it takes."""
        ...


def clean(text: str) -> str:
    return escape(_NOT_IN_XML.sub("\ufffd", text), quote=True)


class SvgDrawing:
    def __init__(self, width: float, height: float, title: str, description: str) -> None:
        self.width, self.height = width, height
        self._title, self._description = title, description
        self._elements: list[str] = []

    @property
    def words(self) -> str:
        """For those who cannot see it."""
        return f"{self._title}. {self._description}".strip()

    def svg(self, theme: Theme | None = "auto") -> str:
        """The whole as text. Without a theme it has no style: the page around it has `style_sheet`."""
        style = f"<style>{style_sheet(theme)}</style>" if theme else ""
        size = f'width="{self.width:g}" height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}"'
        label = clean(self.words)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{ROOT}" role="img" aria-label="{label}" {size}>'
            f"<title>{clean(self._title)}</title><desc>{clean(self._description)}</desc>{style}"
            f'<rect class="pp-surface" width="{self.width:g}" height="{self.height:g}"/>'
            f"{''.join(self._elements)}</svg>\n"
        )

    def text(self, x: float, y: float, text: str, kind: str = "", *, anchor: str = "start", room: float = 0) -> None:
        """One line from, around or up to x. What was shortened to fit the room is read in full by pointing at it."""
        shown = shorten(text, room, kind) if room else text
        if not shown:
            return
        whole = f"<title>{clean(text)}</title>" if shown != text else ""
        where = "" if anchor == "start" else f' text-anchor="{anchor}"'
        style = f' class="{kind}"' if kind else ""
        self._elements.append(f'<text{style} x="{_short(x)}" y="{_short(y)}"{where}>{whole}{clean(shown)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        places = " ".join(f'{name}="{_short(v)}"' for name, v in (("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2)))
        self._elements.append(f'<line class="{kind}" {places}/>')

    def rect(self, x: float, y: float, width: float, height: float, kind: str, hint: str = "") -> None:
        size = f'x="{_short(x)}" y="{_short(y)}" width="{_short(width)}" height="{_short(height)}"'
        inner = f"><title>{clean(hint)}</title></rect>" if hint else "/>"
        self._elements.append(f'<rect class="{kind}" {size}{inner}')

    def path(self, places: list[tuple[float, float]], kind: str, *, closed: bool = False) -> None:
        if places:
            steps = "L".join(f"{_short(x)} {_short(y)}" for x, y in places)
            self._elements.append(f'<path class="{kind}" d="M{steps}{"Z" if closed else ""}"/>')

    def marker(self, x: float, y: float, series: int, hint: str = "", size: float = 5) -> None:
        """A point whose form tells its series apart, for those to whom its colour does not."""
        forms: dict[int, list[tuple[float, float]]] = {
            0: [(0, 0)],
            1: [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            2: [(0, -1.15), (1.1, 0.85), (-1.1, 0.85)],
            3: [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
            4: [(0, 1.15), (1.1, -0.85), (-1.1, -0.85)],
            5: [(-0.6, -1.1), (0.6, -1.1), (1.2, 0), (0.6, 1.1), (-0.6, 1.1), (-1.2, 0)],
        }
        # The forms go on in another order when the colours come again, so that a pair of both is one series for long.
        form = forms[(series + series // SERIES) % len(forms)]
        inner = f"><title>{clean(hint)}</title>" if hint else ">"
        kind = f"pp-point pp-fill-{series % SERIES}"
        if len(form) == 1:
            self._elements.append(
                f'<circle class="{kind}" cx="{_short(x)}" cy="{_short(y)}" r="{size:g}"{inner}</circle>'
            )
            return
        steps = "L".join(f"{_short(x + dx * size)} {_short(y + dy * size)}" for dx, dy in form)
        self._elements.append(f'<path class="{kind}" d="M{steps}Z"{inner}</path>')

    def interval(self, x1: float, y1: float, x2: float, y2: float, series: int, cap: float = 4) -> None:
        """A line with ends across it."""
        across = (0.0, cap) if y1 == y2 else (cap, 0.0)
        kind = f"pp-interval pp-stroke-{series % SERIES}"
        self.line(x1, y1, x2, y2, kind)
        for x, y in ((x1, y1), (x2, y2)):
            self.line(x - across[0], y - across[1], x + across[0], y + across[1], kind)


def _short(x: Any) -> str:
    return f"{x:.2f}".rstrip("0").rstrip(".")
