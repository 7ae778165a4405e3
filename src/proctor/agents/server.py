"""A server of one side: a FastAPI application with a token, a size limit, and errors in one form."""

from __future__ import annotations

import asyncio
import hmac
import logging
import socket
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proctor import __version__
from proctor.agents.access import is_loopback, own_token
from proctor.agents.protocol import Refused
from proctor.errors import UsageError

logger = logging.getLogger("proctor.agents")

LARGEST_BODY = 1024 * 1024
SLOWEST_BODY = 5.0  # seconds
REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Refused, "description": "Not now, or not like this"},
    401: {"model": Refused, "description": "Without the token"},
    413: {"model": Refused, "description": "Too large"},
    422: {"model": Refused, "description": "Not what the schema says"},
}


class StartupError(Exception):
    """The side could not be made ready."""


class Side(ABC):
    """What a server serves: an agent, or an evaluator."""

    title: str

    def __init__(self, token: str, allowed_hosts: Collection[str]) -> None:
        self.token, self.allowed_hosts = token, frozenset(allowed_hosts)

    @abstractmethod
    def add_routes(self, app: FastAPI) -> None: ...

    @abstractmethod
    async def open(self) -> None:
        """Raises StartupError if it cannot do its part."""

    @abstractmethod
    async def close(self) -> None: ...

    @abstractmethod
    def stop_task(self) -> None:
        """Ends the task that is under way, if one is."""


class Server:
    """Serves one side, in the foreground or in a thread."""

    def __init__(self, side: Side, host: str, port: int) -> None:
        self._side, self._host, self._port = side, host, port
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.failure = ""  # why it could not be started
        self._thread: threading.Thread | None = None
        self.url = ""

    def run(self) -> None:
        """Until Ctrl-C or SIGTERM."""
        with self._bound() as listening:
            server = self._server()
            self._announce()
            server.run(sockets=[listening])
        if self.failure:
            raise UsageError(self.failure)

    def run_background(self) -> str | None:
        """The address, once it answers; None if it cannot."""
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
        """From any thread."""
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
        # Whoever listens on every address is told of under one that exists.
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


def application(side: Side, lifespan: Any) -> FastAPI:
    app = FastAPI(title=side.title, version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    side.add_routes(app)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_middleware(Gate, token=side.token)
    return app


class Gate:
    """Lets nothing in without the token, nothing that is too large, and nobody who dawdles."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if scope["path"] != "/openapi.json" and not hmac.compare_digest(
            headers.get(b"authorization", b""), self._expected
        ):
            answer = {"WWW-Authenticate": "Bearer"}
            await refusal(401, "the bearer token is missing or wrong", answer)(scope, receive, send)
            return
        try:
            body = await asyncio.wait_for(_read(receive), SLOWEST_BODY)
        except TimeoutError:
            await refusal(408, f"the request took longer than {SLOWEST_BODY:g} s")(scope, receive, send)
            return
        if body is None:
            await refusal(413, f"a request has at most {LARGEST_BODY} bytes")(scope, receive, send)
            return
        pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return pending.pop() if pending else await receive()

        await self._app(scope, again, send)


async def _read(receive: Receive) -> bytes | None:
    """The whole body; None if it is too large, or if nobody is there any more."""
    body: bytes = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > LARGEST_BODY:
            return None
        if not message.get("more_body", False):
            return body


def refusal(status: int, error: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(Refused(error=error).model_dump(), status, headers)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return refusal(error.status_code, str(error.detail), dict(error.headers or {}))


async def _not_valid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    problems = [f"{'.'.join(map(str, problem['loc'][1:])) or 'body'}: {problem['msg']}" for problem in error.errors()]
    return refusal(422, "; ".join(problems).encode(errors="replace").decode())


def new_server(
    role: str,
    recipe: Any,
    host: str,
    port: int,
    token: str | None = None,
    allow_hosts: Collection[str] = (),
) -> Server:
    """A server for the agent or the evaluator that the recipe makes."""
    from proctor.agents.agent_side import AgentSide
    from proctor.agents.evaluator_side import EvaluatorSide

    sides: dict[str, type[AgentSide] | type[EvaluatorSide]] = {"agent": AgentSide, "evaluator": EvaluatorSide}
    return Server(sides[role](recipe, own_token(host, token), allow_hosts), host, port)
