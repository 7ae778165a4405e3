"""The turns of a vision model in a window: frame, reply and pressed keys."""

from __future__ import annotations

from msgspec import Struct

from proctor.core.types import Usage


class KeyPress(Struct):
    """Keys that were held together, and for how long."""

    keys: list[str]  # names of VK; empty is a wait
    seconds: float


class Turn(Struct):
    """One request to the model."""

    number: int  # from 1
    prompt: str
    frame: str  # the image file that it saw, beside the log of the episode
    reply: str | None = None  # None: it had not replied when the episode was over
    usage: Usage = Usage()
    seconds: float = 0.0  # until the reply was there
    finish: str = ""  # "length" if the reply reached max_tokens
    readable: bool = False  # whether the reply says what to press
    pressed: list[KeyPress] = []
