"""A causal model and the state of its rows on the device: a step decodes one token per row.

Each slot holds its next token, lengths, sampling settings and page table. Between two steps
only changes are sent to the device, and only the new tokens come back. On a GPU a step is a
CUDA graph, captured once per number of rows, so launching it costs as much as one kernel.
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

pick_by_kernel: Any  # None without Triton
try:
    from proctor.models.inference.kernels import pick as pick_by_kernel
except ImportError:
    pick_by_kernel = None

logger = logging.getLogger(__name__)

MIN_GRAPH_ROWS = 8  # a graph of fewer rows is no faster
MIN_TABLE_WIDTH = 8  # pages per row at first

TOKEN, SHARED, OWN, KEY, TOP_K, TEMPERATURE, TOP_P = range(7)  # the columns of a slot's state

PROBE_LENGTHS = 40, 7  # tokens of the sequences that verify a model: more and less than a page


class RowStart(NamedTuple):
    """A new row: its slot, the last token of its prompt, and the number of tokens before it."""

    slot: int
    token: int
    shared: int
    sampling: Sampling

    def as_state(self) -> list[int]:
        """The slot, then the columns of its state."""
        sampling = self.sampling
        all_tokens = sampling.top_p in (None, 1.0)
        return [
            self.slot,
            self.token,
            self.shared,
            0,
            _to_signed(mix(sampling.seed)),
            sampling.top_k or 2**31 - 1,
            _float_bits(sampling.temperature),
            _float_bits(NO_TOP_P if all_tokens else sampling.top_p or 0.0),
        ]


class PageAssignment(NamedTuple):
    """A page for a column of a slot's page table."""

    slot: int
    column: int
    page: int


class PendingStep:
    """A launched step; its tokens are copied to the host in the background."""

    def __init__(self, tokens: Tensor, count: int) -> None:
        self._copied: Any = None
        if tokens.is_cuda:
            self._tokens = torch.empty(count, dtype=tokens.dtype, device="cpu", pin_memory=True)
            self._tokens.copy_(tokens[:count], non_blocking=True)
            self._copied = torch.cuda.Event(blocking=True)
            self._copied.record()
        else:
            self._tokens = tokens[:count].clone()

    def tokens(self) -> list[int]:
        """Wait for the tokens."""
        if self._copied is not None:
            self._copied.synchronize()
        tokens: list[int] = self._tokens.tolist()
        return tokens


