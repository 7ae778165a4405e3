"""Trials by which a model shows that it can be decoded in a faster way than its own."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image as Picture
from torch import Tensor

from proctor.core.types import Image, Message, Prompt, Text
from proctor.models.inference.decoder import CausalDecoder
from proctor.models.inference.memory import is_out_of_memory
from proctor.models.inference.prompt import TokenizedPrompt
from proctor.models.inference.sequential import generate
from proctor.models.inference.tokenization import PromptEncoder

EXACT_TOLERANCE, ROUGH_TOLERANCE = (
    2e-3,
    0.1,
)  # how far off logits may be, as a share of their spread, with 32 bits and with fewer
STEPS = 3  # tokens that a trial goes on for
DIFFERENT_LOGITS = "its logits come out differently"


def same_logits(found: Tensor, wanted: Tensor, dtype: torch.dtype) -> bool:
    found, wanted = found.float(), wanted.float()
    tolerance = EXACT_TOLERANCE if dtype == torch.float32 else ROUGH_TOLERANCE
    return bool((found - wanted).norm() <= tolerance * (wanted - wanted.mean()).norm())


def find_batching_obstacle(model: Any, reader: PromptEncoder) -> str:
    """Why a model that sees cannot decode several prompts in one batch; nothing where it says of each what it would
    say of it alone."""
    try:
        with torch.inference_mode():
            passages = [reader.read(prompt) for prompt in _make_prompts(reader)]
            return "" if _matches_in_batch(model, passages) else DIFFERENT_LOGITS
    except Exception as error:
        return "there is no memory to try" if is_out_of_memory(error) else f"{type(error).__name__} in a trial"


def _make_prompts(reader: PromptEncoder) -> list[Prompt]:
    """Of different lengths, with pictures of different sizes, one and several and none."""
    question = "What is in the box?"
    if reader.no_images_reason:
        return [question, "The quick brown fox jumps over the lazy dog."]
    return [
        (Message("user", (_make_image(96, 64), Text(question))),),
        "Say something.",
        (Message("user", (_make_image(64, 80), _make_image(112, 96), Text(question))),),
    ]


def _make_image(width: int, height: int) -> Image:
    file = io.BytesIO()
    Picture.linear_gradient("L").resize((width, height)).save(file, "PNG")
    return Image(file.getvalue())


def _matches_in_batch(model: Any, passages: Sequence[TokenizedPrompt]) -> bool:
    said = [_generate_alone(model, passage) for passage in passages]
    decoder = CausalDecoder(model)
    decoder.admit(passages, ())
    for step in range(STEPS):
        for row, (_, logits) in enumerate(said):
            if not same_logits(decoder.logits[row], logits[step], model.dtype):
                return False
        decoder.advance(range(len(said)), [tokens[step] for tokens, _ in said])
    return True


def _generate_alone(model: Any, passage: TokenizedPrompt) -> tuple[list[int], list[Tensor]]:
    """The likeliest tokens after a passage, and the logits by which they were."""
    tokens: list[int] = []
    logits: list[Tensor] = []

    def pick(expected: Tensor) -> int:
        tokens.append(int(expected[0].argmax()))
        logits.append(expected[0].clone())
        return tokens[-1]

    generate(model, passage, STEPS, pick, lambda: False)
    return tokens, logits
