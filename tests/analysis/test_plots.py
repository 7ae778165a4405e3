"""Plots as SVG and PNG: elements stay inside, labels are escaped, points are at their positions."""

import io
import math
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import Any

import pytest
import resvg_py
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from proctor.analysis.plots import (
    CurveLine,
    Curves,
    Histogram,
    Histograms,
    Plot,
    PlotPoint,
    PlotTooSmallError,
    ScoreGroup,
    ScoreRow,
    Scores,
    Spread,
    Spreads,
    SvgDrawing,
    render_png,
    rendering,
    style_sheet,
)
from proctor.analysis.plots.header import select_labels
from proctor.analysis.plots.scales import Linear, Logarithmic, axis_bounds, format_number, round_powers, round_steps
from proctor.analysis.plots.style import DARK, LIGHT, PlotPalette, Theme
from proctor.analysis.plots.text_layout import shorten, text_width, wrap
from proctor.core.errors import UsageError
from proctor.core.types import Metric
from proctor.metrics.statistics import proportion

SVG = "{http://www.w3.org/2000/svg}"
EVIL = "<script>alert('1')</script>&\"]]>"

finite = st.floats(allow_nan=False, allow_infinity=False)
moderate = st.floats(-1e12, 1e12, allow_nan=False)
names = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [EVIL, "x" * 300, "", "  ", "\0\x0b\ud800\uffff", "漢字モデル" * 12, "🎉" * 40, "a b\tc\nd", "é\u0301" * 60]
    ),
)
numbers = st.one_of(st.none(), st.floats(0, 1), moderate, st.sampled_from([math.inf, -math.inf, math.nan]))
metrics = st.builds(Metric, numbers, numbers, numbers, numbers, st.integers(0, 10**9), st.just("wilson"))
values = st.one_of(
    st.lists(st.one_of(st.integers(-(10**9), 10**9), moderate), min_size=1, max_size=30),
    st.lists(st.one_of(names, st.booleans(), st.none(), st.lists(st.integers(), max_size=3)), min_size=1, max_size=12),
)


@st.composite
def scores(draw: Any) -> Scores:
    rows = st.lists(st.builds(ScoreRow, names, metrics), max_size=6)
    return Scores(draw(names), draw(st.lists(st.builds(ScoreGroup, names, rows), max_size=4)), draw(names))


@st.composite
def curves(draw: Any) -> Curves:
    xs = draw(values)
    line = st.builds(
        CurveLine, names, st.lists(st.builds(PlotPoint, st.sampled_from(xs), metrics), min_size=1, max_size=30)
    )
    chance = st.lists(st.tuples(st.sampled_from(xs), st.floats(0, 1)), max_size=3)
    lines = draw(st.lists(line, min_size=1, max_size=9))
    used = [point.x for line in lines for point in line.points]
    return Curves(draw(names), draw(names), draw(names), lines, [c for c in draw(chance) if c[0] in used], draw(names))


@st.composite
def histograms(draw: Any) -> Histograms:
    run = st.builds(Histogram, names, st.lists(st.floats(0, 1), max_size=20), st.integers(0, 99))
    return Histograms(draw(names), draw(st.lists(run, max_size=4)), draw(names))


@st.composite
def spreads(draw: Any) -> Spreads:
    delays = st.floats(1e-4, 1e9)
    counts = st.dictionaries(delays, st.integers(1, 10**6), min_size=1, max_size=20)

    def spread(label: str, counts: dict[float, int]) -> Spread:
        return Spread(label, counts, min(counts), max(counts), max(counts))

    panels = draw(st.lists(st.builds(spread, names, counts), max_size=4))
    return Spreads(draw(names), panels, draw(names), draw(names))


plots = st.one_of(scores(), curves(), histograms(), spreads())


# -- scales -----------------------------------------------------------------------------------


@given(finite, finite, st.lists(finite, min_size=2))
def test_linear_scale_is_monotonic(one: float, other: float, xs: list[float]) -> None:
    scale = Linear(min(one, other), max(one, other), 10.0, 90.0)
    positions = [scale.position(x) for x in sorted(xs)]
    assert all(a <= b for a, b in pairwise(positions))
    assert all(10 <= x <= 90 for x in positions)


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300), st.lists(finite, min_size=2))
def test_logarithmic_scale_is_monotonic(one: float, other: float, xs: list[float]) -> None:
    scale = Logarithmic(min(one, other), max(one, other), 10.0, 90.0)
    positions = [scale.position(x) for x in sorted(xs)]
    assert all(a <= b for a, b in pairwise(positions))
    assert all(10 <= x <= 90 for x in positions)


