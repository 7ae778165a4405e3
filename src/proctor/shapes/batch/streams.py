"""Many random streams drawn from in step: row by row the same numbers as `proctor.core.random.Stream` draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from proctor.core.random import SCRAMBLE, STEP, mix

Integers = NDArray[np.int64]
Unsigned = NDArray[np.uint64]

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def _scramble(x: Unsigned) -> Unsigned:
    """As in `proctor.core.random`, in place."""
    for shift, factor in SCRAMBLE:
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    x ^= x >> np.uint64(31)
    return x


def mix_rows(*parts: int, last: Integers) -> Unsigned:
    """`mix` of the same parts with a last one for each row."""
    # Integers of numpy wrap around at 64 bits, which is what the mask does in the other place.
    return _scramble(last.astype(np.uint64) + np.uint64((mix(*parts) + STEP) % 2**64))


class Streams:
    """Draws number 0, 1, 2 … of a key for each row. Rows that have drawn differently often go on where they are."""

    def __init__(self, keys: Unsigned) -> None:
        self._keys = keys
        self.drawn: int | Unsigned = 0

    @classmethod
    def seeded(cls, keys: Unsigned) -> Streams:
        """As `Stream(key)` for each row."""
        return cls(_scramble(keys + np.uint64(STEP)))

    def __len__(self) -> int:
        return len(self._keys)

    def part(self, rows: NDArray[np.intp]) -> Streams:
        """The streams of some rows, to be drawn from alone. The whole does not notice."""
        part = Streams(self._keys[rows])
        part.drawn = self.drawn if isinstance(self.drawn, int) else self.drawn[rows]
        return part

    def put_back(self, rows: NDArray[np.intp], part: Streams) -> None:
        """These rows continue where the part has stopped, which was taken from them."""
        if len(rows) == len(self):
            self.drawn = part.drawn
            return
        drawn = np.full(len(self), self.drawn, np.uint64) if isinstance(self.drawn, int) else self.drawn.copy()
        drawn[rows] = part.drawn
        self.drawn = drawn

    def skip(self, draws: int) -> None:
        self.drawn = self.drawn + draws if isinstance(self.drawn, int) else self.drawn + np.uint64(draws)

    def below(self, n: int | Integers) -> Integers:
        """A number from 0 to n − 1 for each row, for n below 2**32."""
        self.skip(1)
        if isinstance(self.drawn, int):
            x = _scramble(self._keys + np.uint64(self.drawn * STEP % 2**64))
        else:
            x = _scramble(self._keys + self.drawn * np.uint64(STEP))
        limit = np.uint64(n) if isinstance(n, int) else n.astype(np.uint64)
        # The upper half of a product of 128 bits, put together from its parts.
        high, low = x >> _HALF, x & _LOW
        return ((high * limit + (low * limit >> _HALF)) >> _HALF).astype(np.int64)

    def sample(self, pool: int | Integers, k: int) -> Integers:
        """k different ones of range(pool), or of the row's own pool, in random order."""
        rows = len(self)
        columns = np.repeat(np.arange(pool), rows).reshape(pool, rows) if isinstance(pool, int) else pool.T.copy("C")
        flat, row = columns.reshape(-1), np.arange(rows)
        for i in range(k):
            place = self.below(len(columns) - i)
            place += i
            place *= rows
            place += row
            chosen = flat[place]
            flat[place] = columns[i]
            columns[i] = chosen
        return columns[:k].T.copy("C")

    def shuffled(self, items: Integers) -> Integers:
        return self.sample(items, items.shape[1])


def pick(fitting: NDArray[np.bool_], number: Integers) -> Integers:
    """The column of each row's n-th fitting entry, counted from 0."""
    passed = np.cumsum(fitting, axis=1, dtype=np.int16) <= number[:, None].astype(np.int16)
    column: Integers = np.count_nonzero(passed, axis=1)
    return column


def choose(fitting: NDArray[np.bool_], streams: Streams) -> Integers:
    """One of each row's fitting columns, all equally likely: `Stream.choice` among them."""
    return pick(fitting, streams.below(np.count_nonzero(fitting, axis=1)))


# For each byte, how many bits are set, and which is the n-th of them.
_BYTES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
BITS = _BYTES.sum(axis=1, dtype=np.int64)
NTH_BIT = np.argsort(1 - _BYTES.astype(np.int8), axis=1, kind="stable")


def choose_bit(sets: Integers, streams: Streams) -> Integers:
    """One of the bits that are set in each row, all equally likely. A row may be a single number, or several."""
    parts = np.ascontiguousarray(sets.astype("<i8", copy=False)).view(np.uint8).reshape(len(sets), -1)
    bits = BITS[parts]
    passed = np.cumsum(bits, axis=1)
    number, row = streams.below(passed[:, -1]), np.arange(len(sets))
    at: Integers = np.count_nonzero(passed <= number[:, None], axis=1)
    bit: Integers = 8 * at + NTH_BIT[parts[row, at], number - passed[row, at] + bits[row, at]]
    return bit
