"""Attention over the pages of the KV cache, for models of transformers with pluggable attention.

transformers looks up attention functions by name. The function registered here hands queries,
keys and values to the current pass: a prefill of packed prompts, or a decode step with one new
token per row.
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

attend_by_kernel: Any  # None without Triton, which torch brings along on a GPU
try:
    from proctor.models.inference.kernels import attend as attend_by_kernel
except ImportError:
    attend_by_kernel = None

ATTENTION_NAME = "proctor_pages"


class UnsupportedModelError(Exception):
    """The model's attention does something that paged attention does not support."""


class AttentionPass(ABC):
    @abstractmethod
    def attend(
        self,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scaling: float,
        window: int | None,
    ) -> Tensor:
        """Inputs are [rows, heads, tokens, width], with fewer heads of keys and values;
        the result is [rows, tokens, heads, width]."""


_thread_local = threading.local()


@contextmanager
def attending_with(current: AttentionPass) -> Iterator[None]:
    """Models on this thread attend with this pass."""
    _thread_local.current = current
    try:
        yield
    finally:
        del _thread_local.current


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
    current: AttentionPass = _thread_local.current
    if scaling is None:
        scaling = query.shape[-1] ** -0.5
    return current.attend(module.layer_idx, query, key, value, scaling, sliding_window), None


# Without a mask function of this name transformers makes no mask: the passes mask themselves.
AttentionInterface.register(ATTENTION_NAME, _attend)


class LayerProbe(AttentionPass):
    """Plain attention over one row that records the shapes of the model's layers."""

    def __init__(self) -> None:
        self.layers: dict[int, Layer] = {}
        self.windows: set[int] = set()

    def attend(
        self,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scaling: float,
        window: int | None,
    ) -> Tensor:
        if layer in self.layers:
            raise UnsupportedModelError("a layer attends more than once")
        self.layers[layer] = Layer(key.shape[1], key.shape[-1], value.shape[-1], key.dtype)
        if window is not None:
            self.windows.add(window)
        return _attend_causally(query, key, value, scaling, window).transpose(1, 2)


class Prefill(AttentionPass):
    """Prompts packed into one row; stores their keys and values in pages."""

    def __init__(
        self,
        pages: Pages,
        device: torch.device,
        prompts: Sequence[tuple[Sequence[int], list[int]]],
    ) -> None:
        """Each prompt is its tokens and its page numbers."""
        self._pages = pages
        lengths = torch.tensor([len(tokens) for tokens, _ in prompts], device="cpu")
        position = torch.arange(int(lengths.max()), device="cpu")[None]
        inside = position < lengths[:, None]
        rows, positions = inside.nonzero(as_tuple=True)
        starts = lengths.cumsum(0) - lengths
        width = max(len(numbers) for _, numbers in prompts)
        padded = [[*numbers, *[0] * (width - len(numbers))] for _, numbers in prompts]
        table = torch.tensor(padded, device="cpu")
        self._rows, self.positions = to_device(rows, device), to_device(positions, device)
        # The index of each prompt token in the packed row; padding may have any index.
        packed = torch.where(inside, starts[:, None] + position, 0)
        self._packed = to_device(packed, device)
        self._page_numbers = to_device(table[rows, positions // PAGE], device)
        self._offsets = to_device(positions % PAGE, device)

    def attend(
        self,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scaling: float,
        window: int | None,
    ) -> Tensor:
        index = self._page_numbers, slice(None), self._offsets
        self._pages.keys[layer][index] = key[0].transpose(0, 1)
        self._pages.values[layer][index] = value[0].transpose(0, 1)
        unpacked = self._unpack(query), self._unpack(key), self._unpack(value)
        out = _attend_causally(*unpacked, scaling, window)
        return out.transpose(1, 2)[self._rows, self.positions][None]

    def _unpack(self, tensor: Tensor) -> Tensor:
        """One row per prompt."""
        return tensor[0][:, self._packed].transpose(0, 1)


class DecodeStep(AttentionPass):
    """One new token per row: stores its key and value, and attends to the row's pages."""

    def __init__(self, pages: Pages, tables: Tensor, shared: Tensor, own: Tensor) -> None:
        """Per row: its page table, the tokens of its shared prompt, and its own tokens so far."""
        self._pages, self._tables, self._shared, self._own = pages, tables, shared, own
        self._by_kernel = attend_by_kernel is not None and tables.is_cuda
        if not self._by_kernel:
            self._compute_mask()

    def _compute_mask(self) -> None:
        shared_pages = (self._shared + PAGE - 1) // PAGE
        column = (shared_pages + self._own // PAGE)[:, None]
        self._page_number = self._tables.gather(1, column).squeeze(1).long()
        index = torch.arange(self._tables.shape[1] * PAGE, device=self._tables.device)[None]
        own_start = (shared_pages * PAGE)[:, None]
        shared, own = self._shared[:, None], self._own[:, None]
        is_own = index >= own_start
        position = torch.where(is_own, index - own_start, index)
        self._visible = torch.where(is_own, position <= own, position < shared)
        self._distance = (shared + own) - torch.where(is_own, shared, 0) - position

    def attend(
        self,
        layer: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scaling: float,
        window: int | None,
    ) -> Tensor:
        keys, values = self._pages.keys[layer], self._pages.values[layer]
        if self._by_kernel:
            inputs = (query, key, value, keys, values, self._tables, self._shared, self._own)
            attended: Tensor = attend_by_kernel(*inputs, scaling, window)
            return attended[:, None]
        keys[self._page_number, :, self._own % PAGE] = key[:, :, 0]
        values[self._page_number, :, self._own % PAGE] = value[:, :, 0]
        visible = self._visible if window is None else self._visible & (self._distance < window)
        groups = query.shape[1] // keys.shape[1]
        out = scaled_dot_product_attention(
            query,
            _repeat_heads(self._gather(keys), groups),
            _repeat_heads(self._gather(values), groups),
            attn_mask=visible[:, None, None],
            scale=scaling,
        )
        return out.transpose(1, 2)

    def _gather(self, blocks: Tensor) -> Tensor:
        """Concatenate the pages of each row: [rows, heads, tokens, width]."""
        return blocks[self._tables.long()].transpose(1, 2).flatten(2, 3)


def _attend_causally(query: Tensor, key: Tensor, value: Tensor, scaling: float, window: int | None) -> Tensor:
    groups = query.shape[1] // key.shape[1]
    key, value = _repeat_heads(key, groups), _repeat_heads(value, groups)
    length = query.shape[2]
    if window is None or length <= window:
        return scaled_dot_product_attention(query, key, value, is_causal=True, scale=scaling)
    position = torch.arange(length, device=query.device)
    distance = position[:, None] - position[None]
    mask = (distance >= 0) & (distance < window)
    return scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling)


def _repeat_heads(tensor: Tensor, groups: int) -> Tensor:
    """Expand grouped heads, which not every attention kernel supports."""
    return tensor if groups == 1 else tensor.repeat_interleave(groups, 1)
