"""A transformers model run in this process: `hf/NAME_OR_PATH`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from proctor.core.config import RunConfig
from proctor.core.errors import UsageError
from proctor.core.types import Output, Sample
from proctor.models.base import Model, Request, has_images
from proctor.models.inference.checkpoint import ModelPlan, find_devices, load_checkpoint, look_up_model
from proctor.models.inference.job import Job
from proctor.models.inference.replicas import ReplicaGroup
from proctor.models.inference.tokenization import TEXT_ONLY, PromptEncoder

if TYPE_CHECKING:
    from proctor.models.inference.engine import EngineThread

logger = logging.getLogger(__name__)

MAX_SLOTS = 4_096  # as many as --concurrency may ask for
DEFAULT_SLOTS, DEFAULT_BATCH_SIZE = 512, 16  # completions at once, unless a run says it
CHECKED_SAMPLES = 100  # samples, to see whether an exam shows pictures
NO_IMAGES_EXPECTED = "the exam began without any, so the model is decoded in a way that takes none"
SLOT_DEVICES = frozenset({"cuda"})  # where slots are faster than a batch that is put together anew for every token


class TransformersModel(Model):
    """Requests that arrive together, or while others are under way, are decoded together."""

    in_process = True
    batches_requests = True

    def __init__(self, name: str, config: RunConfig, inputs_known: bool) -> None:
        self.name = f"hf/{name}"
        self._source, self._config, self._foreseen = name, config, inputs_known
        self._identity = {"model": self.name}
        self._shows = True  # the exam has pictures, as far as is known
        self._crew: ReplicaGroup | None = None
        self._arrived: list[Job] = []
        self._set_places((config.batch_size or DEFAULT_BATCH_SIZE) * config.devices)

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:
        if self._crew is None:
            plan = await asyncio.to_thread(look_up_model, self._source, self._config)
            self.no_images_reason = "" if plan.sees else TEXT_ONLY
            self.refuse_images(samples)  # before weights are fetched
            self._shows = plan.sees and not (self._foreseen and _starts_without_images(samples))
            self._crew = await asyncio.to_thread(self._start, plan)
            self._set_places(self._crew.most)
            self.refuse_images(samples)

    def identity(self) -> dict[str, str]:
        return self._identity

    async def generate(self, request: Request) -> Output:
        if self._crew is None:
            raise RuntimeError("prepare() comes before generate()")
        job = Job(request)
        if not self._arrived:
            asyncio.get_running_loop().call_soon(self._hand_over, self._crew)
        self._arrived.append(job)
        return await asyncio.wrap_future(job.future)

    async def close(self) -> None:
        if self._crew is not None:
            await asyncio.to_thread(self._crew.close)

    def _set_places(self, at_once: int) -> None:
        """Twice as many as are made at once: whoever leaves has a successor waiting."""
        self.slots = min(2 * at_once, MAX_SLOTS)

    def _hand_over(self, crew: ReplicaGroup) -> None:
        """Requests of the same moment are handed over together, so that equal prompts are read once."""
        jobs, self._arrived = self._arrived, []
        crew.submit(jobs)

    def _start(self, plan: ModelPlan) -> ReplicaGroup:
        return ReplicaGroup([self._start_engine(plan, device) for device in find_devices(self._config.devices)])

    def _start_engine(self, plan: ModelPlan, device: str) -> EngineThread:
        model, tokenizer, processor, identity = load_checkpoint(self._source, plan, self._config, device)
        causal = self._config.modeltype == "causal"
        if not tokenizer.chat_template:
            self.default_api = "completions"
            if self._config.api is None:
                logger.warning("note: %s has no chat template, so it is asked with --api completions.", self.name)
        api = self._config.api or self.default_api
        reader = PromptEncoder(model, tokenizer, api == "chat", causal, processor)
        engine, decoding = _open_engine(self.name, model, reader, causal, self._config.batch_size, self._shows)
        self.no_images_reason = reader.no_images_reason
        self._identity = identity | {"api": api, "decoding": decoding}
        return engine


def _starts_without_images(samples: Callable[[], Iterable[Sample]]) -> bool:
    return not any(has_images(sample.input) for sample in islice(samples(), CHECKED_SAMPLES))


def _open_engine(
    name: str, model: Any, reader: PromptEncoder, causal: bool, batch_size: int | None, shows: bool
) -> tuple[EngineThread, str]:
    """The engine that is fastest for the model, and in a few words how it decodes."""
    # Only now: without the libraries they cannot even be imported.
    from proctor.models.inference.decoder import CausalDecoder, Seq2SeqDecoder
    from proctor.models.inference.engine import BatchEngine

    rows = batch_size or DEFAULT_BATCH_SIZE
    if not causal:
        decoder = Seq2SeqDecoder(model, _decoder_start(model))
        return BatchEngine(name, decoder, reader.begin, rows), "plain: it has an encoder"
    reason = "it takes pictures" if shows and not reader.no_images_reason else _why_no_slots(model)
    if not reason:
        from proctor.models.inference.attention import UnsupportedModelError
        from proctor.models.inference.slots import SlotEngine
        from proctor.models.inference.stepper import Stepper

        slots = batch_size or DEFAULT_SLOTS
        try:
            stepper = Stepper(model, slots)
        except UnsupportedModelError as unfit:
            reason = str(unfit)
        else:
            reader.no_images_reason = reader.no_images_reason or NO_IMAGES_EXPECTED
            return SlotEngine(name, stepper, reader.begin, slots), "slots" if stepper.graphs else "slots without graphs"
    if reader.sees:
        from proctor.models.inference.sequential import SequentialWorker
        from proctor.models.inference.trial import find_batching_obstacle

        if difference := find_batching_obstacle(model, reader):
            return SequentialWorker(name, model, reader.begin), f"one at a time: {difference}"
    return BatchEngine(name, CausalDecoder(model), reader.begin, rows), f"plain: {reason}"


def _why_no_slots(model: Any) -> str:
    if model.device.type not in SLOT_DEVICES:
        return "there is no GPU"
    several = len(set(getattr(model, "hf_device_map", {}).values())) > 1
    return "it lies on several devices" if several else ""


def _decoder_start(model: Any) -> int:
    candidates = (
        model.generation_config.decoder_start_token_id,
        getattr(model.config, "decoder_start_token_id", None),
        model.generation_config.bos_token_id,
    )
    start = next((token for token in candidates if token is not None), None)
    if start is None:
        raise UsageError(
            "The model does not say with which token its decoder starts: its configuration is not complete."
        )
    return int(start)
