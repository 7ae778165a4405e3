"""The referee's line to an agent on another machine. Whatever comes over it may be wrong, late, or nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from proctor.agents.constants import NETWORK, TIMEOUTS
from proctor.agents.remote.messages import (
    BEGIN,
    END,
    EPISODE,
    LARGEST_ANSWER,
    NUMBER,
    STATUS,
    STEP,
    VERSION,
    AgentFailure,
    Begin,
    End,
    Status,
)
from proctor.agents.server.access import is_loopback, own_token
from proctor.core.errors import UsageError

T = TypeVar("T")

SHOWN = 500  # characters of an answer that is none


class WireError(Exception):
    """The agent cannot be reached, raised something, or gave an answer that is none."""


class WireClient:
    """One agent, one step at a time."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._session: aiohttp.ClientSession | None = None
        self._asked_at: float | None = None
        self._token = _token_for(url)

    @property
    def busy_seconds(self) -> float:
        """How long it has had the last frame without an answer."""
        return 0.0 if self._asked_at is None else time.monotonic() - self._asked_at

    async def check(self) -> None:
        """That it is there, speaks this protocol and is free."""
        status = await self._ask("GET", STATUS, msgspec.json.Decoder(Status).decode, b"", {}, TIMEOUTS.REQUEST)
        if status.protocol != VERSION:
            raise WireError(f"{self.url} speaks version {status.protocol} of the protocol, not {VERSION}")

    async def begin(self, begin: Begin) -> None:
        await self._ask("POST", BEGIN, _anything, msgspec.json.encode(begin), _JSON, TIMEOUTS.STARTING)

    async def step(
        self, episode: str, number: int, body: bytes, headers: dict[str, str], read: Callable[[bytes], T]
    ) -> T:
        """Has no time limit of its own: whoever keeps the episode's time gives it up."""
        self._asked_at = time.monotonic()
        told = {EPISODE: episode, NUMBER: str(number), **headers}
        answer = await self._ask("POST", STEP, read, body, told, None)
        self._asked_at = None
        return answer

    def forget(self) -> None:
        """The step under way was given up."""
        self._asked_at = None

    async def end(self, episode: str) -> None:
        await self._ask("POST", END, _anything, msgspec.json.encode(End(episode)), _JSON, TIMEOUTS.REQUEST)

    async def _ask(
        self,
        method: str,
        path: str,
        read: Callable[[bytes], T],
        body: bytes,
        headers: dict[str, str],
        seconds: float | None,
    ) -> T:
        if self._session is None:
            self._session = aiohttp.ClientSession(headers={"Authorization": f"Bearer {self._token}"})
        limits = aiohttp.ClientTimeout(total=seconds, sock_connect=TIMEOUTS.REQUEST)
        try:
            async with self._session.request(
                method,
                self.url + path,
                data=body or None,
                headers=headers,
                timeout=limits,
                allow_redirects=False,  # the token goes to this server and to no other
            ) as answer:
                text = await self._read(answer)
                if answer.status != 200:
                    raise WireError(_refusal(self.url, path, answer.status, text))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            why = str(error) or f"no answer within {seconds:g} s" if seconds else str(error) or "it hung up"
            raise WireError(f"{self.url} cannot be reached: {type(error).__name__}: {why}") from error
        try:
            return read(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            shown = text[:SHOWN].decode(errors="replace")
            raise WireError(f"{self.url} gave an answer that is none: {error}; it said: {shown!r}") from error

    async def _read(self, answer: aiohttp.ClientResponse) -> bytes:
        text = bytearray()
        async for part in answer.content.iter_any():
            text += part
            if len(text) > LARGEST_ANSWER:
                answer.close()
                raise WireError(f"{self.url} gave an answer of more than {LARGEST_ANSWER} bytes")
        return bytes(text)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


_JSON = {"Content-Type": "application/json"}


def _anything(text: bytes) -> Any:
    return None


def _refusal(url: str, path: str, status: int, text: bytes) -> str:
    if status == 500:
        try:
            return f"the agent raised {msgspec.json.decode(text, type=AgentFailure).error[:SHOWN]}"
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
