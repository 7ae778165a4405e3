"""Rows that a model decodes together: what it remembers of each, and what it expects to come next.

A decoder reads prompts (`admit`), says what may come next (`logits`, a row for each completion under way) and reads on
(`advance`). Rows come and go between two steps. What is remembered are the caches that transformers makes: blocks of
rows and columns, in which the tokens of a row stand at its right end, and what lies to their left is masked.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer
from transformers.modeling_outputs import BaseModelOutput

from proctor.errors import UsageError

Tokens = tuple[int, ...]


class Decoder(ABC):
    @property
    @abstractmethod
    def open(self) -> bool:
        """Whether rows can come in now."""

    @property
    @abstractmethod
    def logits(self) -> Tensor:
        """Of the next token, a row for each completion."""

    @abstractmethod
    def admit(self, prompts: Sequence[Tokens], waiting: Collection[Tokens]) -> None:
        """Adds a row for each prompt; equal ones are read once. `waiting` are prompts that will come again."""

    @abstractmethod
    def advance(self, going: Sequence[int], tokens: Sequence[int]) -> None:
        """Keeps these rows only, and reads the next token of each."""

    @abstractmethod
    def clear(self) -> None:
        """Forgets everything, also after a step that broke off in the middle."""


class CausalDecoder(Decoder):
    """A model that goes on with what it has read."""

    def __init__(self, model: Any) -> None:
        self._model = model
        accepted = inspect.signature(model.forward).parameters
        self._takes_positions = "position_ids" in accepted
        # Of a prompt only its end is of interest: the logits of all its tokens may take more memory than the rest.
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        self.clear()

    def clear(self) -> None:
        self._rows: Rows | None = None
        self._read_before: dict[Tokens, Rows] = {}

    @property
    def open(self) -> bool:
        return self._rows is None or self._rows.plain

    @property
    def logits(self) -> Tensor:
        return self._rows.logits if self._rows is not None else torch.empty(0, 0)

    def admit(self, prompts: Sequence[Tokens], waiting: Collection[Tokens]) -> None:
        known = [prompt for prompt in dict.fromkeys(prompts) if prompt in self._read_before]
        new = [prompt for prompt in dict.fromkeys(prompts) if prompt not in self._read_before]
        parts = [self._read_before[prompt].copy() for prompt in known]
        if new:
            read = self._read(new)
            if read.plain:
                self._read_before |= {
                    prompt: read.copy().pick([row]) for row, prompt in enumerate(new) if prompt in waiting
                }
            parts.append(read)
        self._read_before = {prompt: rows for prompt, rows in self._read_before.items() if prompt in waiting}
        order = [*known, *new]
        fresh = parts[0].join(parts[1:]).pick([order.index(prompt) for prompt in prompts])
        self._rows = fresh if self._rows is None else self._rows.join([fresh])

    def advance(self, going: Sequence[int], tokens: Sequence[int]) -> None:
        if self._rows is None or not going:
            self._rows = None
            return
        rows = self._rows.pick(going)
        rows.lengths = [length + 1 for length in rows.lengths]
        rows.columns += 1
        rows.logits = self._step([[token] for token in tokens], rows.lengths, rows.columns, rows.cache).logits[:, -1]

    def _read(self, prompts: Sequence[Tokens]) -> Rows:
        lengths = [len(prompt) for prompt in prompts]
        columns = max(lengths)
        filled = [(0,) * (columns - len(prompt)) + prompt for prompt in prompts]
        output = self._step(filled, lengths, columns, None)
        cache = getattr(output, "past_key_values", None)
        if not hasattr(cache, "reorder_cache"):
            raise UsageError(
                f"{type(self._model).__name__} keeps no cache of a kind that rows can leave: not supported."
            )
        return Rows(cache, output.logits[:, -1], lengths)

    def _step(self, tokens: Sequence[Sequence[int]], lengths: list[int], columns: int, cache: Any) -> Any:
        device = self._model.device
        starts = columns - torch.tensor(lengths, device=device)[:, None]
        places = torch.arange(columns, device=device)[None]
        inputs = {
            "input_ids": torch.tensor(tokens, device=device),
            "attention_mask": (places >= starts).long(),
            "past_key_values": cache,
            "use_cache": True,
            **self._last_only,
        }
        if self._takes_positions:
            inputs["position_ids"] = (places - starts).clamp(min=0)[:, -len(tokens[0]) :]
        return self._model(**inputs)


class Rows:
    """Some rows of a causal model: the cache, and the logits of the next token."""

    def __init__(self, cache: Any, logits: Tensor, lengths: list[int]) -> None:
        self.cache, self.logits, self.lengths = cache, logits, lengths
        self.columns = max(lengths)

    @property
    def plain(self) -> bool:
        """Whether the cache has keys and values and nothing else: only then can its blocks be cut and joined."""
        layers = getattr(self.cache, "layers", [None])
        return all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers)

    def copy(self) -> Rows:
        """The same for a second use. Tensors are shared: none is ever written to, only replaced."""
        twin = copy.copy(self)
        twin.cache = copy.copy(self.cache)
        twin.cache.layers = [copy.copy(layer) for layer in self.cache.layers]
        return twin

    def pick(self, indices: Sequence[int]) -> Rows:
        """Leaves these rows, in this order; one may be picked several times."""
        if list(indices) != list(range(len(self.lengths))):
            chosen = torch.tensor(indices, device=self.logits.device)
            self.cache.reorder_cache(chosen)
            self.logits = self.logits[chosen]
            self.lengths = [self.lengths[index] for index in indices]
            if self.plain:
                self._set_blocks([self])
        return self

    def join(self, others: Sequence[Rows]) -> Rows:
        """Adds the rows of the others."""
        if others:
            parts = [self, *others]
            self.logits = torch.cat([part.logits for part in parts])
            self.lengths = [length for part in parts for length in part.lengths]
            self._set_blocks(parts)
        return self

    def _set_blocks(self, parts: Sequence[Rows]) -> None:
        """Makes one block of those of the parts, no wider than its longest row."""
        self.columns = max(self.lengths)
        for number, layer in enumerate(self.cache.layers):
            layers = [part.cache.layers[number] for part in parts]
            if not layer.is_initialized:  # it looks at the keys and values of another
                continue
            width = self.columns
            if isinstance(layer, DynamicSlidingWindowLayer):
                layer.cumulative_length = self.columns
                width = min(self.columns, layer.sliding_window - 1)
            layer.keys = torch.cat([_aligned(each.keys, width) for each in layers])
            layer.values = torch.cat([_aligned(each.values, width) for each in layers])


def _aligned(block: Tensor, width: int) -> Tensor:
    """The block with so many columns, cut or filled up on the left."""
    missing = width - block.shape[-2]
    return pad(block, (0, 0, missing, 0)) if missing > 0 else block[..., -missing:, :]


class Seq2SeqDecoder(Decoder):
    """An encoder reads the prompt, a decoder begins with nothing. All rows begin together."""

    def __init__(self, model: Any, start: int) -> None:
        self._model, self._start = model, start
        self.clear()

    def clear(self) -> None:
        self._cache: Any = None
        self._states = self._mask = self._logits = torch.empty(0, 0)

    @property
    def open(self) -> bool:
        return self._cache is None

    @property
    def logits(self) -> Tensor:
        return self._logits

    def admit(self, prompts: Sequence[Tokens], waiting: Collection[Tokens]) -> None:
        device = self._model.device
        distinct = list(dict.fromkeys(prompts))
        columns = max(len(prompt) for prompt in distinct)
        # Filled up on the right: an encoder may count its places from the left.
        filled = torch.tensor([prompt + (0,) * (columns - len(prompt)) for prompt in distinct], device=device)
        lengths = torch.tensor([len(prompt) for prompt in distinct], device=device)[:, None]
        mask = (torch.arange(columns, device=device)[None] < lengths).long()
        states = self._model.get_encoder()(input_ids=filled, attention_mask=mask).last_hidden_state
        chosen = torch.tensor([distinct.index(prompt) for prompt in prompts], device=device)
        self._states, self._mask = states[chosen], mask[chosen]
        self._step([self._start] * len(prompts))

    def advance(self, going: Sequence[int], tokens: Sequence[int]) -> None:
        if not going:
            self.clear()
            return
        if len(going) < len(self._states):
            chosen = torch.tensor(going, device=self._model.device)
            self._cache.reorder_cache(chosen)
            self._states, self._mask = self._states[chosen], self._mask[chosen]
        self._step(tokens)

    def _step(self, tokens: Sequence[int]) -> None:
        output = self._model(
            encoder_outputs=BaseModelOutput(last_hidden_state=self._states),
            attention_mask=self._mask,
            decoder_input_ids=torch.tensor(tokens, device=self._model.device)[:, None],
            past_key_values=self._cache,
            use_cache=True,
        )
        self._cache, self._logits = output.past_key_values, output.logits[:, -1]
