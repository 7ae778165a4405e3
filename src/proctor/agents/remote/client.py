"""The referee's connection to a remote agent. Its answers are untrusted: wrong, late or missing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from proctor.agents.constants import NETWORK, TIMEOUTS
from proctor.agents.remote import messages
from proctor.agents.server.access import is_loopback, own_token
from proctor.agents.server.connection import JSON, Connection, UnreachableError
from proctor.core.errors import UsageError

T = TypeVar("T")

SHOWN = 500  # characters of an invalid answer


class RemoteAgentError(Exception):
    """The agent cannot be reached, raised something, or gave an invalid answer."""


class RemoteAgentConnection:
    """A connection to one agent; one step at a time."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection = Connection(url, _token_for(url), messages.LARGEST_ANSWER)
        self._asked_at: float | None = None

    @property
    def busy_seconds(self) -> float:
        """How long the last frame has been without an answer."""
        return 0.0 if self._asked_at is None else time.monotonic() - self._asked_at

    async def check(self) -> None:
        """Raises if the agent does not answer, speaks another protocol, or is busy."""
        read = msgspec.json.Decoder(messages.Status).decode
        status = await self._ask("GET", messages.STATUS, read, b"", {}, TIMEOUTS.REQUEST)
        if status.protocol != messages.VERSION:
            raise RemoteAgentError(
                f"{self.url} speaks version {status.protocol} of the protocol, not {messages.VERSION}"
            )

    async def begin(self, begin: messages.Begin) -> None:
        await self._ask("POST", messages.BEGIN, _anything, msgspec.json.encode(begin), JSON, TIMEOUTS.STARTING)

    async def step(
        self, episode: str, number: int, body: bytes, headers: dict[str, str], read: Callable[[bytes], T]
    ) -> T:
        """Has no timeout: the clock of the episode cancels it."""
        self._asked_at = time.monotonic()
        all_headers = {messages.EPISODE: episode, messages.NUMBER: str(number), **headers}
        answer = await self._ask("POST", messages.STEP, read, body, all_headers, None)
        self._asked_at = None
        return answer

    def forget(self) -> None:
        """Called after a step was cancelled."""
        self._asked_at = None

    async def end(self, episode: str) -> None:
        body = msgspec.json.encode(messages.End(episode))
        await self._ask("POST", messages.END, _anything, body, JSON, TIMEOUTS.REQUEST)

    async def _ask(
        self,
        method: str,
        path: str,
        read: Callable[[bytes], T],
        body: bytes,
        headers: dict[str, str],
        seconds: float | None,
    ) -> T:
        try:
            status, text = await self._connection.ask(
                method, path, body, headers, answer_within=seconds, connect_within=TIMEOUTS.REQUEST
            )
        except UnreachableError as error:
            raise RemoteAgentError(f"the agent cannot be reached: {error}") from error
        if status != 200:
            raise RemoteAgentError(_refusal(self.url, path, status, text))
        try:
            return read(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            shown = text[:SHOWN].decode(errors="replace")
            raise RemoteAgentError(f"{self.url} gave an invalid answer: {error}; it was: {shown!r}") from error

    async def close(self) -> None:
        await self._connection.close()


def _anything(text: bytes) -> Any:
    return None


def _refusal(url: str, path: str, status: int, text: bytes) -> str:
    if status == 500:
        try:
            return f"the agent raised {msgspec.json.decode(text, type=messages.AgentFailure).error[:SHOWN]}"
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
    return f"{url}{path}: {status} {text[:SHOWN].decode(errors='replace')}"


def _token_for(url: str) -> str:
    host = urlsplit(url).hostname or ""
    try:
        return own_token(NETWORK.DEFAULT_HOST if is_loopback(host) else host)
    except UsageError:
        raise UsageError(
            f"agent {url}: on another machine it needs a token that both sides know: set $PROCTOR_TOKEN here and there."
        ) from None
