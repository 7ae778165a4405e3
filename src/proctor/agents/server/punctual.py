"""An HTTP protocol that closes connections without a timely request."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

SLOWEST_HEAD = 10.0  # seconds from the connection, or from the first byte of a later request, to the end of its head


class PunctualProtocol(H11Protocol):
    """Else a few hundred connections that say nothing would use up all that may be open at once.

    What follows the head is for the gate to wait for, and the time between two requests is for the server's keep-alive.
    """

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._patience is None:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._patience = self.loop.call_later(SLOWEST_HEAD, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
