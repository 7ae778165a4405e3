"""The style of plots: a light and a dark palette, and the style sheet."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

Theme = Literal["light", "dark", "auto"]
THEMES: tuple[Theme, ...] = get_args(Theme)
ROOT = "proctor-plot"  # the prefix of all rules, so that they style nothing else on a page

TITLE, TEXT, SMALL = 15.0, 12.0, 11.0  # font sizes


class PlotPalette(Struct, frozen=True):
    surface: str
    ink: str
    muted: str
    axis: str
    grid: str
    series: tuple[str, ...]  # safe for colour blindness, with a contrast of at least 3 : 1


LIGHT = PlotPalette(
    surface="#ffffff",
    ink="#1b1f24",
    muted="#57606a",
    axis="#8c959f",
    grid="#e4e7eb",
    series=("#0072b2", "#d55e00", "#00805c", "#aa4499", "#8a6d00", "#4d5866"),
)
DARK = PlotPalette(
    surface="#15181d",
    ink="#eceff3",
    muted="#a9b2bd",
    axis="#77818d",
    grid="#2c323a",
    series=("#56b4e9", "#f28e4b", "#2fc39a", "#e08ac4", "#e6c84a", "#b4bcc6"),
)
SERIES = len(LIGHT.series)


def style_sheet(theme: Theme) -> str:
    """The rules of a theme. `auto` follows the system through custom properties, which a page may set."""
    if theme != "auto":
        return _rules(DARK if theme == "dark" else LIGHT)
    named = PlotPalette(
        surface="var(--pp-surface)",
        ink="var(--pp-ink)",
        muted="var(--pp-muted)",
        axis="var(--pp-axis)",
        grid="var(--pp-grid)",
        series=tuple(f"var(--pp-series-{i})" for i in range(SERIES)),
    )
    light, dark = (f".{ROOT}{{{_properties(palette)}}}" for palette in (LIGHT, DARK))
    return f"{light}@media (prefers-color-scheme:dark){{{dark}}}{_rules(named)}"


def _properties(palette: PlotPalette) -> str:
    plain = {name: getattr(palette, name) for name in ("surface", "ink", "muted", "axis", "grid")}
    numbered = {f"series-{i}": colour for i, colour in enumerate(palette.series)}
    return ";".join(f"--pp-{name}:{colour}" for name, colour in {**plain, **numbered}.items())


def _rules(palette: PlotPalette) -> str:
    family = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','DejaVu Sans',Arial,sans-serif"
    rules = {
        "text": f"font-family:{family};font-size:{TEXT:g}px;font-variant-numeric:tabular-nums;fill:{palette.ink}",
        ".pp-surface": f"fill:{palette.surface}",
        ".pp-title": f"font-size:{TITLE:g}px;font-weight:600",
        ".pp-strong": "font-weight:600",
        ".pp-muted": f"fill:{palette.muted}",
        ".pp-small": f"font-size:{SMALL:g}px;fill:{palette.muted}",
        ".pp-grid": f"stroke:{palette.grid};stroke-width:1;fill:none",
        ".pp-axis": f"stroke:{palette.axis};stroke-width:1;fill:none",
        ".pp-mark": f"stroke:{palette.ink};stroke-width:1.5;fill:none",
        ".pp-dashed": f"stroke:{palette.muted};stroke-width:1.5;stroke-dasharray:5 4;fill:none",
        ".pp-line": "stroke-width:2;stroke-linejoin:round;stroke-linecap:round;fill:none",
        ".pp-interval": "stroke-width:2;stroke-linecap:round;fill:none",
        ".pp-band": "fill-opacity:.16",
        ".pp-faint": "fill-opacity:.07",
        ".pp-point": f"stroke:{palette.surface};stroke-width:1.5",
    }
    for i, colour in enumerate(palette.series):
        rules[f".pp-fill-{i}"] = f"fill:{colour}"
        rules[f".pp-stroke-{i}"] = f"stroke:{colour}"
    return "".join(f".{ROOT} {selector}{{{rule}}}" for selector, rule in rules.items())
