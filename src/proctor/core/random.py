"""Random draws as a pure function of integers: the same in every process and Python version.

The generators of the standard library and of numpy may change their streams between
versions; an integer mix cannot, and numpy can compute it for a whole batch at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
SCRAMBLE = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))  # shifts and factors of splitmix64


def _scramble(x: int) -> int:
    """The finaliser of splitmix64: every input bit reaches every output bit."""
    (first, one), (second, two) = SCRAMBLE
    x = ((x ^ (x >> first)) * one) & _MASK
    x = ((x ^ (x >> second)) * two) & _MASK
    return x ^ (x >> 31)


def mix(*parts: int) -> int:
    """Mixes several integers into one 64-bit number; their order matters."""
    state = 0
    for part in parts:
        state = _scramble((state + STEP + (part & _MASK)) & _MASK)
    return state


def name_key(name: str) -> int:
    """A number for a name, to be mixed; unlike hash(), it is the same in every process."""
    state = len(name)
    for byte in name.encode():
        state = _scramble((state + STEP + byte) & _MASK)
    return state


class Stream:
    """The draws 0, 1, 2 … of a key."""

    def __init__(self, *key: int) -> None:
        self._key = mix(*key)
        self._slot = 0

    def below(self, n: int) -> int:
        """A number from 0 to n - 1. The bias of the multiply-shift is below n / 2**64."""
        self._slot += 1
        return (_scramble((self._key + self._slot * STEP) & _MASK) * n) >> 64

    def choice(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def sample(self, items: Sequence[T], k: int) -> list[T]:
        """k different items in random order."""
        pool = list(items)
        for i in range(k):
            j = i + self.below(len(pool) - i)
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:k]

    def first(self, items: Sequence[T], fits: Callable[[T], bool]) -> T:
        """The first item that fits, in random order. Draws one by one, since few draws suffice."""
        pool = list(items)
        while pool:
            item = pool.pop(self.below(len(pool)))
            if fits(item):
                return item
        raise LookupError("no item fits")

    def shuffled(self, items: Sequence[T]) -> list[T]:
        return self.sample(items, len(items))