@given(moderate, moderate, st.integers(2, 12))
def test_round_steps_enclose_the_range(one: float, other: float, most: int) -> None:
    low, high = sorted((one, other))
    steps = round_steps(low, high, most)
    slack = 1e-6 * max(abs(low), abs(high))
    assert steps[0] <= low + slack
    assert steps[-1] >= high - slack
    assert len(steps) <= most
    assert all(a < b for a, b in pairwise(steps))


def test_round_steps_are_round() -> None:
    assert round_steps(0, 1, 6) == [0, 0.2, 0.4, 0.6, 0.8, 1]
    assert round_steps(0.13, 0.31, 5) == [0.1, 0.2, 0.3, 0.4]
    assert round_steps(-30, 120, 5) == [-50, 0, 50, 100, 150]
    assert round_powers(3, 900, 9) == [5, 10, 20, 50, 100, 200, 500]
    assert round_powers(1e-3, 1e6, 6) == [1e-3, 1e-1, 1e1, 1e3, 1e5]


@given(st.floats(1e-6, 1e9), st.floats(1.01, 1e9), st.integers(2, 12))
def test_round_powers_lie_within_the_range(low: float, ratio: float, most: int) -> None:
    steps = round_powers(low, low * ratio, most)
    assert 1 <= len(steps) <= max(most, 2)
    assert all(low * 0.99 <= step <= low * ratio * 1.01 for step in steps)


def test_axis_of_scores_is_zero_to_one() -> None:
    assert axis_bounds([0.4, 0.6]) == (0, 1)
    assert axis_bounds([20, 35]) == (20, 35)
    assert axis_bounds([2, 35]) == (0, 35)
    assert axis_bounds([-8, -3]) == (-8, 0)
    assert axis_bounds([7, 7]) == (6.3, 7.7)
    assert axis_bounds([]) == (0, 1)


def test_number_formats() -> None:
    assert [format_number(x) for x in (0, 0.2, 1500, 1e6, 1e9, -0.5, 0.00001)] == [
        "0", "0.2", "1,500", "1,000,000", "1e+09", "−0.5", "1e-05",
    ]  # fmt: skip


# -- letters ----------------------------------------------------------------------------------


@given(st.text(), st.floats(0, 300), st.sampled_from(["", "pp-title", "pp-small"]))
def test_shortened_text_fits(text: str, max_width: float, kind: str) -> None:
    assert text_width(shorten(text, max_width, kind), kind) <= max_width
    assert all(text_width(line, kind) <= max_width for line in wrap(text, max_width, kind))


def test_shorten_keeps_both_ends() -> None:
    assert shorten("short", 100) == "short"
    shown = shorten("openai/a-model-with-a-very-long-name-instruct", 180)
    assert shown.startswith("openai/a-m")
    assert shown.endswith("instruct")
    assert "…" in shown


def test_estimated_widths_are_not_below_real_widths() -> None:
    """A common wide face, drawn by the renderer, is no wider than was reckoned."""
    for text in ("The quick brown fox", "scripted/random", "0.123  [0.045, 0.678]", "WWWW mmmm", "iiii llll"):
        drawing = SvgDrawing(600, 40, "", "")
        drawing.text(10, 25, text)
        with Image.open(io.BytesIO(render_png(drawing, scale=1))) as image:
            dark = image.convert("L").point(lambda value: 255 * (value < 128))
            box = dark.getbbox()
            assert box is not None
            assert box[2] - 10 <= text_width(text) + 1, text


@given(st.lists(st.tuples(st.text(max_size=8), st.floats(0, 700)), min_size=1, max_size=12))
def test_axis_labels_do_not_touch(labels: list[tuple[str, float]]) -> None:
    texts, positions = [text for text, _ in labels], [x for _, x in labels]
    chosen = select_labels(texts, positions)
    assert chosen
    for a, b in pairwise(chosen):
        assert positions[b] - positions[a] >= (text_width(texts[a], "pp-small") + text_width(texts[b], "pp-small")) / 2


