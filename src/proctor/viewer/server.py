"""The server of the page: reads a store for whoever knows its token, and writes nothing but reviews, if at all."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import PurePosixPath
from typing import Any, BinaryIO, TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from proctor.core.errors import ProctorError, UsageError
from proctor.store import open_store
from proctor.store.store import Store
from proctor.store.types import RecordFilter, Review
from proctor.viewer.access import AccessControl, add_headers
from proctor.viewer.assets import page_files
from proctor.viewer.queries import StoreQueries

T = TypeVar("T")

CHUNK = 256 * 1024
MIN_COMPRESSED_BYTES = 1_000  # bytes that are not worth compressing
METADATA = "metadata."
MAX_RUNS = 50  # side by side
MAX_DIGITS = 18  # of a number that a database takes
MAX_REVIEW_BYTES = 64 * 1024  # bytes
# What a browser may show by itself; all else is text or a download.
MEDIA_TYPES = {
    ".mp4": "video/mp4",
    ".webm": "video/webm",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".gif": "image/gif",
}
TEXT_SUFFIXES = (".txt", ".log", ".json", ".jsonl", ".csv", ".md")

_encode = msgspec.json.Encoder().encode


class QueryError(UsageError):
    """The question cannot be understood."""


class StoreThread:
    """A thread with a store of its own, in which one question after the other is answered."""

    def __init__(self, url: str | None, author: str) -> None:
        self._url, self._author = url, author
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="proctor-view")
        self._open = ExitStack()

    async def open(self) -> None:
        await self._do(self._open_store)

    def _open_store(self) -> None:
        self.store: Store = open_store(self._url, mode="write" if self._author else "read")
        self._open.callback(self.store.close)
        self.answers = StoreQueries(self.store, self._author)

    async def ask(self, question: Callable[[StoreQueries], T]) -> T:
        return await self._do(lambda: question(self.answers))

    async def file(self, run: str, name: str) -> tuple[int, BinaryIO]:
        return await self._do(lambda: self.store.open_artifact(self.store.run(run), name))

    async def _do(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        await self._do(self._open.close)
        self._thread.shutdown()


class ViewerServer:
    """Knows its address once it is open."""

    def __init__(self, store: str | None, host: str = "127.0.0.1", port: int = 0, author: str = "") -> None:
        self._host, self._wanted_port = host, port
        self.guard = AccessControl(host)
        self._quick = StoreThread(store, author)  # what must come at once is not behind …
        self._thorough = StoreThread(store, author)  # … what takes its time: statistics
        self._author = author
        self._runner: web.AppRunner | None = None

    async def open(self) -> None:
        try:
            await self._quick.open()
            await self._thorough.open()
        except BaseException:
            await self.close()
            raise
        self._runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._wanted_port).start()
        except OSError as error:
            await self.close()
            reason = error.strerror or error
            raise UsageError(f"Cannot listen on {self._host}:{self._wanted_port}: {reason}.") from None
        self.port = self._runner.addresses[0][1]

    @property
    def url(self) -> str:
        own = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)  # listening everywhere is no address
        host = f"[{own}]" if ":" in own else own
        return f"http://{host}:{self.port}/?token={self.guard.token}"

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        await self._quick.close()
        await self._thorough.close()

    def _application(self) -> web.Application:
        application = web.Application(
            middlewares=[self.guard.middleware(), errors_as_json], client_max_size=MAX_REVIEW_BYTES
        )
        application.on_response_prepare.append(add_headers)
        routes = application.router
        routes.add_get("/", self._page)
        for name in page_files():
            routes.add_get(f"/{name}", self._page)
        for name, question in QUERIES.items():
            routes.add_get(
                f"/api/{name}", self._answer(question, self._thorough if name in SLOW_QUERIES else self._quick)
            )
        routes.add_get("/files/{run}/{name:.+}", self._file)
        if self._author:
            routes.add_post("/api/reviews", self._review)
        return application

    async def _page(self, request: web.Request) -> web.StreamResponse:
        media_type, content = page_files()[request.path.lstrip("/") or "index.html"]
        response = _body(request, content, media_type)
        self.guard.welcome(request, response)
        return response

    def _answer(self, question: QueryHandler, desk: StoreThread) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            query = QueryParameters(request)
            body = await desk.ask(lambda answers: _encode(question(answers, query)))
            return _body(request, body, "application/json")

        return answer

    async def _review(self, request: web.Request) -> web.StreamResponse:
        review = read_review(await request.read(), self._author)
        stored = await self._quick.ask(lambda answers: answers.review(review))
        return web.Response(body=_encode(stored), content_type="application/json")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        size, file = await self._quick.file(request.match_info["run"], name)
        with file:
            return await _send(request, name, size, file)


class QueryParameters:
    """What a question names after its ?, or why it cannot be understood."""

    def __init__(self, request: web.Request) -> None:
        self._given = request.query

    def text(self, name: str) -> str:
        if name not in self._given:
            raise QueryError(f"The question lacks {name!r}.")
        return self._given[name]

    def number(self, name: str, default: int | None = None) -> int:
        told = str(default) if default is not None and name not in self._given else self.text(name)
        if not told.isascii() or not told.isdigit() or len(told) > MAX_DIGITS:
            raise QueryError(f"{name!r} is a number, not {told!r}.")
        return int(told)

    def flag(self, name: str) -> bool:
        return self._given.get(name) == "1"

    @property
    def runs(self) -> list[str]:
        return [run for run in self.text("runs").split(",") if run][:MAX_RUNS]

    @property
    def wanted(self) -> RecordFilter:
        metadata = {name.removeprefix(METADATA): v for name, v in self._given.items() if name.startswith(METADATA)}
        return RecordFilter(
            outcome=self._given.get("outcome", ""),
            text=self._given.get("text", ""),
            metadata=metadata,
            starred=self.flag("starred"),
            commented=self.flag("commented"),
        )


QueryHandler = Callable[[StoreQueries, QueryParameters], Any]
QUERIES: dict[str, QueryHandler] = {
    "changes": lambda answers, q: answers.changes(),
    "runs": lambda answers, q: answers.runs(),
    "run": lambda answers, q: answers.run(q.text("run")),
    "reviewed": lambda answers, q: answers.reviewed(q.text("run")),
    "lines": lambda answers, q: answers.lines(q.text("run"), q.wanted, q.number("start", 0), q.number("limit", 100)),
    "sample": lambda answers, q: answers.sample(q.text("run"), q.number("sample"), q.number("epoch", 0), q.wanted),
    "events": lambda answers, q: answers.events(q.text("run"), q.text("name")),
    "comparison": lambda answers, q: answers.comparison(q.runs, shared=q.flag("shared"), by_id=q.flag("by_id")),
    "plots": lambda answers, q: answers.plots(q.runs),
    "leaderboard": lambda answers, q: answers.leaderboard(q.text("task")),
}
SLOW_QUERIES = ("comparison", "plots", "reviewed")


def read_review(body: bytes, author: str) -> Review:
    """What the page sends; author and time are not the browser's to say."""
    try:
        told = msgspec.json.decode(body, type=dict[str, Any])
        return msgspec.convert(told | {"author": author, "created": 0.0}, Review)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise QueryError(f"This is no review: {error}.") from None


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """What went wrong, for the page to show."""
    try:
        return await handler(request)
    except QueryError as error:
        status, message = 400, str(error)
    except UsageError as error:
        status, message = 404, str(error)
    except ProctorError as error:
        status, message = 500, str(error)
    return web.Response(body=_encode({"error": message}), status=status, content_type="application/json")


