"""A server of one side, in the foreground or in the background."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import threading
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from proctor.agents.runtime.hosting.isolation import Isolation
from proctor.agents.runtime.hosting.recipe import Recipe
from proctor.agents.runtime.limits import EpisodeLimits
from proctor.agents.server.access import is_loopback, own_token
from proctor.agents.server.agent_side import AgentSide
from proctor.agents.server.application import application
from proctor.agents.server.evaluator_side import EvaluatorSide
from proctor.agents.server.punctual import PunctualProtocol
from proctor.agents.server.remote_agent_side import RemoteAgentSide
from proctor.agents.server.side import Side, StartupError
from proctor.core.errors import UsageError

logger = logging.getLogger("proctor.agents")

SIDES: dict[str, type[EvaluatorSide] | type[RemoteAgentSide]] = {"evaluator": EvaluatorSide, "player": RemoteAgentSide}


class SideServer:
    """Serves one side, in the foreground or in a thread."""

    def __init__(self, side: Side, host: str, port: int) -> None:
        self._side, self._host, self._port = side, host, port
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.failure = ""  # why it could not be started
        self._thread: threading.Thread | None = None
        self.url = ""

    def run(self) -> None:
        """Serves until Ctrl-C or SIGTERM."""
        with self._bound() as listening:
            server = self._server()
            self._announce()
            server.run(sockets=[listening])
        if self.failure:
            raise UsageError(self.failure)

    def run_background(self) -> str | None:
        """Returns the address once the server answers; None if it cannot start."""
        try:
            listening = self._bound()
        except UsageError as error:
            self.failure = str(error)
            logger.error("%s", error)
            return None
        self._background = self._server()
        self._thread = threading.Thread(target=self._serve, args=(listening,), daemon=True, name=self._side.title)
        self._thread.start()
        self._ready.wait()
        if self.failure:
            logger.error("%s", self.failure)
            self._thread.join()
            return None
        return self.url

    def close(self) -> None:
        if self._thread is not None:
            self._background.should_exit = True
            self._thread.join()
            self._thread = None

    def stop_task(self) -> None:
        """Stops the current task; may be called from any thread."""
        if self._loop is not None and self._loop.is_running():
            self._loop.call_soon_threadsafe(self._side.stop_task)

    def _serve(self, listening: socket.socket) -> None:
        try:
            with listening:
                self._background.run(sockets=[listening])
        except SystemExit:  # of uvicorn, when the start failed
            pass
        finally:
            self._ready.set()

    def _bound(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            listening = socket.create_server((self._host, self._port), family=family, backlog=128)
        except (OSError, OverflowError) as error:
            raise UsageError(f"{self._side.title} cannot listen on {self._host}:{self._port}: {error}.") from None
        port = listening.getsockname()[1]
        # A server that listens on every address is announced under a real one.
        shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(self._host, self._host)
        self.url = f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
        return listening

    def _announce(self) -> None:
        reach = "this machine only" if is_loopback(self._host) else "anyone with the token"
        print(f"{self._side.title} at {self.url} ({reach}); Ctrl-C ends it", file=sys.stderr)

    def _server(self) -> uvicorn.Server:
        config = uvicorn.Config(
            application(self._side, self._lifespan),
            log_level="warning",
            lifespan="on",
            access_log=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=1,
            limit_concurrency=256,
            ws="none",
            http=PunctualProtocol,
        )
        return uvicorn.Server(config)

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        try:
            try:
                await self._side.open()
            except StartupError as error:
                self.failure = str(error)
                self._ready.set()
                raise
            self._ready.set()
            yield
        finally:
            await self._side.close()


def new_server(
    role: str,
    recipe: Recipe,
    host: str,
    port: int,
    token: str | None = None,
    allow_hosts: Collection[str] = (),
    limits: EpisodeLimits | None = None,
    environment: Mapping[str, str] | None = None,
    isolation: Isolation | None = None,
) -> SideServer:
    """A server for the agent, the evaluator or the player that the recipe makes, in a process with this environment.

    An agent may be isolated: then it has of the environment only what lets it reach its display.
    """
    known = own_token(host, token)
    if role == "agent":
        side: Side = AgentSide(recipe, known, allow_hosts, limits, isolation)
    else:
        side = SIDES[role](recipe, known, allow_hosts, limits)
    side.environment |= environment or {}
    return SideServer(side, host, port)
