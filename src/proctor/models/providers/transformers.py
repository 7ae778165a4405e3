"""A transformers model in this process: `hf/NAME_OR_PATH`."""

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
from proctor.models.inference.checkpoint import (
    ModelPlan,
    find_devices,
    load_checkpoint,
    look_up_model,
)
from proctor.models.inference.job import Job
from proctor.models.inference.replicas import ReplicaGroup
from proctor.models.inference.tokenization import TEXT_ONLY, PromptEncoder

if TYPE_CHECKING:
    from proctor.models.inference.engine import EngineThread

logger = logging.getLogger(__name__)

MAX_SLOTS = 4_096  # the maximum of --concurrency
DEFAULT_SLOTS, DEFAULT_BATCH_SIZE = 512, 16  # completions at once, without --batch-size
CHECKED_SAMPLES = 100  # samples that are searched for images
NO_IMAGES_EXPECTED = "the first samples had none, so it was loaded for text alone"
SLOT_DEVICES = frozenset({"cuda"})  # where slots are faster than reassembling a batch per token


class TransformersModel(Model):
    """Decodes concurrent requests in batches."""

    in_process = True
    batches_requests = True

    def __init__(self, name: str, config: RunConfig, inputs_known: bool) -> None:
        self.name = f"hf/{name}"
        self._source, self._config, self._inputs_known = name, config, inputs_known
        self._identity = {"model": self.name}
        self._expects_images = True
        self._replicas: ReplicaGroup | None = None
        self._arrived: list[Job] = []
        self._set_slots((config.batch_size or DEFAULT_BATCH_SIZE) * config.devices)

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:
        if self._replicas is None:
            plan = await asyncio.to_thread(look_up_model, self._source, self._config)
            self.no_images_reason = "" if plan.is_vision else TEXT_ONLY
            self.refuse_images(samples)  # before the weights are downloaded
            text_only = self._inputs_known and _starts_without_images(samples)
            self._expects_images = plan.is_vision and not text_only
            self._replicas = await asyncio.to_thread(self._start, plan)
            self._set_slots(self._replicas.max_batch_size)
            self.refuse_images(samples)

    def identity(self) -> dict[str, str]:
        return self._identity

    async def generate(self, request: Request) -> Output:
        if self._replicas is None:
            raise RuntimeError("prepare() comes before generate()")
        job = Job(request)
        if not self._arrived:
            asyncio.get_running_loop().call_soon(self._submit, self._replicas)
        self._arrived.append(job)
        return await asyncio.wrap_future(job.future)

    async def close(self) -> None:
        if self._replicas is not None:
            await asyncio.to_thread(self._replicas.close)

    def _set_slots(self, batch_size: int) -> None:
        """Twice the batch size, so that a request waits for each one that ends."""
        self.slots = min(2 * batch_size, MAX_SLOTS)

    def _submit(self, replicas: ReplicaGroup) -> None:
        """Submit the requests of one event loop turn together: equal prompts are prefilled once."""
        jobs, self._arrived = self._arrived, []
        replicas.submit(jobs)

    def _start(self, plan: ModelPlan) -> ReplicaGroup:
        devices = find_devices(self._config.devices)
        return ReplicaGroup([self._start_engine(plan, device) for device in devices])

    def _start_engine(self, plan: ModelPlan, device: str) -> EngineThread:
        model, tokenizer, processor, identity = load_checkpoint(self._source, plan, self._config, device)
        causal = self._config.modeltype == "causal"
        if not tokenizer.chat_template:
            self.default_api = "completions"
            if self._config.api is None:
                logger.warning("note: %s has no chat template and is used with --api completions.", self.name)
        api = self._config.api or self.default_api
        encoder = PromptEncoder(model, tokenizer, api == "chat", causal, processor)
        engine, decoding = _open_engine(
            self.name, model, encoder, causal, self._config.batch_size, self._expects_images
        )
        self.no_images_reason = encoder.no_images_reason
        self._identity = identity | {"api": api, "decoding": decoding}
        return engine


def _starts_without_images(samples: Callable[[], Iterable[Sample]]) -> bool:
    return not any(has_images(sample.input) for sample in islice(samples(), CHECKED_SAMPLES))


def _open_engine(
    name: str,
    model: Any,
    encoder: PromptEncoder,
    causal: bool,
    batch_size: int | None,
    expects_images: bool,
) -> tuple[EngineThread, str]:
    """The fastest engine for the model, and how it decodes.

    The description is part of the model's identity: other words would refuse a resume.
    """
    # Imported late, because without the extra these modules cannot be imported.
    from proctor.models.inference.decoder import CausalDecoder, Seq2SeqDecoder
    from proctor.models.inference.engine import BatchEngine

    rows = batch_size or DEFAULT_BATCH_SIZE
    if not causal:
        decoder = Seq2SeqDecoder(model, _decoder_start(model))
        return BatchEngine(name, decoder, encoder.start, rows), "plain: it has an encoder"
    takes_images = expects_images and not encoder.no_images_reason
    reason = "it takes pictures" if takes_images else _find_slots_obstacle(model)
    if not reason:
        from proctor.models.inference.attention import UnsupportedModelError
        from proctor.models.inference.slots import SlotEngine
        from proctor.models.inference.stepper import Stepper

        slots = batch_size or DEFAULT_SLOTS
        try:
            stepper = Stepper(model, slots)
        except UnsupportedModelError as error:
            reason = str(error)
        else:
            encoder.no_images_reason = encoder.no_images_reason or NO_IMAGES_EXPECTED
            engine = SlotEngine(name, stepper, encoder.start, slots)
            return engine, "slots" if stepper.graphs else "slots without graphs"
    if encoder.is_vision:
        from proctor.models.inference.sequential import SequentialWorker
        from proctor.models.inference.trial import find_batching_obstacle

        if obstacle := find_batching_obstacle(model, encoder):
            worker = SequentialWorker(name, model, encoder.start)
            return worker, f"one at a time: {obstacle}"
    return BatchEngine(name, CausalDecoder(model), encoder.start, rows), f"plain: {reason}"


def _find_slots_obstacle(model: Any) -> str:
    if model.device.type not in SLOT_DEVICES:
        return "there is no GPU"
    devices = set(getattr(model, "hf_device_map", {}).values())
    return "it lies on several devices" if len(devices) > 1 else ""


def _decoder_start(model: Any) -> int:
    candidates = (
        model.generation_config.decoder_start_token_id,
        getattr(model.config, "decoder_start_token_id", None),
        model.generation_config.bos_token_id,
    )
    start = next((token for token in candidates if token is not None), None)
    if start is None:
        raise UsageError("The model's configuration is incomplete: it has no decoder_start_token_id.")
    return int(start)
