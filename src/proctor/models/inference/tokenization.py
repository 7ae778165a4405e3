"""What a local model is asked, in tokens and tensors: by its tokenizer, chat template and processor of pictures."""

from __future__ import annotations

import inspect
import io
import math
from functools import lru_cache
from typing import Any

from proctor.core.errors import ModelError
from proctor.core.types import Image, Message, Prompt, Text
from proctor.models.base import Request, as_text, has_images
from proctor.models.inference.completion import CONTEXT, Completion
from proctor.models.inference.prompt import ImageInputs, TokenizedPrompt

SPACE_MARKER = "\u2581"  # as tokenizers write it: at the start of Code Llama's tokens, for example
PROMPT_CACHE_SIZE = 256  # as tokens, for the next completion of the same
IMAGE_PROMPT_CACHE_SIZE = 8  # the same with pictures, of which each may take tens of megabytes
TEXT_ONLY = "it is a model of text alone"


class PromptEncoder:
    """Makes of a request what a decoder needs: tokens, how many more there may be, and which of them are the end."""

    def __init__(self, model: Any, tokenizer: Any, chat: bool, causal: bool, processor: Any = None) -> None:
        """With a processor it is a model that sees, which is told what it sees by the names that its code has."""
        self._tokenizer, self._chat, self._causal, self._processor = tokenizer, chat, causal, processor
        self.sees = processor is not None
        self._in_parts = chat and self.sees and _template_takes_parts(tokenizer)
        self.no_images_reason = self._blindness()
        self._names = frozenset(inspect.signature(model.forward).parameters) - {"input_ids", "attention_mask"}
        self._longest: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)
        stated = model.generation_config.eos_token_id
        stated = stated if isinstance(stated, list) else [stated]
        self._ends = frozenset({*stated, tokenizer.eos_token_id} - {None})
        # Those that are left out of a text can still be named as stop strings, their spaces as anybody writes them.
        named = [(token.content, number) for number, token in tokenizer.added_tokens_decoder.items()]
        self._specials = dict([(content.replace(SPACE_MARKER, " "), number) for content, number in named] + named)
        # Some tokenizers close every text, which is to be gone on with here.
        around = tokenizer("")["input_ids"]
        one_for_both = tokenizer.bos_token_id == tokenizer.eos_token_id and len(around) == 1
        self._closes = causal and around[-1:] == [tokenizer.eos_token_id] and not one_for_both
        self._passages = lru_cache(IMAGE_PROMPT_CACHE_SIZE if self.sees else PROMPT_CACHE_SIZE)(self.read)

    def begin(self, request: Request) -> Completion:
        sampling = request.sampling
        passage = self._passages(request.prompt)
        prompt = passage.tokens
        room = min(
            sampling.max_tokens,
            _remaining_tokens("max_length", sampling.max_length, prompt, shared=True),
            # An encoder and its decoder have as much each.
            _remaining_tokens("the model's context", self._longest, prompt, shared=self._causal),
        )
        ends = self._ends | {self._specials[stop] for stop in sampling.stop if stop in self._specials}
        before = prompt[-CONTEXT:] if self._causal else ()
        return Completion(passage, sampling, int(room), ends, self._tokenizer, before)

    def read(self, prompt: Prompt) -> TokenizedPrompt:
        if not has_images(prompt):
            return TokenizedPrompt(self._tokenize(prompt))
        if self.no_images_reason:
            raise ModelError(f"it cannot be shown pictures: {self.no_images_reason}")
        text = self._in_template(prompt)
        pictures = [_open_image(image) for message in _messages(prompt) for image in message.images]
        try:
            made = self._processor(
                text=[text], images=[pictures], add_special_tokens=self._adds_specials(text), return_tensors="pt"
            )
        except Exception as error:  # code of the model's authors, which says in its own way what it does not take
            raise ModelError(f"the processor does not take this prompt: {type(error).__name__}: {error}") from error
        return TokenizedPrompt(
            tuple(made["input_ids"][0].tolist()),
            ImageInputs({name: value for name, value in made.items() if name in self._names}),
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

        messages = _messages(prompt)
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
            return TEXT_ONLY
        if not self._chat:
            return "asked with --api completions it is given text only"
        return "" if self._in_parts else "its chat template has no place for them"


def _messages(prompt: Prompt) -> tuple[Message, ...]:
    return (Message("user", prompt),) if isinstance(prompt, str) else prompt


def _template_takes_parts(tokenizer: Any) -> bool:
    """Whether a chat template goes through the parts of a message; one that does not shows them as they are."""
    word = "proctor"
    messages = [{"role": "user", "content": [{"type": "text", "text": word}]}]
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False)
    except Exception:  # a template is a program, which says in its own way what it does not take
        return False
    return word in text and "'text'" not in text


def _open_image(image: Image) -> Any:
    from PIL import Image as Picture
    from PIL import ImageOps

    try:
        with Picture.open(io.BytesIO(image.data)) as picture:
            return ImageOps.exif_transpose(picture).convert("RGB")
    except Exception as error:  # a file from anywhere
        raise ModelError(f"a picture of the prompt cannot be read: {error}") from None


def _remaining_tokens(name: str, limit: int | None, prompt: tuple[int, ...], shared: bool) -> float:
    """How many tokens a limit leaves for a completion."""
    if limit is None:
        return math.inf
    if len(prompt) >= limit:
        raise ModelError(f"the prompt has {len(prompt)} tokens and {name} is {limit}: there is no room for an answer")
    return limit - len(prompt) if shared else limit
