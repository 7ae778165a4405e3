"""Which token comes next: for each row of a batch by its own settings and its own draw."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from proctor.core.random import SCRAMBLE, STEP
from proctor.models.base import Sampling
from proctor.models.inference.completion import Completion

NO_TOP_P = 2.0  # more than any sum of chances, whatever its rounding errors


def choose_tokens(logits: Tensor, completions: Sequence[Completion]) -> list[int]:
    """A token for each row: the likeliest at temperature 0, else one drawn."""
    tokens = logits.argmax(-1)
    drawing = [row for row, completion in enumerate(completions) if completion.sampling.temperature > 0]
    if drawing:
        rows = torch.tensor(drawing, device=logits.device)
        chances = _probabilities(logits[rows].float(), [completions[row].sampling for row in drawing])
        draws = [completions[row].draw() for row in drawing]
        tokens[rows] = _draw_tokens(chances, torch.tensor(draws, dtype=torch.float64, device=logits.device))
    chosen: list[int] = tokens.tolist()
    return chosen


def pick(logits: Tensor, temperature: Tensor, top_k: Tensor, top_p: Tensor, draws: Tensor) -> Tensor:
    """The same where the settings lie beside the logits, a number for each row, and nothing is to come back.

    Without a limit top_k is the size of the vocabulary or more, and top_p is EVERYTHING.
    """
    drawn = _draw_tokens(
        _truncate(_apply_temperature(logits.float(), temperature), top_k, logits.shape[-1], top_p), draws
    )
    return torch.where(temperature > 0, drawn, logits.argmax(-1))


def draw_uniform(keys: Tensor, positions: Tensor) -> Tensor:
    """Compute `Completion.draw` on the device.

    Keys (`mix(seed)`) and positions are signed 64-bit integers.
    """
    x = keys + positions + _to_signed(STEP)
    for shift, factor in SCRAMBLE:
        x = (x ^ _shift_right(x, shift)) * _to_signed(factor)
    x = x ^ _shift_right(x, 31)
    return _shift_right(x, 12).double() / 2**52


def _to_signed(number: int) -> int:
    """Reinterpret an unsigned 64-bit integer as a signed one."""
    return number - 2**64 if number >= 2**63 else number


def _shift_right(x: Tensor, bits: int) -> Tensor:
    """Shift to the right as an unsigned integer."""
    return (x >> bits) & (2 ** (64 - bits) - 1)


def _probabilities(logits: Tensor, settings: Sequence[Sampling]) -> Tensor:
    """The chance of every token: temperature first, then top_k, then top_p, as everybody does it."""
    device, size = logits.device, logits.shape[-1]
    logits = _apply_temperature(logits, torch.tensor([each.temperature for each in settings], device=device))
    ks = [min(each.top_k or size, size) for each in settings]
    masses = [NO_TOP_P if each.top_p in (None, 1.0) else each.top_p for each in settings]
    return _truncate(
        logits,
        # What nobody asks for costs nothing.
        torch.tensor(ks, device=device) if min(ks) < size else None,
        max((k for k in ks if k < size), default=size),
        torch.tensor(masses, dtype=torch.float64, device=device) if min(masses) < NO_TOP_P else None,
    )


def _apply_temperature(logits: Tensor, temperature: Tensor) -> Tensor:
    # The highest is taken off first, so that a temperature near 0 leaves zeros instead of what is not a number.
    logits = logits - logits.amax(-1, keepdim=True)
    return logits / temperature[:, None].to(logits.dtype)


def _truncate(logits: Tensor, top_k: Tensor | None, most: int, top_p: Tensor | None) -> Tensor:
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


def _draw_tokens(chances: Tensor, draws: Tensor) -> Tensor:
    """The tokens are laid out side by side in the order of the vocabulary, each as wide as its chance.

    One number from [0, 1) points at one of them; a chance that is off by a rounding error moves that by as little.
    """
    ends = chances.double().cumsum(-1)
    points = draws[:, None] * ends[:, -1:]
    # To the right of what ends at the point: a token without any width is never hit.
    return torch.searchsorted(ends, points, right=True).squeeze(-1).clamp(max=chances.shape[-1] - 1)