def _body(request: web.Request, content: bytes, media_type: str) -> web.Response:
    """Compressed where that is worth it, and not sent again to a browser that has it."""
    tag = hashlib.sha256(content).hexdigest()[:24]
    if any(known.value == tag for known in request.if_none_match or ()):
        return web.Response(status=304, headers={"ETag": f'W/"{tag}"'})
    headers = {"ETag": f'W/"{tag}"', "Vary": "Accept-Encoding"}
    if len(content) > MIN_COMPRESSED_BYTES and "gzip" in request.headers.get("Accept-Encoding", ""):
        content = gzip.compress(content, 4, mtime=0)
        headers["Content-Encoding"] = "gzip"
    return web.Response(body=content, headers=headers, content_type=media_type, charset="utf-8")


async def _send(request: web.Request, name: str, size: int, file: BinaryIO) -> web.StreamResponse:
    """A file or the part of it that is asked for, as a film is when somebody jumps in it."""
    ending = PurePosixPath(name).suffix.lower()
    media_type = MEDIA_TYPES.get(ending) or ("text/plain" if ending in TEXT_SUFFIXES else "application/octet-stream")
    headers = {"Accept-Ranges": "bytes", "Content-Security-Policy": "default-src 'none'; sandbox"}
    if media_type == "application/octet-stream":
        headers["Content-Disposition"] = "attachment"
    start, stop = _byte_range(request, size)
    partial = size > 0 and "Range" in request.headers
    if partial:
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    response = web.StreamResponse(status=206 if partial else 200, headers=headers)
    response.content_type, response.content_length = media_type, stop - start
    await response.prepare(request)
    if request.method == "HEAD":
        return response
    file.seek(start)
    left = stop - start
    while left and (chunk := await asyncio.to_thread(file.read, min(CHUNK, left))):
        await response.write(chunk)
        left -= len(chunk)
    await response.write_eof()
    return response


def _byte_range(request: web.Request, size: int) -> tuple[int, int]:
    try:
        part = request.http_range
    except ValueError:
        raise web.HTTPRequestRangeNotSatisfiable(headers={"Content-Range": f"bytes */{size}"}) from None
    if part.start is not None and part.start >= size > 0:
        raise web.HTTPRequestRangeNotSatisfiable(headers={"Content-Range": f"bytes */{size}"})
    start, stop, _ = part.indices(size)
    return start, max(start, stop)
