"""What a model is given to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class ImageInputs:
    """What a processor has made of the pictures of a prompt: tensors, by the names under which the model takes them."""

    def __init__(self, tensors: dict[str, Any]) -> None:
        self.tensors = tensors


@dataclass(frozen=True)
class TokenizedPrompt:
    """The tokens of a prompt, those that stand for its pictures included.

    Pictures are compared by identity: equal tokens stand for other pictures of the same size too.
    """

    tokens: tuple[int, ...]
    pictures: ImageInputs | None = None