# -- the frame --------------------------------------------------------------------------------


def texts_of(root: ElementTree.Element) -> Iterator[tuple[str, float, float, float, float]]:
    """Each line of text with its box."""
    for element in root.iter(f"{SVG}text"):
        text = "".join(part or "" for part in (element.text, *(child.tail for child in element)))
        x, y = float(element.get("x", 0)), float(element.get("y", 0))
        wide = text_width(text, element.get("class", ""))
        start = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[element.get("text-anchor", "start")] * wide
        yield text, start, start + wide, y - 10, y + 3


@given(plots, st.integers(240, 1400))
def test_elements_stay_inside_the_drawing(plot: Plot, width: int) -> None:
    drawing = plot.draw(width)
    root = ElementTree.fromstring(drawing.svg())
    assert (float(root.get("width", 0)), float(root.get("height", 0))) == (width, round(drawing.height, 3))
    for text, left, right, top, bottom in texts_of(root):
        assert left >= -0.5, text
        assert right <= width + 0.5, text
        assert top >= 0, text
        assert bottom <= drawing.height, text
    for element in root.iter():
        for name, value in element.attrib.items():
            if name in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height", "d"):
                for number in re.findall(r"[-+.\w]+", value.replace("M", " ").replace("L", " ").replace("Z", " ")):
                    assert -2 <= float(number) <= max(width, drawing.height) + 2, (name, value)


@given(plots, st.integers(240, 1400), st.integers(1, 900))
def test_requested_height_is_used_or_refused(plot: Plot, width: int, height: int) -> None:
    try:
        drawing = plot.draw(width, height)
    except PlotTooSmallError as error:
        match = re.search(r"height of (\d+)", str(error))
        assert match is not None
        least = int(match[1])
        assert least >= height
        assert plot.draw(width, least + 1).height == least + 1
    else:
        assert drawing.height == height


@pytest.mark.parametrize("width", [0, 239, 8001])
def test_bad_width_is_refused(width: int) -> None:
    with pytest.raises(UsageError, match="240 to 8,000 wide"):
        Scores("t", []).draw(width)


@given(plots)
def test_labels_are_escaped(plot: Plot) -> None:
    """Only our own elements, no script, no handler, no style beside the sheet, no address."""
    root = ElementTree.fromstring(plot.draw(400).svg())
    known = {"svg", "title", "desc", "style", "rect", "text", "line", "path", "circle"}
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= known
    for element in root.iter():
        assert not any(name.startswith("on") or name in ("style", "href") for name in element.attrib)
    assert "http" not in (root.findtext(f"{SVG}style") or "")


def test_label_with_markup_is_shown_verbatim() -> None:
    row = ScoreRow(EVIL, proportion(3, 4))
    svg = Scores(EVIL, [ScoreGroup(EVIL, [row])], EVIL).draw(900).svg()
    assert "<script" not in svg
    assert EVIL in [text for text, *_ in texts_of(ElementTree.fromstring(svg))]


def test_plots_have_a_text_alternative() -> None:
    plot = Scores(
        "accuracy", [ScoreGroup("task", [ScoreRow("one", proportion(3, 4)), ScoreRow("two", proportion(0, 4))])]
    )
    root = ElementTree.fromstring(plot.draw().svg())
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "accuracy"
    assert "task, one: 0.750  [0.301, 0.954]; task, two: 0.000" in root.findtext(f"{SVG}desc", "")
    assert "one: 0.750" in root.get("aria-label", "")


# -- looks ------------------------------------------------------------------------------------


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_palette_has_enough_contrast(palette: PlotPalette) -> None:
    assert contrast(palette.ink, palette.surface) >= 7
    assert contrast(palette.muted, palette.surface) >= 4.5
    assert all(contrast(colour, palette.surface) >= 3 for colour in palette.series)


def seen_without(cone: str, colour: str) -> tuple[float, float, float]:
    """As by an eye without the cones for long or middle waves (Viénot, Brettel and Mollon 1999)."""
    red, green, blue = ((int(colour[i : i + 2], 16) / 255) ** 2.2 for i in (1, 3, 5))
    if cone == "long":
        seen = 0.11238 * red + 0.88762 * green, 0.11238 * red + 0.88762 * green, 0.00401 * (red - green) + blue
    else:
        seen = 0.29275 * red + 0.70725 * green, 0.29275 * red + 0.70725 * green, -0.02234 * (red - green) + blue
    return tuple(max(0.0, c) ** (1 / 2.2) for c in seen)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("cone", ["long", "middle"])
