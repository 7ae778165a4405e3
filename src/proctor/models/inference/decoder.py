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

from proctor.core.errors import UsageError
from proctor.models.inference.prompt import ImageInputs, TokenizedPrompt


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
    def admit(self, prompts: Sequence[TokenizedPrompt], waiting: Collection[TokenizedPrompt]) -> None:
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
        self._read_before: dict[TokenizedPrompt, Rows] = {}

    @property
    def open(self) -> bool:
        return self._rows is None or self._rows.plain

    @property
    def logits(self) -> Tensor:
        return self._rows.logits if self._rows is not None else torch.empty(0, 0)

    def admit(self, prompts: Sequence[TokenizedPrompt], waiting: Collection[TokenizedPrompt]) -> None:
        known = [prompt for prompt in dict.fromkeys(prompts) if prompt in self._read_before]
        new = [prompt for prompt in dict.fromkeys(prompts) if prompt not in self._read_before]
        parts = [self._read_before[prompt].copy() for prompt in known]
        # Pictures come in tensors of all shapes: a prompt that has any is read by itself.
        texts = [prompt for prompt in new if prompt.pictures is None]
        seen = [prompt for prompt in new if prompt.pictures is not None]
        for group in ([texts] if texts else []) + [[prompt] for prompt in seen]:
            read = self._read(group)
            if read.plain:
                self._read_before |= {
                    prompt: read.copy().pick([row]) for row, prompt in enumerate(group) if prompt in waiting
                }
            parts.append(read)
        self._read_before = {prompt: rows for prompt, rows in self._read_before.items() if prompt in waiting}
        order = [*known, *texts, *seen]
        fresh = parts[0].join(parts[1:]).pick([order.index(prompt) for prompt in prompts])
        self._rows = fresh if self._rows is None else self._rows.join([fresh])

    def advance(self, going: Sequence[int], tokens: Sequence[int]) -> None:
        if self._rows is None or not going:
            self._rows = None
            return
        rows = self._rows.pick(going)
        rows.lengths = [length + 1 for length in rows.lengths]
        rows.columns += 1
        read = self._step([[token] for token in tokens], rows.lengths, rows.columns, rows.cache, rows.shifts)
        rows.logits = read.logits[:, -1]

    def _read(self, prompts: Sequence[TokenizedPrompt]) -> Rows:
        """Several of text, or a single one with pictures."""
        lengths = [len(prompt.tokens) for prompt in prompts]
        columns = max(lengths)
        filled = [(0,) * (columns - len(prompt.tokens)) + prompt.tokens for prompt in prompts]
        shifts = [0] * len(prompts)
        pictures = prompts[0].pictures
        seen = as_model_inputs(pictures, self._model) if pictures is not None else {}
        output = self._step(filled, lengths, columns, None, shifts, **seen)
        cache = getattr(output, "past_key_values", None)
        if not hasattr(cache, "reorder_cache"):
            raise UsageError(
                f"{type(self._model).__name__} keeps no cache of a kind that rows can leave: not supported."
            )
        deltas = getattr(self._model.base_model, "rope_deltas", None)
        if seen and deltas is not None:  # without pictures they are those of the last prompt that had some
            shifts = deltas[:, 0].tolist()
        return Rows(cache, output.logits[:, -1], lengths, shifts)

    def _step(
        self,
        tokens: Sequence[Sequence[int]],
        lengths: list[int],
        columns: int,
        cache: Any,
        shifts: list[int],
        **seen: Any,
    ) -> Any:
        device = self._model.device
        starts = columns - torch.tensor(lengths, device=device)[:, None]
        indices = torch.arange(columns, device=device)[None]
        inputs = {
            "input_ids": torch.tensor(tokens, device=device),
            "attention_mask": (indices >= starts).long(),
            "past_key_values": cache,
            "use_cache": True,
            **self._last_only,
            **seen,
        }
        if self._takes_positions and not seen:  # where the tokens of a picture stand is for the model to say
            positions = (indices - starts).clamp(min=0)[:, -len(tokens[0]) :]
            if any(shifts):
                positions = positions + torch.tensor(shifts, device=device)[:, None]
            inputs["position_ids"] = positions
        return self._model(**inputs)


def as_model_inputs(pictures: ImageInputs, model: Any) -> dict[str, Any]:
    """The tensors where the model is, and with numbers of its kind."""
    return {
        name: value.to(model.device, model.dtype if value.is_floating_point() else value.dtype)
        if isinstance(value, Tensor)
        else value
        for name, value in pictures.tensors.items()
    }


class Rows:
    """Some rows of a causal model: the cache, and the logits of the next token."""

    def __init__(self, cache: Any, logits: Tensor, lengths: list[int], shifts: list[int]) -> None:
        """``shifts``: by how much a next token's position differs from the number of tokens before it.

        Where positions have two dimensions, a picture takes up fewer of them than it has tokens.
        """
        self.cache, self.logits, self.lengths, self.shifts = cache, logits, lengths, shifts
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
            self.shifts = [self.shifts[index] for index in indices]
            if self.plain:
                self._set_blocks([self])
        return self

    def join(self, others: Sequence[Rows]) -> Rows:
        """Adds the rows of the others."""
        if others:
            parts = [self, *others]
            self.logits = torch.cat([part.logits for part in parts])
            self.lengths = [length for part in parts for length in part.lengths]
            self.shifts = [shift for part in parts for shift in part.shifts]
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
            layer.keys = torch.cat([_align_right(each.keys, width) for each in layers])
            layer.values = torch.cat([_align_right(each.values, width) for each in layers])


def _align_right(block: Tensor, width: int) -> Tensor:
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

    def admit(self, prompts: Sequence[TokenizedPrompt], waiting: Collection[TokenizedPrompt]) -> None:
        device = self._model.device
        distinct = list(dict.fromkeys(prompts))
        columns = max(len(prompt.tokens) for prompt in distinct)
        # Filled up on the right: an encoder may count its positions from the left.
        rows = [prompt.tokens + (0,) * (columns - len(prompt.tokens)) for prompt in distinct]
        filled = torch.tensor(rows, device=device)
        lengths = torch.tensor([len(prompt.tokens) for prompt in distinct], device=device)[:, None]
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
