"""A causal model and everything of its rows that stays on the device: a step makes a token for each of them.

A row has a slot, in which lie its next token, its lengths, its settings and the list of its pages. Between two steps
only what has changed goes to the device, and only the new tokens come back. On a GPU a step is a graph, recorded once
for each number of rows: to start it takes as long as to start a single kernel.
"""

from __future__ import annotations

import inspect
import logging
import struct
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
import transformers
from torch import Tensor

from proctor.core.random import mix
from proctor.models.base import Sampling
from proctor.models.inference.attention import (
    ATTENTION_NAME,
    DecodeStep,
    LayerProbe,
    Prefill,
    UnsupportedModelError,
    attending_with,
)
from proctor.models.inference.memory import is_out_of_memory, to_device
from proctor.models.inference.pages import Layer, Pages, pages_for
from proctor.models.inference.sampler import NO_TOP_P, draw_uniform, pick
from proctor.models.inference.trial import DIFFERENT_LOGITS, same_logits

pick_by_kernel: Any  # None where Triton is not there
try:
    from proctor.models.inference.kernels import pick as pick_by_kernel
except ImportError:
    pick_by_kernel = None

logger = logging.getLogger(__name__)

MIN_GRAPH_ROWS = 8  # rows of the smallest graph: fewer are no faster
MIN_TABLE_WIDTH = 8  # pages that a row has room for at first

TOKEN, SHARED, OWN, KEY, TOP_K, TEMPERATURE, TOP_P = range(7)  # the numbers in a slot

PROBE_LENGTHS = 40, 7  # tokens of the sequences that a model is tried with: more than a page, and less


class RowStart(NamedTuple):
    """A row that begins: after so many tokens that it shares comes the last of its prompt."""

    slot: int
    token: int
    shared: int
    sampling: Sampling

    def numbers(self) -> list[int]:
        wanted = self.sampling
        everything = wanted.top_p in (None, 1.0)
        return [
            self.slot,
            self.token,
            self.shared,
            0,
            _to_signed(mix(wanted.seed)),
            wanted.top_k or 2**31 - 1,
            _float_bits(wanted.temperature),
            _float_bits(NO_TOP_P if everything else wanted.top_p or 0.0),
        ]


class PageAssignment(NamedTuple):
    """A page that a row is given: which one stands in this column of its list."""

    slot: int
    column: int
    page: int


class PendingStep:
    """A step that was started. Its tokens come back by themselves; to ask for them is to wait."""

    def __init__(self, tokens: Tensor, count: int) -> None:
        self._count = count
        self._landed: Any = None
        if tokens.is_cuda:
            self._tokens = torch.empty(count, dtype=tokens.dtype, device="cpu", pin_memory=True)
            self._tokens.copy_(tokens[:count], non_blocking=True)
            self._landed = torch.cuda.Event(blocking=True)
            self._landed.record()
        else:
            self._tokens = tokens[:count].clone()

    def tokens(self) -> list[int]:
        if self._landed is not None:
            self._landed.synchronize()
        tokens: list[int] = self._tokens.tolist()
        return tokens


