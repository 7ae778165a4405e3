"""A transformers model run in this process: `hf/NAME_OR_PATH`."""

from __future__ import annotations

import asyncio
import inspect
import io
import logging
import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from proctor.config import RunConfig
from proctor.errors import ModelError, UsageError
from proctor.models.checkpoint import Plan, find_devices, load, look_up
from proctor.models.completion import CONTEXT, Completion
from proctor.models.crew import Crew
from proctor.models.job import Job
from proctor.models.model import Model, Request, as_text, has_pictures
from proctor.models.passage import Passage, Pictures
from proctor.types import Image, Message, Output, Prompt, Sample, Text

if TYPE_CHECKING:
    from proctor.models.engine import Worker

logger = logging.getLogger(__name__)

MOST_PLACES = 4_096  # as many as --concurrency may ask for
USUAL_SLOTS, USUAL_ROWS = (
    512,
    16,
)  # completions at once unless a run says it: more rows are hardly faster on a processor
SPACE = "\u2581"  # as tokenizers write it: at the start of Code Llama's tokens, for example
FAST_DEVICES = frozenset({"cuda"})  # where slots are faster than a batch that is put together anew for every token
PROMPTS_KEPT = 256  # as tokens, for the next completion of the same
SEEN_KEPT = 8  # the same with pictures, of which each may take tens of megabytes
READS_ONLY = "it is a model of text alone"


class Transformers(Model):
    """Requests that arrive together, or while others are under way, are decoded together."""

    in_process = True

    def __init__(self, name: str, config: RunConfig) -> None:
        self.name = f"hf/{name}"
        self._source, self._config = name, config
        self._identity = {"model": self.name}
        self._crew: Crew | None = None
        self._arrived: list[Job] = []
        self._set_places((config.batch_size or USUAL_ROWS) * config.devices)

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:
        if self._crew is None:
            plan = await asyncio.to_thread(look_up, self._source, self._config)
            self.blind = "" if plan.sees else READS_ONLY
            self.refuse_pictures(samples)  # before weights are fetched
            self._crew = await asyncio.to_thread(self._start, plan)
            self._set_places(self._crew.most)
            self.refuse_pictures(samples)

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
        self.places = min(2 * at_once, MOST_PLACES)

    def _hand_over(self, crew: Crew) -> None:
        """Requests of the same moment are handed over together, so that equal prompts are read once."""
        jobs, self._arrived = self._arrived, []
        crew.submit(jobs)

    def _start(self, plan: Plan) -> Crew:
        return Crew([self._start_engine(plan, device) for device in find_devices(self._config.devices)])

    def _start_engine(self, plan: Plan, device: str) -> Worker:
        model, tokenizer, processor, identity = load(self._source, plan, self._config, device)
        causal = self._config.modeltype == "causal"
        if not tokenizer.chat_template:
            self.usual_api = "completions"
            if self._config.api is None:
                logger.warning("note: %s has no chat template, so it is asked with --api completions.", self.name)
        api = self._config.api or self.usual_api
        reader = Reader(model, tokenizer, api == "chat", causal, processor)
        engine, decoding = _open_engine(self.name, model, reader, causal, self._config.batch_size)
        self.blind = reader.blind
        self._identity = identity | {"api": api, "decoding": decoding}
        return engine


