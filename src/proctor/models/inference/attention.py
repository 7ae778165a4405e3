"""Attention over pages, for any model of transformers that lets its attention be chosen.

Such a model looks up how it attends by a name. Under the name here it hands over queries, keys and values of a pass,
and is given what came of them; what a row has said before it does not know. The pass is one of two: prompts that are
read, packed into one row, or a step, in which every row has one new token.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from proctor.models.inference.memory import to_device
from proctor.models.inference.pages import PAGE, Layer, Pages

attend_by_kernel: Any  # None where Triton, which comes with torch for a GPU, is not there
try:
    from proctor.models.inference.kernels import attend as attend_by_kernel
except ImportError:
    attend_by_kernel = None

ATTENTION_NAME = "proctor_pages"


class UnsupportedModelError(Exception):
    """The model does something in its attention that is not known here."""


class AttentionPass(ABC):
    @abstractmethod
    def attend(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float, window: int | None
    ) -> Tensor:
        """From [rows, heads, tokens, width], with fewer heads of keys and values: [rows, tokens, heads, width]."""


_current_pass = threading.local()


@contextmanager
def attending_with(current: AttentionPass) -> Iterator[None]:
    """What a model attends to on this thread."""
    _current_pass.current = current
    try:
        yield
    finally:
        del _current_pass.current


def _attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    dropout: float = 0.0,
    **others: Any,
) -> tuple[Tensor, None]:
    for name in ("softcap", "s_aux", "position_bias", "head_mask"):
        if others.get(name) is not None:
            raise UnsupportedModelError(f"its attention has {name}")
    if attention_mask is not None:
        raise UnsupportedModelError("its attention has a mask of its own")
    current: AttentionPass = _current_pass.current
    width = query.shape[-1]
    return (
        current.attend(
            module.layer_idx, query, key, value, width**-0.5 if scaling is None else scaling, sliding_window
        ),
        None,
    )


# No mask is registered under the name, so none is made: which token sees which is known here.
AttentionInterface.register(ATTENTION_NAME, _attend)


class LayerProbe(AttentionPass):
    """One row, of which nothing is kept: finds out what a model's layers are."""

    def __init__(self) -> None:
        self.layers: dict[int, Layer] = {}
        self.windows: set[int] = set()

    def attend(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float, window: int | None
    ) -> Tensor:
        if layer in self.layers:
            raise UnsupportedModelError("a layer attends more than once")
        self.layers[layer] = Layer(key.shape[1], key.shape[-1], value.shape[-1], key.dtype)
        if window is not None:
            self.windows.add(window)
        return _causal(query, key, value, scaling, window).transpose(1, 2)


class Prefill(AttentionPass):
    """Prompts one after the other in one row; their keys and values go into pages."""

    def __init__(self, pages: Pages, device: torch.device, prompts: Sequence[tuple[Sequence[int], list[int]]]) -> None:
        """Each with its tokens and the pages for them."""
        self._pages = pages
        lengths = torch.tensor([len(tokens) for tokens, _ in prompts], device="cpu")
        place = torch.arange(int(lengths.max()), device="cpu")[None]
        inside = place < lengths[:, None]
        rows, positions = inside.nonzero(as_tuple=True)
        starts = lengths.cumsum(0) - lengths
        most = max(len(numbers) for _, numbers in prompts)
        table = torch.tensor([[*numbers, *[0] * (most - len(numbers))] for _, numbers in prompts], device="cpu")
        self._rows, self.positions = to_device(rows, device), to_device(positions, device)
        # Where the tokens of a prompt lie in the row; behind its end it does not matter.
        self._packed = to_device(torch.where(inside, starts[:, None] + place, 0), device)
        self._numbers, self._offsets = (
            to_device(table[rows, positions // PAGE], device),
            to_device(positions % PAGE, device),
        )

    def attend(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float, window: int | None
    ) -> Tensor:
        self._pages.keys[layer][self._numbers, :, self._offsets] = key[0].transpose(0, 1)
        self._pages.values[layer][self._numbers, :, self._offsets] = value[0].transpose(0, 1)
        out = _causal(self._apart(query), self._apart(key), self._apart(value), scaling, window)
        return out.transpose(1, 2)[self._rows, self.positions][None]

    def _apart(self, tensor: Tensor) -> Tensor:
        """A row for each prompt."""
        return tensor[0][:, self._packed].transpose(0, 1)


class DecodeStep(AttentionPass):
    """One new token for every row: its key and value are stored, and it sees all that the row has."""

    def __init__(self, pages: Pages, tables: Tensor, shared: Tensor, own: Tensor) -> None:
        """For each row its pages, how many tokens of a prompt they begin with, and how many of its own follow."""
        self._pages, self._tables, self._shared, self._own = pages, tables, shared, own
        self._by_kernel = attend_by_kernel is not None and tables.is_cuda
        if not self._by_kernel:
            self._lay_out()

    def _lay_out(self) -> None:
        shared_pages = (self._shared + PAGE - 1) // PAGE
        number = (shared_pages + self._own // PAGE)[:, None]
        self._number = self._tables.gather(1, number).squeeze(1).long()
        column = torch.arange(self._tables.shape[1] * PAGE, device=self._tables.device)[None]
        is_own = column >= (shared_pages * PAGE)[:, None]
        place = torch.where(is_own, column - (shared_pages * PAGE)[:, None], column)
        self._visible = torch.where(is_own, place <= self._own[:, None], place < self._shared[:, None])
        self._age = (self._shared + self._own)[:, None] - torch.where(is_own, self._shared[:, None], 0) - place

    def attend(
        self, layer: int, query: Tensor, key: Tensor, value: Tensor, scaling: float, window: int | None
    ) -> Tensor:
        keys, values = self._pages.keys[layer], self._pages.values[layer]
        if self._by_kernel:
            given = (query, key, value, keys, values, self._tables, self._shared, self._own, scaling, window)
            attended: Tensor = attend_by_kernel(*given)
            return attended[:, None]
        keys[self._number, :, self._own % PAGE] = key[:, :, 0]
        values[self._number, :, self._own % PAGE] = value[:, :, 0]
        visible = self._visible if window is None else self._visible & (self._age < window)
        groups = query.shape[1] // keys.shape[1]
        out = scaled_dot_product_attention(
            query,
            _repeat_heads(self._gathered(keys), groups),
            _repeat_heads(self._gathered(values), groups),
            attn_mask=visible[:, None, None],
            scale=scaling,
        )
        return out.transpose(1, 2)

    def _gathered(self, store: Tensor) -> Tensor:
        """The pages of every row side by side: [rows, heads, tokens, width]."""
        return store[self._tables.long()].transpose(1, 2).flatten(2, 3)


def _causal(query: Tensor, key: Tensor, value: Tensor, scaling: float, window: int | None) -> Tensor:
    groups = query.shape[1] // key.shape[1]
    key, value = _repeat_heads(key, groups), _repeat_heads(value, groups)
    length = query.shape[2]
    if window is None or length <= window:
        return scaled_dot_product_attention(query, key, value, is_causal=True, scale=scaling)
    place = torch.arange(length, device=query.device)
    age = place[:, None] - place[None]
    return scaled_dot_product_attention(query, key, value, attn_mask=(age >= 0) & (age < window), scale=scaling)


def _repeat_heads(tensor: Tensor, groups: int) -> Tensor:
    """Not every kernel knows heads that share their keys."""
    return tensor if groups == 1 else tensor.repeat_interleave(groups, 1)
