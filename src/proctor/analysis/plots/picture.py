"""A drawing as a PNG."""

from __future__ import annotations

import io
from functools import cache

from proctor.analysis.plots.drawing import SvgDrawing
from proctor.analysis.plots.style import Theme
from proctor.core.errors import UsageError
from proctor.core.extras import import_extra

MOST_PIXELS = 100_000_000


def png(drawing: SvgDrawing, theme: Theme = "light", scale: float = 2.0) -> bytes:
    """The picture, with so many pixels for each unit of the drawing. A picture follows no system: auto is light."""
    if drawing.width * drawing.height * scale**2 > MOST_PIXELS:
        raise UsageError(f"A picture of {drawing.width * scale:,.0f} × {drawing.height * scale:,.0f} is too large.")
    if not _fonts_can_be_drawn():
        raise UsageError(
            "No font is installed here, and the PNG would have no text: install one (apt-get install "
            "fonts-dejavu-core), or write .svg, for which the reader's fonts are used."
        )
    return _rendered(drawing.svg("dark" if theme == "dark" else "light"), scale)


def _rendered(svg: str, scale: float) -> bytes:
    resvg_py = import_extra("resvg_py", "Writing PNG", "plots")
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=scale))


@cache
def _fonts_can_be_drawn() -> bool:
    """Without a font, the renderer leaves out all text and says nothing."""
    from PIL import Image

    probe = SvgDrawing(60, 30, "", "")
    probe.text(4, 20, "Ag 0")
    with Image.open(io.BytesIO(_rendered(probe.svg("light"), 1))) as picture:
        low, high = picture.convert("L").crop((4, 4, 56, 26)).getextrema()
        return low != high
