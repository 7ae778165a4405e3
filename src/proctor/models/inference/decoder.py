"""Decoders that hold the rows of a batch: their caches, and the logits of their next tokens.

A decoder prefills prompts (`admit`), exposes one row of `logits` per completion, and appends
the chosen tokens (`advance`). Rows join and leave between two steps. The caches are those of
transformers: blocks of rows and columns, padded and masked on the left.
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

from proctor.core.errors import UsageError
from proctor.models.inference.prompt import ImageInputs, TokenizedPrompt


class Decoder(ABC):
    @property
    @abstractmethod
    def accepts_rows(self) -> bool:
        """Whether rows can join now."""

    @property
    @abstractmethod
    def logits(self) -> Tensor:
        """Of the next token, one row per completion."""

    @abstractmethod
    def admit(self, prompts: Sequence[TokenizedPrompt], waiting: Collection[TokenizedPrompt]) -> None:
        """Add a row per prompt and prefill each distinct prompt once; `waiting` prompts will
        be admitted again."""

    @abstractmethod
    def advance(self, kept: Sequence[int], tokens: Sequence[int]) -> None:
        """Drop all other rows, and append one token to each kept row."""

    @abstractmethod
    def clear(self) -> None:
        """Drop all state, also after a failed step."""


class CausalDecoder(Decoder):
    """A decoder-only model."""

    def __init__(self, model: Any) -> None:
        self._model = model
        parameters = inspect.signature(model.forward).parameters
        self._takes_positions = "position_ids" in parameters
        # The logits of all prompt tokens may take more memory than everything else.
        self._last_logits = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}
        self.clear()

    def clear(self) -> None:
        self._rows: Rows | None = None
        self._prefilled: dict[TokenizedPrompt, Rows] = {}

    @property
    def accepts_rows(self) -> bool:
        return self._rows is None or self._rows.mergeable

    @property
    def logits(self) -> Tensor:
        return self._rows.logits if self._rows is not None else torch.empty(0, 0)

    def admit(self, prompts: Sequence[TokenizedPrompt], waiting: Collection[TokenizedPrompt]) -> None:
        known = [prompt for prompt in dict.fromkeys(prompts) if prompt in self._prefilled]
        new = [prompt for prompt in dict.fromkeys(prompts) if prompt not in self._prefilled]
        parts = [self._prefilled[prompt].copy() for prompt in known]
        # Image tensors have different shapes, so a prompt with images is prefilled alone.
        texts = [prompt for prompt in new if prompt.images is None]
        with_images = [prompt for prompt in new if prompt.images is not None]
        for group in ([texts] if texts else []) + [[prompt] for prompt in with_images]:
            rows = self._prefill(group)
            if rows.mergeable:
                self._prefilled |= {
                    prompt: rows.copy().pick([row]) for row, prompt in enumerate(group) if prompt in waiting
                }
            parts.append(rows)
        self._prefilled = {prompt: rows for prompt, rows in self._prefilled.items() if prompt in waiting}
        order = [*known, *texts, *with_images]
        joining = parts[0].join(parts[1:]).pick([order.index(prompt) for prompt in prompts])
        self._rows = joining if self._rows is None else self._rows.join([joining])

    def advance(self, kept: Sequence[int], tokens: Sequence[int]) -> None:
        if self._rows is None or not kept:
            self._rows = None
            return
        rows = self._rows.pick(kept)
        rows.lengths = [length + 1 for length in rows.lengths]
        rows.columns += 1
        columns = [[token] for token in tokens]
        output = self._forward(columns, rows.lengths, rows.columns, rows.cache, rows.shifts)
        rows.logits = output.logits[:, -1]

    def _prefill(self, prompts: Sequence[TokenizedPrompt]) -> Rows:
        """Prefill several text prompts, or one prompt with images."""
        lengths = [len(prompt.tokens) for prompt in prompts]
        columns = max(lengths)
        padded = [(0,) * (columns - len(prompt.tokens)) + prompt.tokens for prompt in prompts]
        shifts = [0] * len(prompts)
        images = prompts[0].images
        image_inputs = as_model_inputs(images, self._model) if images is not None else {}
        output = self._forward(padded, lengths, columns, None, shifts, **image_inputs)
        cache = getattr(output, "past_key_values", None)
        if not hasattr(cache, "reorder_cache"):
            raise UsageError(f"{type(self._model).__name__} is not supported: rows cannot leave its cache.")
        deltas = getattr(self._model.base_model, "rope_deltas", None)
        if image_inputs and deltas is not None:  # else they are those of an earlier prompt
            shifts = deltas[:, 0].tolist()
        return Rows(cache, output.logits[:, -1], lengths, shifts)

    def _forward(
        self,
        tokens: Sequence[Sequence[int]],
        lengths: list[int],
        columns: int,
        cache: Any,
        shifts: list[int],
        **image_inputs: Any,
    ) -> Any:
        device = self._model.device
        starts = columns - torch.tensor(lengths, device=device)[:, None]
        indices = torch.arange(columns, device=device)[None]
        inputs = {
            "input_ids": torch.tensor(tokens, device=device),
            "attention_mask": (indices >= starts).long(),
            "past_key_values": cache,
            "use_cache": True,
            **self._last_logits,
            **image_inputs,
        }
        if self._takes_positions and not image_inputs:  # the model positions image tokens itself
            positions = (indices - starts).clamp(min=0)[:, -len(tokens[0]) :]
            if any(shifts):
                positions = positions + torch.tensor(shifts, device=device)[:, None]
            inputs["position_ids"] = positions
        return self._model(**inputs)


def as_model_inputs(images: ImageInputs, model: Any) -> dict[str, Any]:
    """The tensors on the model's device, floats in the model's dtype."""
    return {
        name: value.to(model.device, model.dtype if value.is_floating_point() else value.dtype)
        if isinstance(value, Tensor)
        else value
        for name, value in images.tensors.items()
    }


class Rows:
    """Rows of a causal model: their cache, and the logits of their next tokens."""

    def __init__(self, cache: Any, logits: Tensor, lengths: list[int], shifts: list[int]) -> None:
        """``shifts``: a next token's position minus the number of tokens before it.

        With two-dimensional positions, an image has fewer positions than tokens.
        """
        self.cache, self.logits, self.lengths, self.shifts = cache, logits, lengths, shifts
        self.columns = max(lengths)

    @property
    def mergeable(self) -> bool:
        """Whether the cache holds only keys and values, whose blocks can be cut and joined."""
        layers = getattr(self.cache, "layers", [None])
        return all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in layers)

    def copy(self) -> Rows:
        """A copy that shares tensors, which are only ever replaced, never written to."""
        copied = copy.copy(self)
        copied.cache = copy.copy(self.cache)
        copied.cache.layers = [copy.copy(layer) for layer in self.cache.layers]
        return copied

    def pick(self, indices: Sequence[int]) -> Rows:
        """Select rows in this order; an index may repeat."""
        if list(indices) != list(range(len(self.lengths))):
            chosen = torch.tensor(indices, device=self.logits.device)
            self.cache.reorder_cache(chosen)
            self.logits = self.logits[chosen]
            self.lengths = [self.lengths[index] for index in indices]
            self.shifts = [self.shifts[index] for index in indices]
            if self.mergeable:
                self._merge_blocks([self])
        return self

    def join(self, others: Sequence[Rows]) -> Rows:
        """Append the rows of the others."""
        if others:
            parts = [self, *others]
            self.logits = torch.cat([part.logits for part in parts])
            self.lengths = [length for part in parts for length in part.lengths]
            self.shifts = [shift for part in parts for shift in part.shifts]
            self._merge_blocks(parts)
        return self

    def _merge_blocks(self, parts: Sequence[Rows]) -> None:
        """Concatenate the blocks of the parts, as wide as the longest row."""
        self.columns = max(self.lengths)
        for number, layer in enumerate(self.cache.layers):
            layers = [part.cache.layers[number] for part in parts]
            if not layer.is_initialized:  # the layer shares the keys and values of another
                continue
            width = self.columns
            if isinstance(layer, DynamicSlidingWindowLayer):
                layer.cumulative_length = self.columns
                width = min(self.columns, layer.sliding_window - 1)
            layer.keys = torch.cat([_align_right(each.keys, width) for each in layers])
            layer.values = torch.cat([_align_right(each.values, width) for each in layers])


def _align_right(block: Tensor, width: int) -> Tensor:
    """Cut or pad the block on the left to this width."""
    missing = width - block.shape[-2]
    return pad(block, (0, 0, missing, 0)) if missing > 0 else block[..., -missing:, :]


class Seq2SeqDecoder(Decoder):
    """An encoder-decoder model. All rows start together."""

    def __init__(self, model: Any, start_token: int) -> None:
        self._model, self._start_token = model, start_token
        self.clear()

    def clear(self) -> None:
        self._cache: Any = None
        self._states = self._mask = self._logits = torch.empty(0, 0)

    @property
    def accepts_rows(self) -> bool:
        return self._cache is None

    @property
    def logits(self) -> Tensor:
        return self._logits

    def admit(self, prompts: Sequence[TokenizedPrompt], waiting: Collection[TokenizedPrompt]) -> None:
        device = self._model.device
        distinct = list(dict.fromkeys(prompts))
        columns = max(len(prompt.tokens) for prompt in distinct)
        # Padded on the right, because an encoder may count positions from the left.
        rows = [prompt.tokens + (0,) * (columns - len(prompt.tokens)) for prompt in distinct]
        padded = torch.tensor(rows, device=device)
        lengths = torch.tensor([len(prompt.tokens) for prompt in distinct], device=device)[:, None]
        mask = (torch.arange(columns, device=device)[None] < lengths).long()
        encoder = self._model.get_encoder()
        states = encoder(input_ids=padded, attention_mask=mask).last_hidden_state
        chosen = torch.tensor([distinct.index(prompt) for prompt in prompts], device=device)
        self._states, self._mask = states[chosen], mask[chosen]
        self._step([self._start_token] * len(prompts))

    def advance(self, kept: Sequence[int], tokens: Sequence[int]) -> None:
        if not kept:
            self.clear()
            return
        if len(kept) < len(self._states):
            chosen = torch.tensor(kept, device=self._model.device)
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
