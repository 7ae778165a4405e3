"""Rendering of drawings as PNG."""

from __future__ import annotations

import io
from functools import cache

from proctor.analysis.plots.drawing import SvgDrawing
from proctor.analysis.plots.style import Theme
from proctor.core.errors import UsageError
from proctor.core.extras import import_extra

MAX_PIXELS = 100_000_000


def render_png(drawing: SvgDrawing, theme: Theme = "light", scale: float = 2.0) -> bytes:
    """Renders a PNG with `scale` pixels per unit of the drawing. The theme `auto` is light."""
    if drawing.width * drawing.height * scale**2 > MAX_PIXELS:
        raise UsageError(
            f"An image of {drawing.width * scale:,.0f} × {drawing.height * scale:,.0f} pixels is too large: "
            "use a smaller --width or --scale."
        )
    if not _has_fonts():
        raise UsageError(
            "No font is installed, so the PNG would have no text: install one (apt-get install "
            "fonts-dejavu-core), or write .svg, which uses the reader's fonts."
        )
    return _render(drawing.svg("dark" if theme == "dark" else "light"), scale)


def _render(svg: str, scale: float) -> bytes:
    resvg_py = import_extra("resvg_py", "Writing PNG", "plots")
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=scale))


@cache
def _has_fonts() -> bool:
    """Whether text is rendered: without a font, the renderer silently leaves it out."""
    from PIL import Image

    probe = SvgDrawing(60, 30, "", "")
    probe.text(4, 20, "Ag 0")
    with Image.open(io.BytesIO(_render(probe.svg("light"), 1))) as image:
        low, high = image.convert("L").crop((4, 4, 56, 26)).getextrema()
        return low != high
