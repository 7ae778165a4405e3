"""From figures to places: scales, the round figures on an axis, and how figures are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class Scale(Protocol):
    """Larger figures lie further along, never back."""

    def place(self, x: float) -> float: ...


class Linear(Struct, frozen=True):
    low: float
    high: float
    start: float  # the place of low
    end: float

    def place(self, x: float) -> float:
        # Halved first: the distance of two figures may be more than the largest one.
        span = self.high / 2 - self.low / 2
        if span == 0:
            return (self.start + self.end) / 2
        share = (x / 2 - self.low / 2) / span
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)


class Logarithmic(Struct, frozen=True):
    low: float
    high: float
    start: float
    end: float

    def place(self, x: float) -> float:
        logs = Linear(math.log(self.low), math.log(self.high), self.start, self.end)
        return logs.place(math.log(max(x, self.low)))


def round_steps(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, from the last one not above low to the first one not below high."""
    if not high > low:
        return [low]
    rough = max((high / 2 - low / 2) / max(1, most - 1) * 2, 5e-300)
    start = math.floor(math.log10(rough))
    for power in range(start, min(start + 3, 309)):  # beyond, the steps would be larger than what they are to show
        for factor in (1, 2, 5):
            step = float(f"{factor}e{power}")
            if step < rough * 0.999:
                continue
            first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
            if last - first < most:
                return [round_to(i * step, power) for i in range(first, last + 1)]
    return [low, high]


def round_to(x: float, power: int) -> float:
    return round(x, max(0, -power)) if power > -300 else x


def round_powers(low: float, high: float, most: int) -> list[float]:
    """1, 2, 5, 10, 20 … within the bounds, or powers of ten alone, or every so many of them."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [x for p in powers for f in factors if low * 0.999 <= (x := float(f"{f}e{p}")) <= high * 1.001]
        if 2 <= len(found) <= most:
            return found
    if len(found) < 2:
        return [low, high]
    return found[:: math.ceil(len(found) / max(2, most))]


def bounds_of(values: Sequence[float]) -> tuple[float, float]:
    """Of an axis: 0 to 1 for scores; else all that is to be shown, and 0 if it is not far away."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if low > 0 and low < high / 2:
        low = 0.0
    elif high < 0 and high > low / 2:
        high = 0.0
    if low == high:
        margin = abs(low) / 10 or 1.0
        return low - margin, high + margin
    return low, high


def written(x: float) -> str:
    """A figure as a label of an axis."""
    if x == 0:
        return "0"
    if not 1e-4 <= abs(x) < 1e7:
        return f"{x:.3g}"
    text = f"{x:,.6f}".rstrip("0").rstrip(".") if abs(x) < 1e3 else f"{x:,.1f}".removesuffix(".0")
    return text.replace("-", "−")


def score_text(x: float) -> str:
    """A figure to be read: three places for scores, four digits for what is larger."""
    if abs(x) < 10:
        return f"{x:.3f}".replace("-", "−")
    return (f"{x:,.1f}" if abs(x) < 1e6 else f"{x:.3g}").replace("-", "−")


def duration(ms: float) -> str:
    for unit, size in (("s", 1000.0), ("ms", 1.0)):
        if ms >= size:
            return f"{written(float(f'{ms / size:.3g}'))} {unit}"
    return f"{written(float(f'{ms * 1000:.3g}'))} µs"
