"""The paged KV cache: keys and values of all sequences, in pages of a fixed number of tokens.

A sequence is a list of page numbers: first the pages of its prompt, which completions
of the same prompt share, then its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from proctor.models.inference.memory import is_out_of_memory, release_memory

PAGE = 32  # tokens
RESERVED_BYTES = 2**29  # left free for the activations of a forward pass
PADDING_PAGE = 0  # padding rows write to this page; its content is never read


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
        self.full = False  # memory for more pages has run out
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

    def allocate(self, count: int) -> list[int]:
        start = len(self._free) - count
        pages = self._free[start:]
        del self._free[start:]
        return pages

    def release(self, pages: Iterable[int]) -> None:
        self._free.extend(pages)

    def grow(self, count: int) -> bool:
        """Add `count` pages, or as many as fit into memory; return whether any were added.

        Growing replaces the tensors.
        """
        if self.full:
            return False
        added = count if self._fits(count) else self._find_largest(count)
        if added:
            self._resize(self.count + added)
        return added > 0

    def _find_largest(self, count: int) -> int:
        """Bisect how many of `count` pages fit, and remember that memory is full."""
        self.full = True
        fits, step = 0, count // 2
        while step:
            if self._fits(fits + step):
                fits += step
            step //= 2
        return fits

    def _fits(self, count: int) -> bool:
        """Try to allocate `count` more pages, a second copy of the largest block (resizing
        copies it), and the reserve."""
        largest = max(layer.heads * max(layer.key_width, layer.value_width) for layer in self._layers.values())
        copied = (self.count + count) * largest * PAGE * 4
        size = count * self.bytes_each + copied + RESERVED_BYTES
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
            for blocks, width in ((self.keys, layer.key_width), (self.values, layer.value_width)):
                # Zeros, because a masked value is still multiplied by 0, and NaN * 0 is NaN.
                shape = (count, layer.heads, PAGE, width)
                block = torch.zeros(shape, dtype=layer.dtype, device=self._device)
                if number in blocks:
                    block[: self.count] = blocks[number]
                blocks[number] = block
        self._free.extend(range(self.count, count))
        self.count = count
