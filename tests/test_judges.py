"""Eyes that read: screens with other fonts, sizes and backgrounds, read by the real reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
from PIL import Image, ImageDraw, ImageFont

pytest.importorskip("rapidocr", reason="the extra desktop is not installed")

from proctor.agents.judges import SURE, find_text, plain, read_text, shows_picture, shows_text


def screen(text: str, size: int, busy: bool, seed: int = 0) -> numpy.ndarray[Any, Any]:
    """The end of a game: big letters over what is left of it."""
    image = Image.new("RGB", (640, 480), (30, 30, 60))
    draw = ImageDraw.Draw(image)
    if busy:
        generator = numpy.random.default_rng(seed)
        for _ in range(60):
            x, y, width, height = generator.integers(0, 640, 4)
            colour = tuple(int(part) for part in generator.integers(20, 120, 3))
            draw.rectangle((int(x), int(y), int(x + width / 4), int(y + height / 4)), fill=colour)
    draw.text((40, 200), text, font=ImageFont.load_default(size), fill=(255, 255, 255))
    return numpy.asarray(image)


@pytest.mark.parametrize("text", ["PRESS SPACE TO RETRY", "LAST 12:34", "GAME OVER", "You win!"])
@pytest.mark.parametrize(("size", "busy"), [(24, False), (24, True), (48, True)])
def test_end_screens_are_read(text: str, size: int, busy: bool) -> None:
    (found,), lines = find_text(screen(text, size, busy), [text])
    assert found, lines
    assert not shows_text(lines, "NEXT LEVEL")


def test_nothing_is_read_where_nothing_is_written() -> None:
    assert read_text(numpy.zeros((120, 160, 3), numpy.uint8)) == []


def test_case_spaces_and_signs_do_not_matter() -> None:
    assert plain("Press  SPACE-to_retry!") == "pressspacetoretry"
    assert shows_text(["PRESSSPACE", "TO RETRY"], "press space to retry")
    assert not shows_text(["PRESS"], "press space")


def test_a_picture_is_found_where_it_is(tmp_path: Path) -> None:
    frame = screen("GAME OVER", 48, busy=True)
    Image.fromarray(frame[190:260, 30:330]).save(tmp_path / "wanted.png")
    assert shows_picture(frame, tmp_path / "wanted.png") > 0.999
    assert shows_picture(screen("YOU WIN", 24, busy=True, seed=1), tmp_path / "wanted.png") < SURE
    assert shows_picture(frame[:50], tmp_path / "wanted.png") == 0.0
    with pytest.raises(ValueError, match="no picture"):
        shows_picture(frame, tmp_path / "nothing.png")