def test_first_colours_are_distinct_for_colour_blindness(palette: PlotPalette, cone: str) -> None:
    seen = [seen_without(cone, colour) for colour in palette.series[:3]]
    for i, one in enumerate(seen):
        for other in seen[:i]:
            assert math.dist(one, other) > 0.1


def test_auto_theme_follows_the_system() -> None:
    auto = style_sheet("auto")
    assert "@media (prefers-color-scheme:dark)" in auto
    assert f"--pp-ink:{LIGHT.ink}" in auto
    assert f"--pp-ink:{DARK.ink}" in auto
    themes: list[tuple[Theme, PlotPalette]] = [("light", LIGHT), ("dark", DARK)]
    for theme, palette in themes:
        assert "var(" not in style_sheet(theme)
        assert f"fill:{palette.surface}" in style_sheet(theme)
    for rule in re.findall(r"[^{}]+(?=\{)", auto):
        assert rule.startswith((".proctor-plot", "@media")), "the style of a plot is the style of nothing else"


def test_svg_without_theme_has_no_style() -> None:
    drawing = Scores("t", [ScoreGroup("", [ScoreRow("a", proportion(1, 2))])]).draw()
    assert "<style>" not in drawing.svg(None)
    assert "pp-point" in drawing.svg(None)


# -- PNG --------------------------------------------------------------------------------------


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def opened(content: bytes) -> Image.Image:
    with Image.open(io.BytesIO(content)) as image:
        return image.convert("RGB")


LINES = Curves(
    "accuracy by size",
    "size",
    "accuracy",
    [
        CurveLine(f"model {i}", [PlotPoint(x, proportion(90 - 20 * i - 2 * x, 100)) for x in (1, 5, 10)])
        for i in range(4)
    ],
    [(1, 0.25), (10, 0.1)],
)


@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK), ("auto", LIGHT)])
def test_png_has_points_at_their_positions(theme: Any, palette: PlotPalette) -> None:
    drawing = LINES.draw(500)
    image = opened(render_png(drawing, theme, 2))
    assert image.size == (1000, 2 * drawing.height)
    assert image.getpixel((1, 1)) == rgb(palette.surface)
    root = ElementTree.fromstring(drawing.svg())
    circles = list(root.iter(f"{SVG}circle"))
    assert len(circles) == 4, "three points of the first line, and its mark in the legend"
    for circle in circles:
        position = round(2 * float(circle.attrib["cx"])), round(2 * float(circle.attrib["cy"]))
        assert image.getpixel(position) == rgb(palette.series[0])
    colours = image.getcolors(1 << 20)
    assert colours is not None
    rendered = {colour for _, colour in colours}
    assert {rgb(colour) for colour in palette.series[:4]} <= rendered
    assert rgb(palette.ink) in rendered, "letters"


def test_bar_heights_match_their_shares() -> None:
    plot = Histograms("scores", [Histogram("a", [0.0] * 30 + [1.0] * 10)])
    drawing = plot.draw(500)
    image = opened(render_png(drawing, scale=1))
    counts: dict[str, list[int]] = {}
    for x in range(image.width):
        column = sum(image.getpixel((x, y)) == rgb(LIGHT.series[0]) for y in range(image.height))
        if column:
            counts.setdefault("left" if x < 250 else "right", []).append(column)
    assert fmean(counts["left"]) / fmean(counts["right"]) == pytest.approx(3, rel=0.1)


def test_png_without_fonts_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resvg_py, "svg_to_bytes", partial(resvg_py.svg_to_bytes, skip_system_fonts=True))
    rendering._has_fonts.cache_clear()
    try:
        with pytest.raises(UsageError, match=r"No font is installed.*fonts-dejavu-core"):
            render_png(LINES.draw())
    finally:
        rendering._has_fonts.cache_clear()


def test_too_large_png_is_refused() -> None:
    with pytest.raises(UsageError, match="too large"):
        render_png(LINES.draw(8000, 4000), scale=4)
