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
MAX_TOKENS = 2**31 - 1  # of one request: more is no number of tokens
# The default of --max-tokens for chat models, which may reason before they answer: the most that common hosted models
# take (those of DeepSeek and Qwen refuse more), and room for the reasoning that a question of these tasks needs.
REASONING_TOKENS = 8_192
# How servers of OpenAI's formats say that an output reached its most tokens.
LENGTH_REASONS = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
FILTER_MESSAGE = "the server's content filter kept the answer back"


class Sampling(Struct, frozen=True):
    max_tokens: int
    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    max_length: int | None = None  # of prompt and completion together, for models that can count
    stop: tuple[str, ...] = ()
    seed: int = 0


class Request(Struct, frozen=True):
    prompt: Prompt
    sampling: Sampling
    number: int  # which of the completions of this sample: 0, 1, 2 …
    sample: Sample  # what is asked about; only scripted candidates look at it
    schema: dict[str, Any] | None = None  # of the JSON that the answer must be, for servers that can see to it


def as_messages(prompt: Prompt) -> list[dict[str, Any]]:
    """The prompt for a chat endpoint; plain text is what the user says."""
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
        raise ModelError("a picture cannot be put into a prompt of plain text")
    return "\n\n".join(message.text for message in prompt)


def estimate_tokens(prompt: Prompt) -> int:
    """About how many tokens a prompt has, for whoever has no tokenizer of the model."""
    messages = [Message("user", prompt)] if isinstance(prompt, str) else prompt
    characters = sum(len(message.text) for message in messages)
    pictures = sum(len(message.images) for message in messages)
    return math.ceil(characters / TOKEN_LENGTH) + MESSAGE_TOKENS * len(messages) + IMAGE_TOKENS * pictures


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
        if isinstance(text, list):  # in parts, as some servers send it, with the reasoning in parts of its own
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
        # A proxy's page instead of an answer, or a server in trouble: the next try may get through.
        raise TransientModelError(f"the reply is not a completion ({type(error).__name__}: {error})") from None
    if finish == "error" or choice.get("error"):
        raise TransientModelError(f"the server failed in the middle of its answer: {choice.get('error') or finish}")
    if finish == "content_filter":
        # Not the model's answer, so neither right nor wrong.
        raise ModelError(FILTER_MESSAGE)
    return output


def _tokens(stated: Any) -> int:
    """A number that can be added up and stored, whatever a server says."""
    return min(max(0, int(stated or 0)), MAX_TOKENS)


def read_response(reply: Any, seconds: float) -> Output:
    """The output in a reply of OpenAI's Responses API."""
    try:
        status, failure, usage = reply.get("status"), reply.get("error"), reply.get("usage") or {}
        filtered = (reply.get("incomplete_details") or {}).get("reason") == "content_filter"
        # Beside its messages a model may show what it thought; a refusal is a part that has no text.
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
        raise TransientModelError(f"the server failed in the middle of its answer: {failure or status}")
    if filtered:
        raise ModelError(FILTER_MESSAGE)
    if any(part["type"] == "refusal" for part in parts):
        raise ModelError("the model refused to answer")
    return output


class Model(Candidate):
    """Answers requests. A transient failure raises TransientModelError and is tried again."""

    in_process: bool = False  # computes where it is opened; else it only talks to somebody
    no_images_reason: str = ""  # why it cannot be shown pictures, where it cannot; known once prepared
    server: str = ""  # whose slots it shares with all other models there; empty for a model in this process
    default_api: Literal["chat", "completions"] = "chat"  # how it is asked unless a run says it; known once prepared
    # Tokens that a completion gets at least, unless a run says --max-tokens: a chat model may reason before it answers.
    # 0 where the length of an answer is enough; known once prepared.
    reasoning_tokens: int = 0

    @abstractmethod
    async def generate(self, request: Request) -> Output: ...

    def refuse_images(self, samples: Callable[[], Iterable[Sample]]) -> None:
        """Ends the run before it begins, if the exam shows pictures and they cannot be seen."""
        first = next(iter(samples()), None) if self.no_images_reason else None
        if first is not None and has_images(first.input):
            raise UsageError(
                f"{self.name} cannot be shown pictures: {self.no_images_reason}. Use --modality text, or another model."
            )
