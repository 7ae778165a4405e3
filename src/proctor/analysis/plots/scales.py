"""Scales: from numbers to positions, round numbers for an axis, and number formats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class Scale(Protocol):
    """A monotonic map from numbers to positions."""

    def position(self, x: float) -> float: ...


class Linear(Struct, frozen=True):
    low: float
    high: float
    start: float  # the position of low
    end: float

    def position(self, x: float) -> float:
        # Halved first: the difference of two floats may overflow.
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

    def position(self, x: float) -> float:
        logs = Linear(math.log(self.low), math.log(self.high), self.start, self.end)
        return logs.position(math.log(max(x, self.low)))


def round_steps(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten that enclose low and high."""
    if not high > low:
        return [low]
    rough = max((high / 2 - low / 2) / max(1, most - 1) * 2, 5e-300)
    start = math.floor(math.log10(rough))
    for power in range(start, min(start + 3, 309)):  # larger steps would exceed the range
        for factor in (1, 2, 5):
            step = float(f"{factor}e{power}")
            if step < rough * 0.999:
                continue
            first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
            if last - first < most:
                return [round_to_power(i * step, power) for i in range(first, last + 1)]
    return [low, high]


def round_to_power(x: float, power: int) -> float:
    return round(x, max(0, -power)) if power > -300 else x


def round_powers(low: float, high: float, most: int) -> list[float]:
    """1, 2, 5, 10, 20 … within the bounds; fewer of them or every n-th power of ten if too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        steps = [x for p in powers for f in factors if low * 0.999 <= (x := float(f"{f}e{p}")) <= high * 1.001]
        if 2 <= len(steps) <= most:
            return steps
    if len(steps) < 2:
        return [low, high]
    return steps[:: math.ceil(len(steps) / max(2, most))]


def axis_bounds(values: Sequence[float]) -> tuple[float, float]:
    """The bounds of an axis: 0 to 1 for scores; else the range of the values, with 0 if it is near."""
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


def format_number(x: float) -> str:
    """A number as the label of an axis."""
    if x == 0:
        return "0"
    if not 1e-4 <= abs(x) < 1e7:
        return f"{x:.3g}"
    text = f"{x:,.6f}".rstrip("0").rstrip(".") if abs(x) < 1e3 else f"{x:,.1f}".removesuffix(".0")
    return text.replace("-", "−")


def format_score(x: float) -> str:
    """A score with three decimals; a larger number with one or with three digits."""
    if abs(x) < 10:
        return f"{x:.3f}".replace("-", "−")
    return (f"{x:,.1f}" if abs(x) < 1e6 else f"{x:.3g}").replace("-", "−")


def format_duration(ms: float) -> str:
    for unit, size in (("s", 1000.0), ("ms", 1.0)):
        if ms >= size:
            return f"{format_number(float(f'{ms / size:.3g}'))} {unit}"
    return f"{format_number(float(f'{ms * 1000:.3g}'))} µs"
