"""The contract of a model: a request goes in, an output comes back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from proctor.types import Output, Prompt, Sample, Usage


class Sampling(Struct, frozen=True):
    max_tokens: int
    temperature: float = 0.0
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int = 0


class Request(Struct, frozen=True):
    prompt: Prompt
    sampling: Sampling
    number: int  # which of the completions of this sample: 0, 1, 2 …
    sample: Sample  # what is asked about; only scripted candidates look at it


def as_messages(prompt: Prompt) -> list[dict[str, str]]:
    """The prompt for a chat endpoint; plain text is what the user says."""
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    return [{"role": message.role, "content": message.content} for message in prompt]


def as_text(prompt: Prompt) -> str:
    """The prompt for an endpoint that completes text."""
    return prompt if isinstance(prompt, str) else "\n\n".join(message.content for message in prompt)


def read_completion(reply: dict[str, Any], seconds: float) -> Output:
    """The output in a reply of OpenAI's chat or completions format."""
    choice = reply["choices"][0]
    text = choice["message"]["content"] if "message" in choice else choice["text"]
    usage = reply.get("usage") or {}
    return Output(
        text=text or "",
        usage=Usage(usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0),
        finish=choice.get("finish_reason") or "stop",
        seconds=seconds,
    )


class Model(ABC):
    """Answers requests. A transient failure raises TransientModelError and is tried again."""

    name: str

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:  # noqa: B027
        """Called once before the first request: load weights, reach the server, look the exam over."""

    @abstractmethod
    async def generate(self, request: Request) -> Output: ...

    def identity(self) -> dict[str, str]:
        """All that could change an answer besides the request: file hash, server, endpoint."""
        return {"model": self.name}

    async def close(self) -> None:  # noqa: B027
        """Called once at the end."""
