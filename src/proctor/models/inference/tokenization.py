"""Tokenization of requests: chat templates, special tokens, images and token limits."""

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

SPACE_MARKER = "\u2581"  # a space in some tokenizers, such as that of Code Llama
PROMPT_CACHE_SIZE = 256  # tokenized prompts, for further completions of the same prompt
IMAGE_PROMPT_CACHE_SIZE = 8  # the same for prompts with images, of tens of megabytes each
TEXT_ONLY = "it is a model of text alone"


class PromptEncoder:
    """Turns requests into completions: prompt tokens, a token limit, and end tokens."""

    def __init__(self, model: Any, tokenizer: Any, chat: bool, causal: bool, processor: Any = None) -> None:
        """With a processor the model is a vision model."""
        self._tokenizer, self._chat, self._causal = tokenizer, chat, causal
        self._processor = processor
        self.is_vision = processor is not None
        self._uses_parts = chat and self.is_vision and _template_takes_parts(tokenizer)
        self.no_images_reason = self._find_no_images_reason()
        parameters = frozenset(inspect.signature(model.forward).parameters)
        self._image_arguments = parameters - {"input_ids", "attention_mask"}
        config = model.config.get_text_config()
        self._context_length: int | None = getattr(config, "max_position_embeddings", None)
        configured = model.generation_config.eos_token_id
        configured = configured if isinstance(configured, list) else [configured]
        self._eos_tokens = frozenset({*configured, tokenizer.eos_token_id} - {None})
        # Special tokens are not part of the text, but can be stop strings. Users write a
        # space where the tokenizer has its marker.
        added = tokenizer.added_tokens_decoder.items()
        named = [(token.content, number) for number, token in added]
        with_spaces = [(content.replace(SPACE_MARKER, " "), number) for content, number in named]
        self._special_tokens = dict(with_spaces + named)
        # Some tokenizers append an end token, after which a model would not continue.
        empty = tokenizer("")["input_ids"]
        one_for_both = tokenizer.bos_token_id == tokenizer.eos_token_id and len(empty) == 1
        appends_eos = empty[-1:] == [tokenizer.eos_token_id] and not one_for_both
        self._appends_eos = causal and appends_eos
        cache_size = IMAGE_PROMPT_CACHE_SIZE if self.is_vision else PROMPT_CACHE_SIZE
        self._encode_cached = lru_cache(cache_size)(self.encode)

    def start(self, request: Request) -> Completion:
        sampling = request.sampling
        prompt = self._encode_cached(request.prompt)
        tokens = prompt.tokens
        max_tokens = min(
            sampling.max_tokens,
            _remaining_tokens("max_length", sampling.max_length, tokens, shared=True),
            # An encoder and its decoder have a context each.
            _remaining_tokens("the model's context", self._context_length, tokens, shared=self._causal),
        )
        stops = {stop for stop in sampling.stop if stop in self._special_tokens}
        eos_tokens = self._eos_tokens | {self._special_tokens[stop] for stop in stops}
        context = tokens[-CONTEXT:] if self._causal else ()
        return Completion(prompt, sampling, int(max_tokens), eos_tokens, self._tokenizer, context)

    def encode(self, prompt: Prompt) -> TokenizedPrompt:
        if not has_images(prompt):
            return TokenizedPrompt(self._tokenize(prompt))
        if self.no_images_reason:
            raise ModelError(f"the model does not take images: {self.no_images_reason}")
        text = self._apply_template(prompt)
        images = [_open_image(image) for message in _messages(prompt) for image in message.images]
        try:
            inputs = self._processor(
                text=[text],
                images=[images],
                add_special_tokens=self._adds_special_tokens(text),
                return_tensors="pt",
            )
        except Exception as error:  # a processor may be the code of a model's authors
            raise ModelError(f"the processor does not take this prompt: {type(error).__name__}: {error}") from error
        tensors = {name: value for name, value in inputs.items() if name in self._image_arguments}
        return TokenizedPrompt(tuple(inputs["input_ids"][0].tolist()), ImageInputs(tensors))

    def _tokenize(self, prompt: Prompt) -> tuple[int, ...]:
        text = self._apply_template(prompt) if self._chat else as_text(prompt)
        tokens: list[int] = self._tokenizer(text, add_special_tokens=self._adds_special_tokens(text), verbose=False)[
            "input_ids"
        ]
        bos, eos = self._tokenizer.bos_token_id, self._tokenizer.eos_token_id
        if not self._chat:
            if self._appends_eos:
                tokens = tokens[:-1]
            if tokens[:2] == [bos, bos]:  # the text began with it already
                tokens = tokens[1:]
        if not tokens:
            # A model continues an empty prompt from the token that starts or ends its texts.
            tokens = [token for token in (bos, eos) if token is not None][:1]
        if not tokens:
            raise ModelError("the prompt has no tokens")
        return tuple(tokens)

    def _adds_special_tokens(self, text: str) -> bool:
        """Chat templates contain their special tokens, but those of vision models may lack
        the first."""
        bos = self._tokenizer.bos_token
        return not self._chat or (self.is_vision and not (bos and text.startswith(bos)))

    def _apply_template(self, prompt: Prompt) -> str:
        from jinja2 import TemplateError

        messages = _messages(prompt)
        has_prefix = messages[-1].role == "assistant"  # the completion continues this answer
        try:
            text: str = self._tokenizer.apply_chat_template(
                [{"role": message.role, "content": self._content(message)} for message in messages],
                tokenize=False,
                add_generation_prompt=not has_prefix,
                continue_final_message=has_prefix,
            )
        except (TemplateError, ValueError) as error:
            raise ModelError(f"the chat template does not take this prompt: {error}") from None
        return text

    def _content(self, message: Message) -> str | list[dict[str, str]]:
        if not self._uses_parts:
            return message.text
        content = message.content
        parts = (Text(content),) if isinstance(content, str) else content
        return [{"type": "text", "text": part.text} if isinstance(part, Text) else {"type": "image"} for part in parts]

    def _find_no_images_reason(self) -> str:
        if not self.is_vision:
            return TEXT_ONLY
        if not self._chat:
            return "with --api completions it takes text only"
        return "" if self._uses_parts else "its chat template does not support images"


def _messages(prompt: Prompt) -> tuple[Message, ...]:
    return (Message("user", prompt),) if isinstance(prompt, str) else prompt


def _template_takes_parts(tokenizer: Any) -> bool:
    """Whether a chat template iterates over the parts of a message; others print the list."""
    word = "proctor"
    messages = [{"role": "user", "content": [{"type": "text", "text": word}]}]
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False)
    except Exception:  # a template is a program and may raise anything
        return False
    return word in text and "'text'" not in text


def _open_image(image: Image) -> Any:
    from PIL import Image as PILImage
    from PIL import ImageOps

    try:
        with PILImage.open(io.BytesIO(image.data)) as opened:
            return ImageOps.exif_transpose(opened).convert("RGB")
    except Exception as error:  # the file may be anything
        raise ModelError(f"an image of the prompt cannot be read: {error}") from None


def _remaining_tokens(name: str, limit: int | None, prompt: tuple[int, ...], shared: bool) -> float:
    """How many tokens a limit leaves for a completion."""
    if limit is None:
        return math.inf
    if len(prompt) >= limit:
        raise ModelError(f"the prompt has {len(prompt)} tokens and {name} is {limit}: no tokens are left for an answer")
    return limit - len(prompt) if shared else limit
