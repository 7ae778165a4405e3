"""An HTTP connection to a server: sends the token, limits the size of answers."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp

JSON = {"Content-Type": "application/json"}


class UnreachableError(Exception):
    """No answer, or an invalid one."""


class Connection:
    """A connection to one server; opened by the first request."""

    def __init__(self, url: str, token: str, largest_answer: int) -> None:
        self.url = url
        self._headers, self._largest = {"Authorization": f"Bearer {token}"}, largest_answer
        self._session: aiohttp.ClientSession | None = None

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        answer_within: float | None,
        connect_within: float | None = None,
    ) -> tuple[int, bytes]:
        """Returns status and body of the answer. Without `answer_within` there is no timeout."""
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=self._headers)
        try:
            async with self._session.request(
                method,
                self.url + path,
                data=body or None,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=answer_within, sock_connect=connect_within),
                allow_redirects=False,  # the token is for this server only
            ) as answer:
                return answer.status, await self._read(answer, path)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            waited = "it hung up" if answer_within is None else f"no answer within {answer_within:g} s"
            raise UnreachableError(f"{self.url}{path}: {type(error).__name__}: {str(error) or waited}") from error

    async def _read(self, answer: aiohttp.ClientResponse, path: str) -> bytes:
        text = bytearray()
        async for part in answer.content.iter_any():
            text += part
            if len(text) > self._largest:
                answer.close()
                raise UnreachableError(f"{self.url}{path}: an answer of more than {self._largest} bytes")
        return bytes(text)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