class Reader:
    """Makes of a request what a decoder needs: tokens, how many more there may be, and which of them are the end."""

    def __init__(self, model: Any, tokenizer: Any, chat: bool, causal: bool, processor: Any = None) -> None:
        """With a processor it is a model that sees, which is told what it sees by the names that its code has."""
        self._tokenizer, self._chat, self._causal, self._processor = tokenizer, chat, causal, processor
        self.sees = processor is not None
        self._in_parts = chat and self.sees and _takes_parts(tokenizer)
        self.blind = self._blindness()
        self._names = frozenset(inspect.signature(model.forward).parameters) - {"input_ids", "attention_mask"}
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
        self._passages = lru_cache(SEEN_KEPT if self.sees else PROMPTS_KEPT)(self.read)

    def begin(self, request: Request) -> Completion:
        sampling = request.sampling
        passage = self._passages(request.prompt)
        prompt = passage.tokens
        room = min(
            sampling.max_tokens,
            _left("max_length", sampling.max_length, prompt, shared=True),
            # An encoder and its decoder have as much each.
            _left("the model's context", self._longest, prompt, shared=self._causal),
        )
        ends = self._ends | {self._specials[stop] for stop in sampling.stop if stop in self._specials}
        before = prompt[-CONTEXT:] if self._causal else ()
        return Completion(passage, sampling, int(room), ends, self._tokenizer, before)

    def read(self, prompt: Prompt) -> Passage:
        if not has_pictures(prompt):
            return Passage(self._tokenize(prompt))
        if self.blind:
            raise ModelError(f"it cannot be shown pictures: {self.blind}")
        text = self._in_template(prompt)
        pictures = [
            _open_picture(image) for message in prompt if isinstance(message, Message) for image in message.images
        ]
        try:
            made = self._processor(
                text=[text], images=[pictures], add_special_tokens=self._adds_specials(text), return_tensors="pt"
            )
        except Exception as error:  # code of the model's authors, which says in its own way what it does not take
            raise ModelError(f"the processor does not take this prompt: {type(error).__name__}: {error}") from error
        return Passage(
            tuple(made["input_ids"][0].tolist()),
            Pictures({name: value for name, value in made.items() if name in self._names}),
        )

    def _tokenize(self, prompt: Prompt) -> tuple[int, ...]:
        text = self._in_template(prompt) if self._chat else as_text(prompt)
        specials = self._adds_specials(text)
        tokens: list[int] = self._tokenizer(text, add_special_tokens=specials, verbose=False)["input_ids"]
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

    def _adds_specials(self, text: str) -> bool:
        """A template has all the special tokens that belong there; those of models that see may leave out the first."""
        first = self._tokenizer.bos_token
        return not self._chat or (self.sees and not (first and text.startswith(first)))

    def _in_template(self, prompt: Prompt) -> str:
        from jinja2 import TemplateError

        messages = [Message("user", prompt)] if isinstance(prompt, str) else prompt
        begun = messages[-1].role == "assistant"  # its answer has been begun, and is gone on with
        try:
            text: str = self._tokenizer.apply_chat_template(
                [{"role": message.role, "content": self._content(message)} for message in messages],
                tokenize=False,
                add_generation_prompt=not begun,
                continue_final_message=begun,
            )
        except (TemplateError, ValueError) as error:
            raise ModelError(f"the chat template does not take this prompt: {error}") from None
        return text

    def _content(self, message: Message) -> str | list[dict[str, str]]:
        if not self._in_parts:
            return message.text
        parts = (Text(message.content),) if isinstance(message.content, str) else message.content
        return [{"type": "text", "text": part.text} if isinstance(part, Text) else {"type": "image"} for part in parts]

    def _blindness(self) -> str:
        if not self.sees:
            return READS_ONLY
        if not self._chat:
            return "asked with --api completions it is given text only"
        return "" if self._in_parts else "its chat template has no place for them"


def _takes_parts(tokenizer: Any) -> bool:
    """Whether a chat template goes through the parts of a message; one that does not shows them as they are."""
    word = "proctor"
    messages = [{"role": "user", "content": [{"type": "text", "text": word}]}]
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False)
    except Exception:  # a template is a program, which says in its own way what it does not take
        return False
    return word in text and "'text'" not in text


def _open_picture(image: Image) -> Any:
    from PIL import Image as Picture
    from PIL import ImageOps

    try:
        with Picture.open(io.BytesIO(image.data)) as picture:
            return ImageOps.exif_transpose(picture).convert("RGB")
    except Exception as error:  # a file from anywhere
        raise ModelError(f"a picture of the prompt cannot be read: {error}") from None


def _open_engine(name: str, model: Any, reader: Reader, causal: bool, batch_size: int | None) -> tuple[Worker, str]:
    """The engine that is fastest for the model, and in a few words how it decodes."""
    # Only now: without the libraries they cannot even be imported.
    from proctor.models.decoder import CausalDecoder, Seq2SeqDecoder
    from proctor.models.engine import Engine

    rows = batch_size or USUAL_ROWS
    if not causal:
        decoder = Seq2SeqDecoder(model, _decoder_start(model))
        return Engine(name, decoder, reader.begin, rows), "plain: it has an encoder"
    if reader.sees:
        from proctor.models.soloist import Soloist
        from proctor.models.trial import why_not_together

        if reason := why_not_together(model, (reader.read(prompt) for prompt in _trial_prompts(reader))):
            return Soloist(name, model, reader.begin), f"one at a time: {reason}"
        return Engine(name, CausalDecoder(model), reader.begin, rows), "plain: it takes pictures"
    reason = _why_no_slots(model)
    if not reason:
        from proctor.models.attention import UnfitError
        from proctor.models.slots import SlotEngine
        from proctor.models.stepper import Stepper

        slots = batch_size or USUAL_SLOTS
        try:
            stepper = Stepper(model, slots)
        except UnfitError as unfit:
            reason = str(unfit)
        else:
            return SlotEngine(name, stepper, reader.begin, slots), "slots" if stepper.graphs else "slots without graphs"
    return Engine(name, CausalDecoder(model), reader.begin, rows), f"plain: {reason}"


def _why_no_slots(model: Any) -> str:
    if model.device.type not in FAST_DEVICES:
        return "there is no GPU"
    several = len(set(getattr(model, "hf_device_map", {}).values())) > 1
    return "it lies on several devices" if several else ""


def _trial_prompts(reader: Reader) -> list[Prompt]:
    """Of different lengths, with pictures of different sizes, one and several and none."""
    words = Text("What is in the box?")
    if reader.blind:
        return ["What is in the box?", "The quick brown fox jumps over the lazy dog"]
    return [
        (Message("user", (_gradient(96, 64), words)),),
        (Message("user", "Say something."),),
        (Message("user", (_gradient(64, 80), _gradient(112, 96), words)),),
    ]


def _gradient(width: int, height: int) -> Image:
    from PIL import Image as Picture

    file = io.BytesIO()
    Picture.linear_gradient("L").resize((width, height)).save(file, "PNG")
    return Image(file.getvalue())


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
