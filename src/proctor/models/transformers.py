"""A transformers model run in this process: `hf/NAME_OR_PATH`."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from proctor.config import RunConfig
from proctor.errors import ModelError, UsageError
from proctor.models.checkpoint import find_devices, load
from proctor.models.completion import CONTEXT, Completion
from proctor.models.crew import Crew
from proctor.models.job import Job
from proctor.models.model import Model, Request, as_text
from proctor.types import Output, Prompt, Sample

if TYPE_CHECKING:
    from proctor.models.engine import Worker

logger = logging.getLogger(__name__)

MOST_PLACES = 4_096  # as many as --concurrency may ask for
SPACE = "\u2581"  # as tokenizers write it: at the start of Code Llama's tokens, for example
FAST_DEVICES = frozenset({"cuda"})  # where slots are faster than a batch that is put together anew for every token
PROMPTS_KEPT = 256  # as tokens, for the next completion of the same


class Transformers(Model):
    """Requests that arrive together, or while others are under way, are decoded together."""

    in_process = True
    blind = "a model of hf/ is given text only"

    def __init__(self, name: str, config: RunConfig) -> None:
        self.name = f"hf/{name}"
        # Twice the batch: whoever leaves it has a successor waiting.
        self.places = min(2 * config.batch_size * config.devices, MOST_PLACES)
        self._source, self._config = name, config
        self._identity = {"model": self.name}
        self._crew: Crew | None = None
        self._arrived: list[Job] = []

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:
        if self._crew is None:
            self._crew = await asyncio.to_thread(self._start)

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

    def _hand_over(self, crew: Crew) -> None:
        """Requests of the same moment are handed over together, so that equal prompts are read once."""
        jobs, self._arrived = self._arrived, []
        crew.submit(jobs)

    def _start(self) -> Crew:
        return Crew([self._start_engine(device) for device in find_devices(self._config.devices)])

    def _start_engine(self, device: str) -> Worker:
        model, tokenizer, identity = load(self._source, self._config, device)
        causal = self._config.modeltype == "causal"
        if not tokenizer.chat_template:
            self.usual_api = "completions"
            if self._config.api is None:
                logger.warning("note: %s has no chat template, so it is asked with --api completions.", self.name)
        api = self._config.api or self.usual_api
        reader = Reader(model, tokenizer, api == "chat", causal)
        engine, decoding = _open_engine(self.name, model, reader.begin, causal, self._config.batch_size)
        self._identity = identity | {"api": api, "decoding": decoding}
        return engine


class Reader:
    """Makes of a request what a decoder needs: tokens, how many more there may be, and which of them are the end."""

    def __init__(self, model: Any, tokenizer: Any, chat: bool, causal: bool) -> None:
        self._tokenizer, self._chat, self._causal = tokenizer, chat, causal
        self._longest: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        stated = model.generation_config.eos_token_id
        stated = stated if isinstance(stated, list) else [stated]
        self._ends = frozenset({*stated, tokenizer.eos_token_id} - {None})
        # Those that are left out of a text can still be named as stop strings, their spaces as anybody writes them.
        named = [(token.content, number) for number, token in tokenizer.added_tokens_decoder.items()]
        self._specials = dict([(content.replace(SPACE, " "), number) for content, number in named] + named)
        # Some tokenizers close every text, which is to be gone on with here.
        around = tokenizer("")["input_ids"]
        one_for_both = tokenizer.bos_token_id == tokenizer.eos_token_id and len(around) == 1
        self._closes = causal and around[-1:] == [tokenizer.eos_token_id] and not one_for_both
        self._tokens = lru_cache(PROMPTS_KEPT)(self._tokenize)

    def begin(self, request: Request) -> Completion:
        sampling = request.sampling
        prompt = self._tokens(request.prompt)
        room = min(
            sampling.max_tokens,
            _left("max_length", sampling.max_length, prompt, shared=True),
            # An encoder and its decoder have as much each.
            _left("the model's context", self._longest, prompt, shared=self._causal),
        )
        ends = self._ends | {self._specials[stop] for stop in sampling.stop if stop in self._specials}
        before = prompt[-CONTEXT:] if self._causal else ()
        return Completion(prompt, sampling, int(room), ends, self._tokenizer, before)

    def _tokenize(self, prompt: Prompt) -> tuple[int, ...]:
        # A template has all the special tokens that belong there.
        text = self._in_template(prompt) if self._chat else as_text(prompt)
        tokens: list[int] = self._tokenizer(text, add_special_tokens=not self._chat, verbose=False)["input_ids"]
        first, last = self._tokenizer.bos_token_id, self._tokenizer.eos_token_id
        if not self._chat:
            if self._closes:
                tokens = tokens[:-1]
            if tokens[:2] == [first, first]:  # the text had it, and another was put before it
                tokens = tokens[1:]
        if not tokens:
            # From nothing a model begins where its texts begin, or end.
            tokens = [token for token in (first, last) if token is not None][:1]
        if not tokens:
            raise ModelError("the prompt has no tokens")
        return tuple(tokens)

    def _in_template(self, prompt: Prompt) -> str:
        from jinja2 import TemplateError

        if isinstance(prompt, str):
            messages = [{"role": "user", "content": prompt}]
        else:
            messages = [{"role": message.role, "content": message.text} for message in prompt]
        begun = messages[-1]["role"] == "assistant"  # its answer has been begun, and is gone on with
        try:
            text: str = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=not begun, continue_final_message=begun
            )
        except (TemplateError, ValueError) as error:
            raise ModelError(f"the chat template does not take this prompt: {error}") from None
        return text


def _open_engine(
    name: str, model: Any, begin: Callable[[Request], Completion], causal: bool, batch_size: int
) -> tuple[Worker, str]:
    """The engine that is fastest for the model, and in a few words how it decodes."""
    # Only now: without the libraries they cannot even be imported.
    from proctor.models.decoder import CausalDecoder, Seq2SeqDecoder
    from proctor.models.engine import Engine

    if not causal:
        return Engine(name, Seq2SeqDecoder(model, _decoder_start(model)), begin, batch_size), "plain: it has an encoder"
    reason = "there is no GPU"
    if model.device.type in FAST_DEVICES:
        from proctor.models.attention import UnfitError
        from proctor.models.slots import SlotEngine
        from proctor.models.stepper import Stepper

        try:
            stepper = Stepper(model, batch_size)
        except UnfitError as unfit:
            reason = str(unfit)
        else:
            return SlotEngine(name, stepper, begin, batch_size), "slots" if stepper.graphs else "slots without graphs"
    return Engine(name, CausalDecoder(model), begin, batch_size), f"plain: {reason}"


def _left(name: str, limit: int | None, prompt: tuple[int, ...], shared: bool) -> float:
    """How many tokens a limit leaves for a completion."""
    if limit is None:
        return math.inf
    if len(prompt) >= limit:
        raise ModelError(f"the prompt has {len(prompt)} tokens and {name} is {limit}: there is no room for an answer")
    return limit - len(prompt) if shared else limit


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
