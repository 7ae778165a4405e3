"""The server of a remote agent: receives frames, returns actions."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Collection, Coroutine
from pathlib import Path
from typing import Any

import msgspec
from fastapi import FastAPI, HTTPException, Request, Response

from proctor.agents.constants import TIMEOUTS
from proctor.agents.remote import messages
from proctor.agents.remote.messages import (
    Begin,
    End,
)
from proctor.agents.runtime.hosting.process import HostDiedError, HostedFaultError, HostProcess
from proctor.agents.runtime.hosting.recipe import Recipe
from proctor.agents.runtime.limits import EpisodeLimits
from proctor.agents.server.side import REFUSALS, Side, StartupError

logger = logging.getLogger("proctor.agents")

ROLE = "proctor.agents.remote.hosted:HostedRemoteAgent"


class RemoteAgentSide(Side):
    title = "proctor player"
    largest_body = messages.LARGEST_FRAME

    def __init__(
        self, recipe: Recipe, token: str, allowed_hosts: Collection[str], limits: EpisodeLimits | None = None
    ) -> None:
        super().__init__(token, allowed_hosts)
        self._recipe, self._limits = recipe, limits
        self._process: HostProcess | None = None
        self._episode: Begin | None = None
        self._stepping: asyncio.Task[Any] | None = None
        self._changing = asyncio.Lock()
        self._work: set[asyncio.Task[Any]] = set()  # completed before the server ends

    def add_routes(self, app: FastAPI) -> None:
        app.get(messages.STATUS, response_class=Response)(self.status)
        app.post(messages.BEGIN, responses=REFUSALS, response_class=Response)(self.begin)
        app.post(messages.STEP, responses=REFUSALS, response_class=Response)(self.step)
        app.post(messages.END, responses=REFUSALS, response_class=Response)(self.end)

    async def open(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="proctor-player-")
        try:
            await self._prepare()
        except (HostedFaultError, HostDiedError) as error:
            self._folder.cleanup()
            raise StartupError(f"{self._recipe.name} could not be created: {error}") from error

    async def close(self) -> None:
        work = list(self._work)
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        await self._give_up()
        if self._process is not None:
            await self._process.end()
        self._folder.cleanup()

    async def status(self) -> Response:
        state = messages.Status(messages.VERSION, "READY" if self._episode is None else "PLAYING", self._recipe.text)
        return _answered(msgspec.json.encode(state))

    async def begin(self, request: Request) -> Response:
        """Ends a former episode, whose referee may have been killed, and begins another."""
        begin = _read(await request.body(), Begin)
        if begin.protocol != messages.VERSION:
            raise HTTPException(400, f"this agent speaks version {messages.VERSION} of the protocol")
        return await self._see_through(self._begin(begin))

    async def _begin(self, begin: Begin) -> Response:
        async with self._changing:
            self._episode = begin
            await self._give_up()
            try:
                process = await self._prepare()
                async with asyncio.timeout(TIMEOUTS.STARTING):
                    if begin.kind == "window":
                        await process.call("begin_window", begin.task or {})
                    else:
                        await process.call("begin_env", begin.seed or 0, begin.world or {})
            except TimeoutError:
                await self._end_process()
                return _failed(f"it did not begin within {TIMEOUTS.STARTING:g} s")
            except (HostedFaultError, HostDiedError) as error:
                return _failed(_said(error))
        return _answered(b"{}")

    async def step(self, request: Request) -> Response:
        begin, process = self._episode, self._process
        if begin is None or process is None or request.headers.get(messages.EPISODE) != begin.episode:
            raise HTTPException(400, "this episode is not under way")
        if self._stepping is not None and not self._stepping.done():
            raise HTTPException(400, "it is still busy with another frame")
        body, kind = await request.body(), request.headers.get("content-type", "")
        if begin.kind == "window":
            asked = process.call("act_in_window", body, kind, request.headers.get(messages.SIZE, ""))
        elif kind == messages.OBSERVATION:
            asked = process.call("act_in_env", body)
        else:
            raise HTTPException(400, f"expected {messages.OBSERVATION}, got {kind}")
        stepping = self._stepping = asyncio.create_task(asked)
        try:
            return _answered(await asyncio.shield(stepping))
        except asyncio.CancelledError:
            if not stepping.cancelled():
                raise
            return _failed("the step was given up")
        except (HostedFaultError, HostDiedError) as error:
            return _failed(_said(error))

    async def end(self, request: Request) -> Response:
        end = _read(await request.body(), End)
        return await self._see_through(self._end(end))

    async def _end(self, end: End) -> Response:
        async with self._changing:
            if self._episode is not None and self._episode.episode == end.episode:
                self._episode = None
                await self._give_up()
                await self._make_ready()
        return _answered(b"{}")

    def stop_task(self) -> None:
        self._episode = None

    async def _see_through(self, work: Coroutine[Any, Any, Response]) -> Response:
        """Completes the work even if the client is gone: a process is killed and restarted together."""
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        return await asyncio.shield(task)

    async def _make_ready(self) -> None:
        try:
            await self._prepare()
        except (HostedFaultError, HostDiedError) as error:
            logger.error("%s could not be restarted: %s", self._recipe.name, error)

    async def _give_up(self) -> None:
        """Kills the process if a step is running; a new one serves the next episode."""
        stepping, self._stepping = self._stepping, None
        if stepping is not None and not stepping.done():
            stepping.cancel()
            await asyncio.gather(stepping, return_exceptions=True)
            await self._end_process()

    async def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.end()

    async def _prepare(self) -> HostProcess:
        if self._process is None or not self._process.is_alive:
            await self._end_process()
            log = Path(self._folder.name) / "output.log"
            self._process = await HostProcess.start(ROLE, self._recipe, log, self.environment, self._limits)
        return self._process


def _read(body: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HTTPException(422, str(error)) from None


def _answered(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _failed(error: str) -> Response:
    return Response(msgspec.json.encode(messages.AgentFailure(error)), 500, media_type="application/json")


def _said(error: HostedFaultError | HostDiedError) -> str:
    if isinstance(error, HostedFaultError) and error.fault.type == "AgentFailedError":
        return error.fault.message
    return str(error)
