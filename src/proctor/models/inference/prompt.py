"""The tokenized input of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class ImageInputs:
    """The tensors that a processor makes of a prompt's images, by the model's argument names."""

    def __init__(self, tensors: dict[str, Any]) -> None:
        self.tensors = tensors


@dataclass(frozen=True)
class TokenizedPrompt:
    """The tokens of a prompt, including its image tokens.

    Images compare by identity: different images of one size have equal tokens.
    """

    tokens: tuple[int, ...]
    images: ImageInputs | None = None
