"""Histograms of delays with buckets 2 % wide, which can be merged over episodes."""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct

WIDTH = math.log(1.02)
NS_PER_MS = 1e6
SHORTEST = 1e-4  # milliseconds


class Lags(Struct):
    """Delays of one kind, in milliseconds."""

    counts: dict[int, int] = {}  # bucket -> number of delays
    longest: float = 0.0

    def add(self, nanoseconds: int) -> None:
        ms = max(nanoseconds / NS_PER_MS, SHORTEST)
        bucket = round(math.log(ms) / WIDTH)
        self.counts[bucket] = self.counts.get(bucket, 0) + 1
        self.longest = max(self.longest, ms)

    @property
    def n(self) -> int:
        return sum(self.counts.values())

    def quantile(self, share: float) -> float | None:
        """The delay that this share of all does not exceed, within 1 %."""
        rank = math.ceil(share * self.n)
        cumulative = 0
        for bucket in sorted(self.counts):
            cumulative += self.counts[bucket]
            if cumulative >= rank:
                return min(math.exp(bucket * WIDTH), self.longest)
        return None


def merge_lags(all_lags: Iterable[Lags]) -> Lags:
    total = Lags()
    for lags in all_lags:
        total.longest = max(total.longest, lags.longest)
        for bucket, count in lags.counts.items():
            total.counts[bucket] = total.counts.get(bucket, 0) + count
    return total
