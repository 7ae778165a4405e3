"""Which token comes next: for each row of a batch by its own settings and its own draw."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from proctor.core.random import SCRAMBLE, STEP
from proctor.models.base import Sampling
from proctor.models.inference.completion import Completion

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


def pick(logits: Tensor, temperature: Tensor, top_k: Tensor, top_p: Tensor, draws: Tensor) -> Tensor:
    """The same where the settings lie beside the logits, a number for each row, and nothing is to come back.

    Without a limit top_k is the size of the vocabulary or more, and top_p is EVERYTHING.
    """
    drawn = _draw(_cut(_heat(logits.float(), temperature), top_k, logits.shape[-1], top_p), draws)
    return torch.where(temperature > 0, drawn, logits.argmax(-1))


def draw_numbers(keys: Tensor, places: Tensor) -> Tensor:
    """What `Completion.draw` says, where keys (`mix(seed)`) and places lie: integers of 64 bits, signed."""
    x = keys + places + _signed(STEP)
    for shift, factor in SCRAMBLE:
        x = (x ^ _shifted(x, shift)) * _signed(factor)
    x = x ^ _shifted(x, 31)
    return _shifted(x, 12).double() / 2**52


def _signed(number: int) -> int:
    """The number of the same 64 bits that a signed integer can be."""
    return number - 2**64 if number >= 2**63 else number


def _shifted(x: Tensor, places: int) -> Tensor:
    """To the right, as if there were no sign."""
    return (x >> places) & (2 ** (64 - places) - 1)


def _chances(logits: Tensor, settings: Sequence[Sampling]) -> Tensor:
    """The chance of every token: temperature first, then top_k, then top_p, as everybody does it."""
    device, size = logits.device, logits.shape[-1]
    logits = _heat(logits, torch.tensor([each.temperature for each in settings], device=device))
    ks = [min(each.top_k or size, size) for each in settings]
    masses = [EVERYTHING if each.top_p in (None, 1.0) else each.top_p for each in settings]
    return _cut(
        logits,
        # What nobody asks for costs nothing.
        torch.tensor(ks, device=device) if min(ks) < size else None,
        max((k for k in ks if k < size), default=size),
        torch.tensor(masses, dtype=torch.float64, device=device) if min(masses) < EVERYTHING else None,
    )


def _heat(logits: Tensor, temperature: Tensor) -> Tensor:
    # The highest is taken off first, so that a temperature near 0 leaves zeros instead of what is not a number.
    logits = logits - logits.amax(-1, keepdim=True)
    return logits / temperature[:, None].to(logits.dtype)


def _cut(logits: Tensor, top_k: Tensor | None, most: int, top_p: Tensor | None) -> Tensor:
    """The chances without what top_k and top_p leave out; `most` is the greatest top_k that is a limit."""
    if top_k is not None:
        # Rows without a limit take the last of those that were looked for, and are let through.
        least = logits.topk(most).values.gather(-1, top_k.clamp(1, most)[:, None] - 1)
        unlimited = (top_k >= logits.shape[-1])[:, None]
        logits = logits.masked_fill((logits < least) & ~unlimited, -torch.inf)
    chances = logits.softmax(-1)
    if top_p is not None:
        falling = chances.sort(descending=True).values
        ahead = falling.double().cumsum(-1) - falling
        kept = ahead < top_p[:, None]
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
