"""The contract of a model: a request goes in, an output comes back."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Literal

from msgspec import Struct

from proctor.core.candidate import Candidate
from proctor.core.errors import ModelError, TransientModelError, UsageError
from proctor.core.types import LENGTH, Image, Message, Output, Prompt, Sample, Usage

TOKEN_LENGTH = 4  # characters, of English text
MESSAGE_TOKENS = 8  # that a chat template puts around each message
IMAGE_TOKENS = 1_000
MAX_TOKENS = 2**31 - 1  # of one request, as an upper bound of what servers report
# The default of --max-tokens for chat models, which may reason before they answer: enough for
# the reasoning that these tasks need, and the maximum of common hosted models (DeepSeek, Qwen).
REASONING_TOKENS = 8_192
# Finish reasons of OpenAI-compatible servers for an output that reached max_tokens.
LENGTH_REASONS = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
FILTER_MESSAGE = "the server's content filter withheld the answer"


class Sampling(Struct, frozen=True):
    max_tokens: int
    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    max_length: int | None = None  # prompt and completion tokens, for models with a tokenizer
    stop: tuple[str, ...] = ()
    seed: int = 0


class Request(Struct, frozen=True):
    prompt: Prompt
    sampling: Sampling
    number: int  # of the completion of this sample: 0, 1, 2 …
    sample: Sample  # used by scripted models only
    schema: dict[str, Any] | None = None  # JSON schema of the answer, for servers that support it


def as_messages(prompt: Prompt) -> list[dict[str, Any]]:
    """The messages for a chat endpoint; plain text becomes a user message."""
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    return [{"role": message.role, "content": _content(message)} for message in prompt]


def _content(message: Message) -> str | list[dict[str, Any]]:
    if isinstance(message.content, str):
        return message.content
    return [
        {"type": "image_url", "image_url": {"url": part.url}}
        if isinstance(part, Image)
        else {"type": "text", "text": part.text}
        for part in message.content
    ]


def as_input(prompt: Prompt) -> list[dict[str, Any]]:
    """The prompt for OpenAI's Responses API."""
    return [{"role": message["role"], "content": _input_content(message["content"])} for message in as_messages(prompt)]


def _input_content(content: str | list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if isinstance(content, str):
        return content
    return [
        {"type": "input_text", "text": part["text"]}
        if part["type"] == "text"
        else {"type": "input_image", "image_url": part["image_url"]["url"], "detail": "auto"}
        for part in content
    ]


def as_text(prompt: Prompt) -> str:
    """The prompt for an endpoint that completes text."""
    if isinstance(prompt, str):
        return prompt
    if has_images(prompt):
        raise ModelError("a plain-text prompt cannot contain an image")
    return "\n\n".join(message.text for message in prompt)


def estimate_tokens(prompt: Prompt) -> int:
    """Estimate a prompt's tokens without the model's tokenizer."""
    messages = [Message("user", prompt)] if isinstance(prompt, str) else prompt
    characters = sum(len(message.text) for message in messages)
    images = sum(len(message.images) for message in messages)
    return math.ceil(characters / TOKEN_LENGTH) + MESSAGE_TOKENS * len(messages) + IMAGE_TOKENS * images


def cut(completion: str, stop: Iterable[str]) -> str:
    """Cut a completion at the first stop string in it."""
    positions = [start for word in stop if word and (start := completion.find(word)) >= 0]
    return completion[: min(positions)] if positions else completion


def has_images(prompt: Prompt) -> bool:
    return not isinstance(prompt, str) and any(message.images for message in prompt)


def read_completion(reply: Any, seconds: float) -> Output:
    """The output in a reply of OpenAI's chat or completions format."""
    try:
        choice = reply["choices"][0]
        text = choice["message"].get("content") if "message" in choice else choice["text"]
        if isinstance(text, list):  # some servers send parts, with the reasoning in separate parts
            text = "".join(part["text"] for part in text if part.get("type", "text") == "text")
        if not isinstance(text, str | None):
            raise TypeError(f"content is {text!r}")
        usage = reply.get("usage") or {}
        finish = str(choice.get("finish_reason") or "stop")
        output = Output(
            text=text or "",
            usage=Usage(_tokens(usage.get("prompt_tokens")), _tokens(usage.get("completion_tokens"))),
            finish=LENGTH if finish.lower() in LENGTH_REASONS else finish,
            seconds=seconds,
        )
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError) as error:
        # An error page of a proxy, for example: the next attempt may succeed.
        raise TransientModelError(f"the reply is not a completion ({type(error).__name__}: {error})") from None
    if finish == "error" or choice.get("error"):
        raise TransientModelError(f"the server failed while it answered: {choice.get('error') or finish}")
    if finish == "content_filter":
        # Without an answer of the model, there is nothing to score.
        raise ModelError(FILTER_MESSAGE)
    return output


def _tokens(stated: Any) -> int:
    """Clamp a reported number of tokens to what can be summed and stored."""
    return min(max(0, int(stated or 0)), MAX_TOKENS)


def read_response(reply: Any, seconds: float) -> Output:
    """The output in a reply of OpenAI's Responses API."""
    try:
        status, failure, usage = reply.get("status"), reply.get("error"), reply.get("usage") or {}
        filtered = (reply.get("incomplete_details") or {}).get("reason") == "content_filter"
        # Reasoning items are skipped; a refusal is a part without text.
        parts = [part for item in reply["output"] if item["type"] == "message" for part in item["content"]]
        output = Output(
            text="".join(part["text"] for part in parts if part["type"] == "output_text"),
            usage=Usage(_tokens(usage.get("input_tokens")), _tokens(usage.get("output_tokens"))),
            finish=LENGTH if status == "incomplete" else "stop",
            seconds=seconds,
        )
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise TransientModelError(f"the reply is not a response ({type(error).__name__}: {error})") from None
    if failure or status == "failed":
        raise TransientModelError(f"the server failed while it answered: {failure or status}")
    if filtered:
        raise ModelError(FILTER_MESSAGE)
    if any(part["type"] == "refusal" for part in parts):
        raise ModelError("the model refused to answer")
    return output


class Model(Candidate):
    """Answers requests. After a TransientModelError, the request is retried.

    Attributes marked (p) are final once `prepare` has returned.
    """

    in_process: bool = False  # runs in this process; else it calls a server
    no_images_reason: str = ""  # (p) why it does not take images; empty if it does
    server: str = ""  # models of one server share its concurrency limit; empty if in process
    default_api: Literal["chat", "completions"] = "chat"  # (p) without --api
    # (p) The minimum of the default --max-tokens: a chat model may reason before it answers.
    reasoning_tokens: int = 0

    @abstractmethod
    async def generate(self, request: Request) -> Output: ...

    def refuse_images(self, samples: Callable[[], Iterable[Sample]]) -> None:
        """Fail before the run starts if its first sample has images and the model takes none."""
        first = next(iter(samples()), None) if self.no_images_reason else None
        if first is not None and has_images(first.input):
            raise UsageError(
                f"{self.name} does not take images: {self.no_images_reason}. Use --modality text, or another model."
            )
