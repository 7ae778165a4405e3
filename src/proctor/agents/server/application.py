"""The web application of every server: token, size limit, time limit, and uniform errors."""

from __future__ import annotations

import asyncio
import hmac
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proctor import __version__
from proctor.agents.server.side import Side
from proctor.agents.types import Refusal

SLOWEST_BODY = 10.0  # seconds


def application(side: Side, lifespan: Any) -> FastAPI:
    app = FastAPI(title=side.title, version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    side.add_routes(app)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_middleware(RequestGuard, token=side.token, largest_body=side.largest_body)
    return app


class RequestGuard:
    """Rejects requests without the token, too large ones and too slow ones."""

    def __init__(self, app: ASGIApp, token: str, largest_body: int) -> None:
        self._app, self._expected = app, f"Bearer {token}".encode()
        self._largest_body = largest_body

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
            body = await asyncio.wait_for(_read(receive, self._largest_body), SLOWEST_BODY)
        except TimeoutError:
            await refusal(408, f"the request took longer than {SLOWEST_BODY:g} s")(scope, receive, send)
            return
        if body is None:
            await refusal(413, f"a request has at most {self._largest_body} bytes")(scope, receive, send)
            return
        pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return pending.pop() if pending else await receive()

        await self._app(scope, again, send)


async def _read(receive: Receive, largest_body: int) -> bytes | None:
    """Returns the whole body; None if it is too large, or if the client is gone."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > largest_body:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def refusal(status: int, error: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(Refusal(error=error).model_dump(), status, headers)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return refusal(error.status_code, str(error.detail), dict(error.headers or {}))


async def _not_valid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    problems = [f"{'.'.join(map(str, problem['loc'][1:])) or 'body'}: {problem['msg']}" for problem in error.errors()]
    return refusal(422, "; ".join(problems).encode(errors="replace").decode())
