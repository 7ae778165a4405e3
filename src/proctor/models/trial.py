"""Trials by which a model shows that it can be decoded in a faster way than its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from proctor.models.decoder import CausalDecoder
from proctor.models.memory import ran_out_of_memory
from proctor.models.passage import Passage
from proctor.models.soloist import generate

EXACT, ROUGH = 2e-3, 0.1  # how far off logits may be, as a share of their spread, with 32 bits and with fewer
STEPS = 3  # tokens that a trial goes on for
DIFFERENT = "its logits come out differently"


def same_logits(found: Tensor, wanted: Tensor, dtype: torch.dtype) -> bool:
    found, wanted = found.float(), wanted.float()
    tolerance = EXACT if dtype == torch.float32 else ROUGH
    return bool((found - wanted).norm() <= tolerance * (wanted - wanted.mean()).norm())


def why_not_together(model: Any, passages: Iterable[Passage]) -> str:
    """Why these cannot be decoded in one batch; nothing where all that is said is what is said of each alone."""
    try:
        with torch.inference_mode():
            return "" if _same_together(model, list(passages)) else DIFFERENT
    except Exception as error:
        return "there is no memory to try" if ran_out_of_memory(error) else f"{type(error).__name__} in a trial"


def _same_together(model: Any, passages: Sequence[Passage]) -> bool:
    said = [_said_alone(model, passage) for passage in passages]
    decoder = CausalDecoder(model)
    decoder.admit(passages, ())
    for step in range(STEPS):
        for row, (_, logits) in enumerate(said):
            if not same_logits(decoder.logits[row], logits[step], model.dtype):
                return False
        decoder.advance(range(len(said)), [tokens[step] for tokens, _ in said])
    return True


def _said_alone(model: Any, passage: Passage) -> tuple[list[int], list[Tensor]]:
    """The likeliest tokens after a passage, and the logits by which they were."""
    tokens: list[int] = []
    logits: list[Tensor] = []

    def pick(expected: Tensor) -> int:
        tokens.append(int(expected[0].argmax()))
        logits.append(expected[0].clone())
        return tokens[-1]

    generate(model, passage, STEPS, pick, lambda: False)
    return tokens, logits
