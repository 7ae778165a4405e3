"""What a model that plays in a window was shown, what it replied, and what was pressed for it."""

from __future__ import annotations

from msgspec import Struct

from proctor.core.types import Usage


class KeyPress(Struct):
    """Keys that were held together, and for how long they were."""

    keys: list[str]  # names of VK; none is a wait
    seconds: float


class Turn(Struct):
    """One question to the model."""

    number: int  # from 1
    prompt: str
    frame: str  # the image file that it was shown, beside the log of the episode
    reply: str | None = None  # None: it had not replied when the episode was over
    usage: Usage = Usage()
    seconds: float = 0.0  # until the reply was there
    finish: str = ""  # "length" if the reply reached max_tokens
    readable: bool = False  # whether the reply says what to press
    pressed: list[KeyPress] = []
