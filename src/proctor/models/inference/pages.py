"""The keys and values of everything that is under way, in pages of a fixed number of tokens.

A sequence is a list of pages, wherever they lie: those of its prompt, which it shares with others, then its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from proctor.models.inference.memory import is_out_of_memory, release_memory

PAGE = 32  # tokens
RESERVED_BYTES = 2**29  # bytes that are left for what a pass needs besides
PADDING_PAGE = 0  # the page of rows that are nobody's: written to, and never looked at


class Layer(NamedTuple):
    heads: int  # of keys and values
    key_width: int
    value_width: int
    dtype: torch.dtype


def pages_for(tokens: int) -> int:
    return -(-tokens // PAGE)


class Pages:
    def __init__(self, layers: dict[int, Layer], device: torch.device) -> None:
        self._layers, self._device = layers, device
        self.keys: dict[int, Tensor] = {}  # of each layer: pages, heads, tokens, width
        self.values: dict[int, Tensor] = {}
        self._free: list[int] = []
        self.full = False  # there is no memory for more
        self.count = 0
        self._resize(1)
        self._free.remove(PADDING_PAGE)

    @property
    def free(self) -> int:
        return len(self._free)

    @property
    def bytes_each(self) -> int:
        return sum(
            PAGE * layer.heads * (layer.key_width + layer.value_width) * layer.dtype.itemsize
            for layer in self._layers.values()
        )

    def take(self, count: int) -> list[int]:
        taken = self._free[len(self._free) - count :]
        del self._free[len(self._free) - count :]
        return taken

    def give(self, pages: Iterable[int]) -> None:
        self._free.extend(pages)

    def grow(self, wanted: int) -> bool:
        """Adds so many pages, or as many as there is memory for; false when there is none for a single one.

        The tensors are others afterwards.
        """
        if self.full:
            return False
        fits = wanted if self._try(wanted) else self._most_of(wanted)
        if fits:
            self._resize(self.count + fits)
        return fits > 0

    def _most_of(self, wanted: int) -> int:
        """How many of so many there is memory for, found by halving; that they are not all is remembered."""
        self.full = True
        fits, step = 0, wanted // 2
        while step:
            if self._try(fits + step):
                fits += step
            step //= 2
        return fits

    def _try(self, wanted: int) -> bool:
        """Whether there is memory for so many more, for the largest block twice while it is copied, and to spare."""
        largest = max(layer.heads * max(layer.key_width, layer.value_width) for layer in self._layers.values())
        size = wanted * self.bytes_each + (self.count + wanted) * largest * PAGE * 4 + RESERVED_BYTES
        try:
            torch.empty(size, dtype=torch.uint8, device=self._device)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            return False
        finally:
            release_memory()
        return True

    def _resize(self, count: int) -> None:
        for number, layer in self._layers.items():
            for store, width in ((self.keys, layer.key_width), (self.values, layer.value_width)):
                # Zeros: what is masked is multiplied by nothing all the same, and what is not a number would stay that.
                block = torch.zeros(count, layer.heads, PAGE, width, dtype=layer.dtype, device=self._device)
                if number in store:
                    block[: self.count] = store[number]
                store[number] = block
        self._free.extend(range(self.count, count))
        self.count = count