class Stepper:
    def __init__(self, model: Any, slots: int) -> None:
        self._device: torch.device = model.device
        with torch.inference_mode(), self.on_device():
            self._prepare(model, slots)

    def on_device(self) -> AbstractContextManager[Any]:
        """Make the model's device current on this thread, as kernels and streams require."""
        return torch.cuda.device(self._device) if self._device.type == "cuda" else nullcontext()

    def _prepare(self, model: Any, slots: int) -> None:
        """Raises UnsupportedModelError with the reason, and leaves the model unchanged then."""
        self._model, self._slots = model, slots
        _refuse_unsupported(model)
        # A prefill needs no logits: compute as few as the model allows.
        parameters = inspect.signature(model.forward).parameters
        self._fewest_logits = {"logits_to_keep": 1} if "logits_to_keep" in parameters else {}
        by_kernel = self._device.type == "cuda" and pick_by_kernel is not None
        self._pick = pick_by_kernel if by_kernel else pick
        self._padding_slot = slots  # pads the rows of a graph
        device = self._device
        self._state = torch.zeros(slots + 1, TOP_P + 1, dtype=torch.int64, device=device)
        self._tables = torch.zeros(slots + 1, MIN_TABLE_WIDTH, dtype=torch.int32, device=device)
        self._rows = torch.full((slots,), self._padding_slot, dtype=torch.int64, device=device)
        self._chosen = torch.zeros(slots, dtype=torch.int64, device=device)
        self._uploaded_rows: list[int] = []
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self._graph_pool: Any = None  # shared by all graphs, because they never run concurrently
        self.graphs = self._device.type == "cuda"
        original = model.config._attn_implementation
        expected = self._compute_reference_logits()
        try:
            with _silence_transformers():
                model.set_attn_implementation(ATTENTION_NAME)
            self.pages = Pages(self._probe_layers(), self._device)
            self._verify(expected)
        except Exception as error:
            with _silence_transformers():
                model.set_attn_implementation(original)
            if isinstance(error, UnsupportedModelError):
                raise
            out_of_memory = is_out_of_memory(error)
            reason = "there is no memory to try" if out_of_memory else f"{type(error).__name__} in a trial"
            raise UnsupportedModelError(reason) from error

    def prefill(self, prompts: Sequence[tuple[Sequence[int], list[int]]]) -> None:
        """Store the keys and values of each prompt's tokens in its pages."""
        current = Prefill(self.pages, self._device, prompts)
        tokens = torch.tensor([token for each, _ in prompts for token in each], device="cpu")
        with attending_with(current):
            self._model(
                input_ids=to_device(tokens, self._device)[None],
                position_ids=current.positions[None],
                use_cache=False,
                **self._fewest_logits,
            )

    def widen_tables(self, columns: int) -> None:
        """Widen the page tables to at least so many pages."""
        width = self._tables.shape[1]
        if columns > width:
            while width < columns:
                width *= 2
            size = (self._slots + 1, width)
            tables = torch.zeros(size, dtype=torch.int32, device=self._device)
            tables[:, : self._tables.shape[1]] = self._tables
            self._tables = tables
            self.forget_graphs()

    def grow(self, pages: int) -> bool:
        """Add so many pages, or as many as fit; return whether any were added."""
        if self.pages.full:
            return False
        self.forget_graphs()
        return self.pages.grow(pages)

    def forget_graphs(self) -> None:
        """Graphs hold the addresses of tensors, and memory of their own."""
        self._graphs.clear()
        self._graph_pool = None

    def launch(
        self,
        rows: list[int],
        row_starts: Sequence[RowStart],
        page_assignments: Sequence[PageAssignment],
    ) -> PendingStep:
        """Apply the changes, and start a step of the rows in these slots."""
        size = self._graph_size(len(rows))
        self._upload(rows, size, row_starts, page_assignments)
        if not self.graphs:
            self._step(size)
        else:
            if size not in self._graphs:
                self._capture_graph(size)
            self._graphs[size].replay()
        return PendingStep(self._chosen, len(rows))

    def graph_sizes(self) -> list[int]:
        """All numbers of rows that have a graph."""
        return sorted({self._graph_size(count) for count in range(1, self._slots + 1)})

    def _graph_size(self, count: int) -> int:
        size = self._slots
        while size // 2 >= max(count, MIN_GRAPH_ROWS):
            size //= 2
        return size

    def _upload(
        self,
        rows: list[int],
        size: int,
        row_starts: Sequence[RowStart],
        page_assignments: Sequence[PageAssignment],
    ) -> None:
        """Send all changes in one copy."""
        padded = rows + [self._padding_slot] * (size - len(rows))
        changed = padded if padded != self._uploaded_rows else []
        if not (changed or row_starts or page_assignments):
            return
        numbers = [*changed, *(number for start in row_starts for number in start.as_state())]
        numbers += [number for assignment in page_assignments for number in assignment]
        uploaded = to_device(torch.tensor(numbers, dtype=torch.int64, device="cpu"), self._device)
        first = len(changed)
        second = first + len(row_starts) * (TOP_P + 2)
        if changed:
            self._rows[:size] = uploaded[:first]
            self._uploaded_rows = padded
        if row_starts:
            block = uploaded[first:second].view(len(row_starts), -1)
            self._state[block[:, 0]] = block[:, 1:]
        if page_assignments:
            slot, column, page = uploaded[second:].view(len(page_assignments), -1).unbind(1)
            self._tables[slot, column] = page.int()

    def _forward(self, size: int) -> tuple[Tensor, Tensor, Tensor]:
        rows = self._rows[:size]
        state = self._state[rows].t().contiguous()
        shared, own = state[SHARED], state[OWN]
        with attending_with(DecodeStep(self.pages, self._tables[rows], shared, own)):
            output = self._model(
                input_ids=state[TOKEN, :, None],
                position_ids=(shared + own)[:, None],
                use_cache=False,
            )
        return rows, state, output.logits[:, -1]

    def _step(self, size: int) -> None:
        rows, state, logits = self._forward(size)
        floats = state.view(torch.float64)
        draws = draw_uniform(state[KEY], state[OWN])
        chosen = self._pick(logits, floats[TEMPERATURE], state[TOP_K], floats[TOP_P], draws)
        self._state[rows, TOKEN] = chosen
        self._state[rows, OWN] = state[OWN] + 1
        self._state[self._padding_slot].zero_()
        self._chosen[:size] = chosen

    def _capture_graph(self, size: int) -> None:
        # Warm up with padding rows, because libraries may not initialize during a capture.
        rows = self._rows.clone()
        self._rows.fill_(self._padding_slot)
        try:
            self._step(size)
        finally:
            self._rows.copy_(rows)
        graph = torch.cuda.CUDAGraph()
        if self._graph_pool is None:
            self._graph_pool = torch.cuda.graph_pool_handle()
        # thread_local: other threads may keep using the device.
        with torch.cuda.graph(graph, pool=self._graph_pool, capture_error_mode="thread_local"):
            self._step(size)
        self._graphs[size] = graph

    # Verifying the model

    def _probes(self) -> list[list[int]]:
        config = self._model.config.get_text_config()
        longest = getattr(config, "max_position_embeddings", None) or max(PROBE_LENGTHS)
        lengths = [min(length, longest) for length in PROBE_LENGTHS]
        return [[(7919 * i + 13) % config.vocab_size for i in range(length)] for length in lengths]

    def _compute_reference_logits(self) -> list[Tensor]:
        """The model's own logits of the last two tokens of each probe."""
        probes = [torch.tensor([probe], device=self._device) for probe in self._probes()]
        return [self._model(input_ids=probe, use_cache=False).logits[0, -2:].clone() for probe in probes]

    def _probe_layers(self) -> dict[int, Layer]:
        layer_probe = LayerProbe()
        tokens = torch.tensor(self._probes()[:1], device=self._device)
        positions = torch.arange(tokens.shape[1], device=self._device)[None]
        with attending_with(layer_probe):
            self._model(input_ids=tokens, position_ids=positions, use_cache=False)
        config = self._model.config.get_text_config()
        if len(layer_probe.layers) != config.num_hidden_layers:
            raise UnsupportedModelError("not all of its layers let their attention be chosen")
        layer_types = getattr(config, "layer_types", None) or ()
        if "sliding_attention" in layer_types and not layer_probe.windows:
            raise UnsupportedModelError("its attention does not say how far it looks back")
        return layer_probe.layers

    def _verify(self, expected: list[Tensor]) -> None:
        """Prefill all but two tokens of each probe, make two steps, and compare the logits."""
        probes = self._probes()
        needed = [pages_for(len(probe) - 2) + 1 for probe in probes]
        self.grow(max(needed))
        if self.pages.free < max(needed):
            raise torch.OutOfMemoryError("no memory for a few pages")
        for probe, count, logits in zip(probes, needed, expected, strict=True):
            pages = self.pages.allocate(count)
            self.prefill([(probe[:-2], pages[:-1])])
            assignments = [PageAssignment(0, column, page) for column, page in enumerate(pages)]
            for own in range(2):
                start = RowStart(0, probe[own - 2], len(probe) - 2, Sampling(1))
                self._upload([0], self._graph_size(1), [start], assignments)
                self._state[0, OWN] = own
                actual = self._forward(self._graph_size(1))[2][0]
                if not same_logits(actual, logits[own], self._model.dtype):
                    raise UnsupportedModelError(DIFFERENT_LOGITS)
            self.pages.release(pages)
        if self.graphs:
            try:
                self._capture_graph(self._graph_size(1))
            except Exception as error:
                if is_out_of_memory(error):
                    raise
                self.graphs = False
                self.forget_graphs()
                logger.info("no graphs of %s: %s", type(self._model).__name__, error)


def _refuse_unsupported(model: Any) -> None:
    """Refuse what is known not to work and a trial might not show."""
    config = model.config.get_text_config()
    if "position_ids" not in inspect.signature(model.forward).parameters:
        raise UnsupportedModelError("it is not told where a token stands")
    layer_types = set(getattr(config, "layer_types", None) or ())
    others = layer_types - {"full_attention", "sliding_attention"}
    if others:
        kinds = ", ".join(sorted(others))
        raise UnsupportedModelError(f"it has layers of another kind: {kinds}")
    ropes = getattr(config, "rope_parameters", None) or {}
    for rope in (ropes, *(each for each in ropes.values() if isinstance(each, dict))):
        if rope.get("rope_type") in ("dynamic", "longrope"):
            raise UnsupportedModelError("its positions depend on the longest text in the batch")


@contextmanager
def _silence_transformers() -> Iterator[None]:
    """transformers warns when it cannot set the attention; the trial detects that itself."""
    before = transformers.utils.logging.get_verbosity()
    transformers.utils.logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers.utils.logging.set_verbosity(before)


def _float_bits(number: float) -> int:
    """The bits of a float as an integer, so that one tensor holds the whole state."""
    bits: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return bits


def _to_signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number
