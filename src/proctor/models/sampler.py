"""Which token comes next: for each row of a batch by its own settings and its own draw."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from proctor.models.completion import Completion
from proctor.models.model import Sampling

EVERYTHING = 2.0  # more than any sum of chances, whatever its rounding errors


def choose(logits: Tensor, completions: Sequence[Completion]) -> list[int]:
    """A token for each row: the likeliest at temperature 0, else one drawn."""
    tokens = logits.argmax(-1)
    drawing = [row for row, completion in enumerate(completions) if completion.sampling.temperature > 0]
    if drawing:
        rows = torch.tensor(drawing, device=logits.device)
        chances = _chances(logits[rows].float(), [completions[row].sampling for row in drawing])
        draws = [completions[row].draw() for row in drawing]
        tokens[rows] = _draw(chances, torch.tensor(draws, dtype=torch.float64, device=logits.device))
    chosen: list[int] = tokens.tolist()
    return chosen


def _chances(logits: Tensor, settings: Sequence[Sampling]) -> Tensor:
    """The chance of every token: temperature first, then top_k, then top_p, as everybody does it."""
    # The highest is taken off first, so that a temperature near 0 leaves zeros instead of what is not a number.
    logits = logits - logits.amax(-1, keepdim=True)
    logits = logits / _column([each.temperature for each in settings], logits)
    size = logits.shape[-1]
    ks = [min(each.top_k or size, size) for each in settings]
    if min(ks) < size:
        # Rows without a limit take the last of those that were looked for, and are let through.
        most = max(k for k in ks if k < size)
        places = torch.tensor([min(k, most) - 1 for k in ks], device=logits.device)
        least = logits.topk(most).values.gather(-1, places[:, None])
        unlimited = torch.tensor([k == size for k in ks], device=logits.device)[:, None]
        logits = logits.masked_fill((logits < least) & ~unlimited, -torch.inf)
    chances = logits.softmax(-1)
    masses = [EVERYTHING if each.top_p in (None, 1.0) else each.top_p for each in settings]
    if min(masses) < EVERYTHING:
        falling = chances.sort(descending=True).values
        ahead = falling.double().cumsum(-1) - falling
        kept = ahead < _column(masses, ahead)
        # Tokens of the same chance stay or go together: which of them comes first is not for a sort to decide.
        least = falling.masked_fill(~kept, torch.inf).amin(-1, keepdim=True)
        chances = chances.masked_fill(chances < least, 0)
    return chances


def _draw(chances: Tensor, draws: Tensor) -> Tensor:
    """The tokens are laid out side by side in the order of the vocabulary, each as wide as its chance.

    One number from [0, 1) points at one of them; a chance that is off by a rounding error moves that by as little.
    """
    ends = chances.double().cumsum(-1)
    points = draws[:, None] * ends[:, -1:]
    # To the right of what ends at the point: a token without any width is never hit.
    return torch.searchsorted(ends, points, right=True).squeeze(-1).clamp(max=chances.shape[-1] - 1)


def _column(values: list[float], like: Tensor) -> Tensor:
    return torch.tensor(values, dtype=like.dtype, device=like.device)[:, None]
