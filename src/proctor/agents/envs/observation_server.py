"""The HTTP server between a timed environment and its agent: serves the newest observation, takes actions."""

from __future__ import annotations

import asyncio
import hmac
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
from aiohttp import web

from proctor.agents.constants import NETWORK, TIMEOUTS
from proctor.agents.envs.pending_actions import POLL, ActionQueue, Frame, PendingAction
from proctor.agents.envs.spaces import IllegalActionError

LARGEST_ACTION = 1024 * 1024  # bytes
SWITCH = 0.0005  # seconds for which the server may delay a tick
CONTENT = "application/msgpack"


_decode_move = msgspec.msgpack.Decoder(PendingAction).decode


class ObservationServer(ActionQueue):
    """Serves in a thread that ends with the process."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._token = ""
        sys.setswitchinterval(SWITCH)
        self._thread = threading.Thread(target=self._serve, daemon=True, name="observation-server")
        self._thread.start()
        self._ready.wait()

    def open(self, token: str, take: Callable[[Any], Any]) -> None:
        """For an episode, whose agent knows the token."""
        asyncio.run_coroutine_threadsafe(self._begin(token, take), self._loop).result()

    async def _begin(self, token: str, take: Callable[[Any], Any]) -> None:
        super().open(token, take)
        self._token, self._news = token, asyncio.Event()

    def show(self, frame: Frame) -> None:
        body = msgspec.msgpack.encode(frame)
        self._loop.call_soon_threadsafe(self._announce, frame.tick, body)

    def close(self) -> None:
        super().close()
        self._loop.call_soon_threadsafe(self._wake)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._start())
        self._ready.set()
        self._loop.run_forever()

    async def _start(self) -> None:
        self._news = asyncio.Event()
        app = web.Application(client_max_size=LARGEST_ACTION, middlewares=[self._guard])
        app.router.add_get("/observation", self._observation)
        app.router.add_post("/action", self._action)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await self._runner.setup()
        site = web.TCPSite(self._runner, NETWORK.DEFAULT_HOST, 0)
        await site.start()
        self.port: int = self._runner.addresses[0][1]

    def _announce(self, tick: int, body: bytes) -> None:
        self._tick, self._frame = tick, body
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").encode(errors="surrogateescape")  # the bytes that were sent
        if not self._token or not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
            raise web.HTTPUnauthorized
        response: web.StreamResponse = await handler(request)
        return response

    async def _observation(self, request: web.Request) -> web.Response:
        try:
            after = int(request.query.get("after", "-1"))
        except ValueError:
            raise web.HTTPBadRequest(text="after is the number of a tick") from None
        self.looked.set()
        return await self._next(after)

    async def _next(self, after: int) -> web.Response:
        """The newest observation, once there is one after this tick."""
        if self._tick <= after and self._open:
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL):
                    await self._news.wait()
        if self._tick <= after:
            return web.Response(status=204 if self._open else 410)
        return web.Response(body=self._frame, content_type=CONTENT)

    async def _action(self, request: web.Request) -> web.Response:
        """Takes an action and answers with the next observation, which saves a request."""
        arrived = time.monotonic_ns()
        try:
            async with asyncio.timeout(TIMEOUTS.REQUEST):
                move = _decode_move(await request.read())
        except TimeoutError:
            raise web.HTTPRequestTimeout from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise web.HTTPBadRequest(text=f"not an action: {error}") from None
        try:
            if not self._bring(move, arrived):
                raise web.HTTPGone
        except IllegalActionError as error:
            raise web.HTTPBadRequest(text=str(error)) from None
        return await self._next(move.tick)
