"""OpenAI-compatible servers: chat, completions and responses endpoints (`openai/NAME`, --base-url)."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec

from proctor.core.errors import ModelError, RequestRefusedError, TransientModelError, UsageError
from proctor.core.types import LENGTH, Output, Sample
from proctor.models.base import (
    REASONING_TOKENS,
    Model,
    Request,
    as_input,
    as_messages,
    as_text,
    cut,
    read_completion,
    read_response,
)

OPENAI_URL = "https://api.openai.com/v1"
MAX_STOPS = 4  # of OpenAI; compatible servers take any number
CONNECT_TIMEOUT = 15.0  # seconds; a host that does not accept connections fails before --timeout
TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
OVERLOADED = frozenset({429, 503, 529})
REFUSED = frozenset({401, 403, 404})
INVALID_REQUEST = frozenset({400, 413, 422})
ABOUT_LENGTH = re.compile(r"max_(?:\w+_)?tokens|context[ _](?:length|size|window)|token count", re.IGNORECASE)
CONTEXT_KEYS = ("max_model_len", "context_length", "context_window", "max_context_length")  # of a model's description
JSON = {"Content-Type": "application/json"}
PATHS = {"chat": "chat/completions", "completions": "completions", "responses": "responses"}


class OpenAIModel(Model):
    url_option, api_option = "--base-url", "--api"  # named in error messages

    def __init__(self, name: str, base_url: str | None, api: str, timeout: float, api_key_env: str) -> None:
        self.name = f"openai/{name}"
        self._server_name = name
        self._url = (base_url or OPENAI_URL).rstrip("/")
        self.server = urlsplit(self._url).netloc
        self._api = api
        self.no_images_reason = (
            "the completions endpoint takes text only, unlike --api chat" if api == "completions" else ""
        )
        self._timeout = timeout
        self._key_env = api_key_env
        self._key = os.environ.get(api_key_env, "").strip()
        if base_url is None and not self._key:
            raise UsageError(
                f"No API key: set the environment variable {api_key_env}, "
                f"or pass {self.url_option} for a server that needs none."
            )
        # OpenAI has renamed the field; most compatible servers know only the old name.
        self._max_stops = MAX_STOPS if base_url is None else None
        self._max_tokens_field = "max_completion_tokens" if base_url is None and api == "chat" else "max_tokens"
        self.reasoning_tokens = 0 if api == "completions" else REASONING_TOKENS
        self._answered = False  # after the first answer, a refusal concerns a single request
        self._described = ""  # the server's description of the model, if any
        self._session: aiohttp.ClientSession | None = None

    def identity(self) -> dict[str, str]:
        return {"model": self.name, "server": self._url, "api": self._api, "described": self._described}

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        self._session = aiohttp.ClientSession(
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=min(self._timeout, CONNECT_TIMEOUT)),
            connector=aiohttp.TCPConnector(limit=0),  # ServerLimit limits the concurrency
        )
        # At least CONNECT_TIMEOUT, because a busy machine may need longer than a short --timeout.
        timeout = aiohttp.ClientTimeout(total=max(self._timeout, CONNECT_TIMEOUT), sock_connect=CONNECT_TIMEOUT)
        try:
            async with self._session.get(f"{self._url}/models", timeout=timeout) as response:
                # Servers need not have this endpoint: of the errors, only a refused key counts.
                if response.status in (401, 403):
                    raise self._refusal(response.status, _error_message(await response.read()))
                if response.status == 200:
                    self._take_description(_description(await response.read(), self._server_name))
        except (aiohttp.ClientConnectionError, TimeoutError) as error:
            raise RequestRefusedError(
                f"Cannot reach the model server {self._url}: {_reason(error)}. Is it running, "
                f"and is {self.url_option} right?"
            ) from None
        except (aiohttp.ClientError, UnicodeError) as error:
            raise RequestRefusedError(f"{self._url} does not answer like a model server: {_reason(error)}.") from None

    def _take_description(self, described: dict[str, Any]) -> None:
        # Only what depends on the weights: on some servers other fields are timestamps or random.
        stable = {key: described[key] for key in ("root", "owned_by", "max_model_len", "meta") if key in described}
        self._described = msgspec.json.encode(stable, order="sorted").decode() if described else ""
        contexts = [described[key] for key in CONTEXT_KEYS if isinstance(described.get(key), int)]
        # Servers refuse a request whose prompt and max_tokens together exceed the context.
        self.reasoning_tokens = min([self.reasoning_tokens, *(context // 2 for context in contexts if context > 1)])

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def generate(self, request: Request) -> Output:
        if self._session is None:
            raise RuntimeError("prepare() comes before generate()")
        started = time.perf_counter()
        try:
            # A followed redirect would drop the prompt.
            url = f"{self._url}/{PATHS[self._api]}"
            body = msgspec.json.encode(self._body(request))
            async with self._session.post(url, data=body, headers=JSON, allow_redirects=False) as response:
                content = await response.read()
                if response.status != 200:
                    raise self._failure(response, content, request)
        except TimeoutError:
            raise TransientModelError(f"no answer within {self._timeout:g} s", overloaded=True) from None
        except aiohttp.ClientError as error:
            raise TransientModelError(f"connection to {self._url} failed: {_reason(error)}") from None
        try:
            reply = msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise TransientModelError(f"the reply is not JSON ({error})") from None
        read = read_response if self._api == "responses" else read_completion
        output = read(reply, time.perf_counter() - started)
        self._answered = True
        # Cut here too, because the server did not get stop strings beyond its maximum.
        text, finish = cut(output.text, request.sampling.stop), output.finish
        if text != output.text:
            finish = "stop"
        elif output.usage.output_tokens >= request.sampling.max_tokens:
            finish = LENGTH  # some servers report "stop" for every output
        return msgspec.structs.replace(output, text=text, finish=finish)

    def _body(self, request: Request) -> dict[str, Any]:
        sampling = request.sampling
        if self._api == "responses":
            return self._responses_body(request)
        body: dict[str, Any] = {
            "model": self._server_name,
            self._max_tokens_field: sampling.max_tokens,
            "temperature": sampling.temperature,
            "seed": sampling.seed % 2**31,  # some servers take a signed 32-bit integer
        }
        if self._api == "chat":
            body["messages"] = as_messages(request.prompt)
        else:
            body["prompt"] = as_text(request.prompt)
        if sampling.top_p is not None:
            body["top_p"] = sampling.top_p
        if sampling.top_k is not None:
            body["top_k"] = sampling.top_k
        if sampling.stop:
            body["stop"] = list(sampling.stop[: self._max_stops])
        if request.schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": _format(request.schema)}
        return body

    def _responses_body(self, request: Request) -> dict[str, Any]:
        """The Responses API takes neither a seed nor stop strings."""
        sampling = request.sampling
        body: dict[str, Any] = {
            "model": self._server_name,
            "input": as_input(request.prompt),
            "max_output_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
        }
        if sampling.top_p is not None:
            body["top_p"] = sampling.top_p
        if request.schema is not None:
            body["text"] = {"format": {"type": "json_schema", **_format(request.schema)}}
        return body

    def _failure(self, response: aiohttp.ClientResponse, content: bytes, request: Request) -> Exception:
        text = self._without_key(_error_message(content))
        if response.status in TRANSIENT:
            wait = _retry_after(response.headers.get("Retry-After"))
            return TransientModelError(f"HTTP {response.status}: {text}", wait, response.status in OVERLOADED)
        if 300 <= response.status < 400:
            text = f"redirected to {response.headers.get('Location', 'nowhere')}: pass that as {self.url_option}"
        if (response.status in REFUSED or 300 <= response.status < 400) and not self._answered:
            return self._refusal(response.status, text)
        if response.status in INVALID_REQUEST and ABOUT_LENGTH.search(text):
            text += f" (the request had --max-tokens {request.sampling.max_tokens}: lower it)"
        return ModelError(f"HTTP {response.status}: {text}")

    def _refusal(self, status: int, text: str) -> RequestRefusedError:
        text = self._without_key(text)
        if status not in (401, 403):
            return RequestRefusedError(
                f"{self._url} has no model {self._server_name!r} or no such endpoint ({status}: {text}). "
                f"Check the model name, {self.url_option} and {self.api_option}."
            )
        hint = "is it the right one?" if self._key else "the variable is not set."
        return RequestRefusedError(f"{self._url} refused the API key from {self._key_env} ({status}: {text}): {hint}")

    def _without_key(self, text: str) -> str:
        # Some servers quote the key in errors; it must not reach a record or the terminal.
        return text.replace(self._key, "***") if self._key else text


def _format(schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": "answer", "schema": schema, "strict": True}


def _description(content: bytes, name: str) -> dict[str, Any]:
    """A server's description of a model; empty if there is none."""
    try:
        models = msgspec.json.decode(content)["data"]
        return dict(next(model for model in models if model.get("id") == name))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError, StopIteration):
        return {}


def _error_message(content: bytes) -> str:
    try:
        error = msgspec.json.decode(content)["error"]
        text = error["message"] if isinstance(error, dict) else error
    except (msgspec.DecodeError, KeyError, TypeError):
        text = content.decode(errors="replace")
    return " ".join(str(text).split())[:500]


def _retry_after(value: str | None) -> float | None:
    """Seconds to wait, from either form of the header."""
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):  # not a date, no time zone, or out of range
        return None


def _reason(error: Exception) -> str:
    if isinstance(error, asyncio.TimeoutError):
        return "no answer in time"
    return str(error) or type(error).__name__
