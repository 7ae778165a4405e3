"""Sampling of the next token, for each row by its own settings and its own random draw."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from proctor.core.random import SCRAMBLE, STEP
from proctor.models.base import Sampling
from proctor.models.inference.completion import Completion

NO_TOP_P = 2.0  # more than any sum of probabilities, despite rounding errors


def choose_tokens(logits: Tensor, completions: Sequence[Completion]) -> list[int]:
    """A token per row: the argmax at temperature 0, else a sampled one."""
    tokens = logits.argmax(-1)
    sampled = [row for row, each in enumerate(completions) if each.sampling.temperature > 0]
    if sampled:
        rows = torch.tensor(sampled, device=logits.device)
        settings = [completions[row].sampling for row in sampled]
        probabilities = _probabilities(logits[rows].float(), settings)
        draws = [completions[row].draw() for row in sampled]
        points = torch.tensor(draws, dtype=torch.float64, device=logits.device)
        tokens[rows] = _draw_tokens(probabilities, points)
    chosen: list[int] = tokens.tolist()
    return chosen


def pick(logits: Tensor, temperature: Tensor, top_k: Tensor, top_p: Tensor, draws: Tensor) -> Tensor:
    """Choose tokens entirely on the device, with one setting per row.

    Without a limit, top_k is at least the size of the vocabulary, and top_p is NO_TOP_P.
    """
    scaled = _apply_temperature(logits.float(), temperature)
    sampled = _draw_tokens(_truncate(scaled, top_k, logits.shape[-1], top_p), draws)
    return torch.where(temperature > 0, sampled, logits.argmax(-1))


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
    """Apply temperature, then top_k, then top_p, which is the usual order."""
    device, size = logits.device, logits.shape[-1]
    temperatures = torch.tensor([each.temperature for each in settings], device=device)
    logits = _apply_temperature(logits, temperatures)
    ks = [min(each.top_k or size, size) for each in settings]
    masses = [NO_TOP_P if each.top_p in (None, 1.0) else each.top_p for each in settings]
    return _truncate(
        logits,
        # A limit that no row has costs nothing.
        torch.tensor(ks, device=device) if min(ks) < size else None,
        max((k for k in ks if k < size), default=size),
        torch.tensor(masses, dtype=torch.float64, device=device) if min(masses) < NO_TOP_P else None,
    )


def _apply_temperature(logits: Tensor, temperature: Tensor) -> Tensor:
    # The maximum is subtracted first, so that a temperature near 0 gives no NaN.
    logits = logits - logits.amax(-1, keepdim=True)
    return logits / temperature[:, None].to(logits.dtype)


def _truncate(logits: Tensor, top_k: Tensor | None, max_k: int, top_p: Tensor | None) -> Tensor:
    """The probabilities after top_k and top_p; `max_k` is the largest top_k that is a limit."""
    if top_k is not None:
        # Rows without a limit use the threshold of max_k, and are exempted from it.
        threshold = logits.topk(max_k).values.gather(-1, top_k.clamp(1, max_k)[:, None] - 1)
        unlimited = (top_k >= logits.shape[-1])[:, None]
        logits = logits.masked_fill((logits < threshold) & ~unlimited, -torch.inf)
    probabilities = logits.softmax(-1)
    if top_p is not None:
        descending = probabilities.sort(descending=True).values
        mass_before = descending.double().cumsum(-1) - descending
        nucleus = mass_before < top_p[:, None]
        # Equal probabilities stay or go together, whatever order the sort gives them.
        threshold = descending.masked_fill(~nucleus, torch.inf).amin(-1, keepdim=True)
        probabilities = probabilities.masked_fill(probabilities < threshold, 0)
    return probabilities


def _draw_tokens(probabilities: Tensor, draws: Tensor) -> Tensor:
    """Invert the cumulative distribution, in the order of the vocabulary, at each draw.

    A rounding error of a probability moves the boundary between two tokens by as little.
    """
    ends = probabilities.double().cumsum(-1)
    points = draws[:, None] * ends[:, -1:]
    # right=True: a token of probability 0 is never chosen.
    tokens = torch.searchsorted(ends, points, right=True).squeeze(-1)
    return tokens.clamp(max=probabilities.shape[-1] - 1)
