"""Finds text and images in frames."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy

from proctor.core.extras import import_extra

Frame = numpy.ndarray[Any, Any]  # rows of red, green and blue
BRIGHT = 150  # of 255: with the edges of small letters, which are darker
# Several would take the processor from the game beside it, most of it to wait for each other.
ONE_THREAD = {f"EngineConfig.onnxruntime.{kind}_op_num_threads": 1 for kind in ("intra", "inter")}
SURE = 0.9  # correlation from which a picture is taken to be there


@cache
def _reader() -> Any:
    """Reads printed text; its models are in its package."""
    rapidocr = import_extra("rapidocr", "reading text from frames", "desktop")
    return rapidocr.RapidOCR(params={"Global.log_level": "error", **ONE_THREAD})  # it would list its models on stderr


def read_text(frame: Frame) -> list[str]:
    """The lines of text that a frame shows, from top to bottom."""
    return list(_reader()(numpy.ascontiguousarray(frame[:, :, ::-1])).txts or ())


def find_text(frame: Frame, wanted: Sequence[str]) -> tuple[list[bool], list[str]]:
    """Which of these the frame shows, and all that was read.

    Where one is missing, the frame is read once more with nothing left but what is bright: letters over what is left
    of a game.
    """
    lines = read_text(frame)
    if not all(shows_text(lines, text) for text in wanted):
        bright = numpy.where(frame.min(axis=2, keepdims=True) > BRIGHT, 0, 255).astype(numpy.uint8)
        lines += [line for line in read_text(bright.repeat(3, axis=2)) if line not in lines]
    return [shows_text(lines, text) for text in wanted], lines


def shows_text(lines: list[str], wanted: str) -> bool:
    """Whether the lines contain it. Case, spaces and signs are not what readers are good at."""
    return plain(wanted) in plain("".join(lines)) or any(plain(wanted) in plain(line) for line in lines)


def plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def shows_picture(frame: Frame, picture: Path) -> float:
    """How well the picture fits where it fits best: 1 is perfect."""
    cv2 = import_extra("cv2", "finding a picture in a frame", "desktop")
    wanted = cv2.imread(str(picture))
    if wanted is None:
        raise ValueError(f"{picture} is no picture that can be read")
    if wanted.shape[0] > frame.shape[0] or wanted.shape[1] > frame.shape[1]:
        return 0.0
    fits = cv2.matchTemplate(numpy.ascontiguousarray(frame[:, :, ::-1]), wanted, cv2.TM_CCOEFF_NORMED)
    return float(fits.max())