class Stepper:
    def __init__(self, model: Any, slots: int) -> None:
        self._device: torch.device = model.device
        with torch.inference_mode(), self.at_home():
            self._prepare(model, slots)

    def at_home(self) -> AbstractContextManager[Any]:
        """Kernels and streams are those of the device of the thread that calls, which must be the model's."""
        return torch.cuda.device(self._device) if self._device.type == "cuda" else nullcontext()

    def _prepare(self, model: Any, slots: int) -> None:
        """Raises UnfitError when the model is not one for this, with the reason; then it is as it was."""
        self._model, self._slots = model, slots
        _refuse_unsupported(model)
        # Of what is read only keys and values are of interest.
        accepted = inspect.signature(model.forward).parameters
        self._least = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        by_kernel = self._device.type == "cuda" and pick_by_kernel is not None
        self._pick = pick_by_kernel if by_kernel else pick
        self._nobody = slots  # a slot that fills up the rows of a graph
        self._state = torch.zeros(slots + 1, TOP_P + 1, dtype=torch.int64, device=self._device)
        self._tables = torch.zeros(slots + 1, MIN_TABLE_WIDTH, dtype=torch.int32, device=self._device)
        self._rows = torch.full((slots,), self._nobody, dtype=torch.int64, device=self._device)
        self._chosen = torch.zeros(slots, dtype=torch.int64, device=self._device)
        self._seated: list[int] = []  # the rows that the device was told last
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self._memory: Any = None  # what all graphs use, who never run at the same time
        self.graphs = self._device.type == "cuda"
        own = model.config._attn_implementation
        expected = self._expected()
        try:
            with _silence_transformers():
                model.set_attn_implementation(ATTENTION_NAME)
            self.pages = Pages(self._look(), self._device)
            self._try(expected)
        except Exception as error:
            with _silence_transformers():
                model.set_attn_implementation(own)
            if isinstance(error, UnsupportedModelError):
                raise
            reason = "there is no memory to try" if is_out_of_memory(error) else f"{type(error).__name__} in a trial"
            raise UnsupportedModelError(reason) from error

    def read(self, prompts: Sequence[tuple[Sequence[int], list[int]]]) -> None:
        """Puts the keys and values of all these tokens into the pages that stand beside them."""
        reading = Prefill(self.pages, self._device, prompts)
        tokens = torch.tensor([token for each, _ in prompts for token in each], device="cpu")
        with attending_with(reading):
            self._model(
                input_ids=to_device(tokens, self._device)[None],
                position_ids=reading.positions[None],
                use_cache=False,
                **self._least,
            )

    def widen(self, columns: int) -> None:
        """Makes room for so many pages in the list of each row."""
        width = self._tables.shape[1]
        if columns > width:
            while width < columns:
                width *= 2
            tables = torch.zeros(self._slots + 1, width, dtype=torch.int32, device=self._device)
            tables[:, : self._tables.shape[1]] = self._tables
            self._tables = tables
            self.forget_graphs()

    def grow(self, pages: int) -> bool:
        """Makes memory for so many more pages, or for as many as there can be; false when for none."""
        if self.pages.full:
            return False
        self.forget_graphs()
        return self.pages.grow(pages)

    def forget_graphs(self) -> None:
        """They know tensors by where these lie, and hold memory of their own."""
        self._graphs.clear()
        self._memory = None

    def launch(self, rows: list[int], seats: Sequence[RowStart], entries: Sequence[PageAssignment]) -> PendingStep:
        """Starts a step for the rows in these slots, after the changes."""
        size = self._size(len(rows))
        self._tell(rows, size, seats, entries)
        if not self.graphs:
            self._step(size)
        else:
            if size not in self._graphs:
                self._record(size)
            self._graphs[size].replay()
        return PendingStep(self._chosen, len(rows))

    def sizes(self) -> list[int]:
        """All numbers of rows that there are graphs for."""
        return sorted({self._size(count) for count in range(1, self._slots + 1)})

    def _size(self, count: int) -> int:
        size = self._slots
        while size // 2 >= max(count, MIN_GRAPH_ROWS):
            size //= 2
        return size

    def _tell(self, rows: list[int], size: int, seats: Sequence[RowStart], entries: Sequence[PageAssignment]) -> None:
        filled = rows + [self._nobody] * (size - len(rows))
        changed = filled if filled != self._seated else []
        if not (changed or seats or entries):
            return
        numbers = [*changed, *(number for seat in seats for number in seat.numbers())]
        numbers += [number for entry in entries for number in entry]
        told = to_device(torch.tensor(numbers, dtype=torch.int64, device="cpu"), self._device)
        first, second = len(changed), len(changed) + len(seats) * (TOP_P + 2)
        if changed:
            self._rows[:size] = told[:first]
            self._seated = filled
        if seats:
            block = told[first:second].view(len(seats), -1)
            self._state[block[:, 0]] = block[:, 1:]
        if entries:
            slot, column, page = told[second:].view(len(entries), -1).unbind(1)
            self._tables[slot, column] = page.int()

    def _forward(self, size: int) -> tuple[Tensor, Tensor, Tensor]:
        rows = self._rows[:size]
        state = self._state[rows].t().contiguous()
        shared, own = state[SHARED], state[OWN]
        with attending_with(DecodeStep(self.pages, self._tables[rows], shared, own)):
            output = self._model(input_ids=state[TOKEN, :, None], position_ids=(shared + own)[:, None], use_cache=False)
        return rows, state, output.logits[:, -1]

    def _step(self, size: int) -> None:
        rows, state, logits = self._forward(size)
        real = state.view(torch.float64)
        draws = draw_uniform(state[KEY], state[OWN])
        chosen = self._pick(logits, real[TEMPERATURE], state[TOP_K], real[TOP_P], draws)
        self._state[rows, TOKEN] = chosen
        self._state[rows, OWN] = state[OWN] + 1
        self._state[self._nobody].zero_()
        self._chosen[:size] = chosen

    def _record(self, size: int) -> None:
        """A step of nobody first: libraries make ready what they need, which must not happen while one is recorded."""
        told = self._rows.clone()
        self._rows.fill_(self._nobody)
        try:
            self._step(size)
        finally:
            self._rows.copy_(told)
        graph = torch.cuda.CUDAGraph()
        if self._memory is None:
            self._memory = torch.cuda.graph_pool_handle()
        # Other threads may go on with what they do on the device.
        with torch.cuda.graph(graph, pool=self._memory, capture_error_mode="thread_local"):
            self._step(size)
        self._graphs[size] = graph

    # Whether the model is one for this

    def _probes(self) -> list[list[int]]:
        config = self._model.config.get_text_config()
        longest = getattr(config, "max_position_embeddings", None) or max(PROBE_LENGTHS)
        return [[(7919 * i + 13) % config.vocab_size for i in range(min(length, longest))] for length in PROBE_LENGTHS]

    def _expected(self) -> list[Tensor]:
        """What the model itself says at the last two tokens of each probe."""
        return [
            self._model(input_ids=torch.tensor([probe], device=self._device), use_cache=False).logits[0, -2:].clone()
            for probe in self._probes()
        ]

    def _look(self) -> dict[int, Layer]:
        look = LayerProbe()
        probe = torch.tensor(self._probes()[:1], device=self._device)
        positions = torch.arange(probe.shape[1], device=self._device)[None]
        with attending_with(look):
            self._model(input_ids=probe, position_ids=positions, use_cache=False)
        config = self._model.config.get_text_config()
        if len(look.layers) != config.num_hidden_layers:
            raise UnsupportedModelError("not all of its layers let their attention be chosen")
        if "sliding_attention" in (getattr(config, "layer_types", None) or ()) and not look.windows:
            raise UnsupportedModelError("its attention does not say how far it looks back")
        return look.layers

    def _try(self, expected: list[Tensor]) -> None:
        """Reads all but two tokens of each probe, makes two steps, and compares."""
        probes = self._probes()
        needed = [pages_for(len(probe) - 2) + 1 for probe in probes]
        self.grow(max(needed))
        if self.pages.free < max(needed):
            raise torch.OutOfMemoryError("no memory for a few pages")
        for probe, count, logits in zip(probes, needed, expected, strict=True):
            pages = self.pages.take(count)
            self.read([(probe[:-2], pages[:-1])])
            entries = [PageAssignment(0, column, page) for column, page in enumerate(pages)]
            for own in range(2):
                seat = RowStart(0, probe[own - 2], len(probe) - 2, Sampling(1))
                self._tell([0], self._size(1), [seat], entries)
                self._state[0, OWN] = own
                found = self._forward(self._size(1))[2][0]
                if not same_logits(found, logits[own], self._model.dtype):
                    raise UnsupportedModelError(DIFFERENT_LOGITS)
            self.pages.give(pages)
        if self.graphs:
            try:
                self._record(self._size(1))
            except Exception as error:
                if is_out_of_memory(error):
                    raise
                self.graphs = False
                self.forget_graphs()
                logger.info("no graphs of %s: %s", type(self._model).__name__, error)


def _refuse_unsupported(model: Any) -> None:
    """What is known not to work, and a trial might not show."""
    config = model.config.get_text_config()
    if "position_ids" not in inspect.signature(model.forward).parameters:
        raise UnsupportedModelError("it is not told where a token stands")
    others = set(getattr(config, "layer_types", None) or ()) - {"full_attention", "sliding_attention"}
    if others:
        raise UnsupportedModelError(f"it has layers of another kind: {', '.join(sorted(others))}")
    ropes = getattr(config, "rope_parameters", None) or {}
    for rope in (ropes, *(each for each in ropes.values() if isinstance(each, dict))):
        if rope.get("rope_type") in ("dynamic", "longrope"):
            raise UnsupportedModelError("its positions depend on the longest text in the batch")


@contextmanager
def _silence_transformers() -> Iterator[None]:
    """The library warns where it cannot change something, which is found out here anyway."""
    before = transformers.utils.logging.get_verbosity()
    transformers.utils.logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers.utils.logging.set_verbosity(before)


def _float_bits(number: float) -> int:
    """The integer of the same 64 bits: so all of a slot fits into one tensor."""
    bits: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return bits


def _to_signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number
