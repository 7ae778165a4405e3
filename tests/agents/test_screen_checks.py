"""Eyes that read: screens with other fonts, sizes and backgrounds, read by the real reader."""

# ruff: noqa: E402 - where something is missing, the reason for the skip comes before the imports

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
from PIL import Image, ImageDraw, ImageFont

from helpers import needs

needs.module("rapidocr", "desktop")

from proctor.agents.windows.screen_checks import SURE, find_text, plain, read_text, shows_picture, shows_text

BOLD = sorted(Path("/usr/share/fonts").rglob("DejaVuSans*.ttf"))  # comes with Chromium, among others


def screen(text: str, size: int, busy: bool, seed: int = 0, bold: bool = False) -> numpy.ndarray[Any, Any]:
    """The end of a game: big letters over what is left of it."""
    image = Image.new("RGB", (640, 480), (30, 30, 60))
    draw = ImageDraw.Draw(image)
    if busy:
        generator = numpy.random.default_rng(size + seed)
        for _ in range(80):
            x, y, width, height = (int(part) for part in generator.integers(0, 640, 4))
            colour = tuple(int(part) for part in generator.integers(10, 130, 3))
            draw.rectangle((x, y, x + width // 4, y + height // 4), fill=colour)
    font = ImageFont.truetype(str(BOLD[0]), size) if bold else ImageFont.load_default(size)
    draw.text((20, 220), text, font=font, fill=(255, 255, 255))
    return numpy.asarray(image)


TEXTS = ("PRESS SPACE TO RETRY", "LAST 12:34", "GAME OVER", "You win!", "SCORE 1070", "Level 12 complete")
SIZES = (18, 26, 34, 42)
FEW = [("PRESS SPACE TO RETRY", 26, True), ("GAME OVER", 42, True)]


def is_read(text: str, size: int, busy: bool, bold: bool) -> bool:
    (found,), lines = find_text(screen(text, size, busy, bold=bold), [text])
    return found and not shows_text(lines, "NEXT LEVEL")


@pytest.mark.parametrize(("text", "size", "busy"), FEW)
def test_end_screens_are_read(text: str, size: int, busy: bool) -> None:
    assert is_read(text, size, busy, bold=False)


@pytest.mark.slow
def test_every_end_screen_is_read() -> None:
    """Six texts, four sizes, two fonts, quiet and busy: 96 of 96."""
    if not BOLD:
        pytest.skip("there is no DejaVu Sans: apt-get install fonts-dejavu-core")
    screens = [(t, s, busy, bold) for t in TEXTS for s in SIZES for busy in (False, True) for bold in (False, True)]
    assert len(screens) == 96
    assert [shown for shown in screens if not is_read(*shown)] == []


def test_nothing_is_read_where_nothing_is_written() -> None:
    assert read_text(numpy.zeros((120, 160, 3), numpy.uint8)) == []


def test_case_spaces_and_signs_do_not_matter() -> None:
    assert plain("Press  SPACE-to_retry!") == "pressspacetoretry"
    assert shows_text(["PRESSSPACE", "TO RETRY"], "press space to retry")
    assert not shows_text(["PRESS"], "press space")


def test_a_picture_is_found_where_it_is(tmp_path: Path) -> None:
    frame = screen("GAME OVER", 48, busy=True)
    Image.fromarray(frame[210:280, 10:310]).save(tmp_path / "wanted.png")
    assert shows_picture(frame, tmp_path / "wanted.png") > 0.999
    assert shows_picture(screen("YOU WIN", 24, busy=True, seed=1), tmp_path / "wanted.png") < SURE
    assert shows_picture(frame[:50], tmp_path / "wanted.png") == 0.0
    with pytest.raises(ValueError, match="no picture"):
        shows_picture(frame, tmp_path / "nothing.png")
