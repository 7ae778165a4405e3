"""Trials that show whether a model decodes in a batch as it does alone."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image as PILImage
from torch import Tensor

from proctor.core.types import Image, Message, Prompt, Text
from proctor.models.inference.decoder import CausalDecoder
from proctor.models.inference.memory import is_out_of_memory
from proctor.models.inference.prompt import TokenizedPrompt
from proctor.models.inference.sequential import generate
from proctor.models.inference.tokenization import PromptEncoder

# How far logits may deviate, relative to their spread: in fp32, and with fewer bits.
EXACT_TOLERANCE, ROUGH_TOLERANCE = 2e-3, 0.1
STEPS = 3  # tokens of a trial
DIFFERENT_LOGITS = "its logits come out differently"


def same_logits(actual: Tensor, expected: Tensor, dtype: torch.dtype) -> bool:
    actual, expected = actual.float(), expected.float()
    tolerance = EXACT_TOLERANCE if dtype == torch.float32 else ROUGH_TOLERANCE
    spread = (expected - expected.mean()).norm()
    return bool((actual - expected).norm() <= tolerance * spread)


def find_batching_obstacle(model: Any, encoder: PromptEncoder) -> str:
    """Why a vision model cannot decode several prompts in one batch; empty if it can."""
    try:
        with torch.inference_mode():
            prompts = [encoder.encode(prompt) for prompt in _make_prompts(encoder)]
            return "" if _matches_in_batch(model, prompts) else DIFFERENT_LOGITS
    except Exception as error:
        if is_out_of_memory(error):
            return "there is no memory to try"
        return f"{type(error).__name__} in a trial"


def _make_prompts(encoder: PromptEncoder) -> list[Prompt]:
    """Prompts of different lengths, with one, several or no images of different sizes."""
    question = "What is in the box?"
    if encoder.no_images_reason:
        return [question, "The quick brown fox jumps over the lazy dog."]
    return [
        (Message("user", (_make_image(96, 64), Text(question))),),
        "Say something.",
        (Message("user", (_make_image(64, 80), _make_image(112, 96), Text(question))),),
    ]


def _make_image(width: int, height: int) -> Image:
    file = io.BytesIO()
    PILImage.linear_gradient("L").resize((width, height)).save(file, "PNG")
    return Image(file.getvalue())


def _matches_in_batch(model: Any, prompts: Sequence[TokenizedPrompt]) -> bool:
    references = [_generate_alone(model, prompt) for prompt in prompts]
    decoder = CausalDecoder(model)
    decoder.admit(prompts, ())
    for step in range(STEPS):
        for row, (_, logits) in enumerate(references):
            if not same_logits(decoder.logits[row], logits[step], model.dtype):
                return False
        decoder.advance(range(len(references)), [tokens[step] for tokens, _ in references])
    return True


def _generate_alone(model: Any, prompt: TokenizedPrompt) -> tuple[list[int], list[Tensor]]:
    """The greedy tokens after a prompt, and their logits."""
    tokens: list[int] = []
    logits: list[Tensor] = []

    def pick(next_logits: Tensor) -> int:
        tokens.append(int(next_logits[0].argmax()))
        logits.append(next_logits[0].clone())
        return tokens[-1]

    generate(model, prompt, STEPS, pick, lambda: False)
    return tokens, logits
