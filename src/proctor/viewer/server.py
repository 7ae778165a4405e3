"""The server of the page: reads a store, and writes reviews if it has an author."""

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
MIN_COMPRESSED_BYTES = 1_000
METADATA = "metadata."
MAX_RUNS = 50  # in a comparison
MAX_DIGITS = 18  # fits a 64-bit integer
MAX_REVIEW_BYTES = 64 * 1024
# Files that a browser shows; all others are text or downloads.
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
    """The query is malformed."""


class StoreThread:
    """A thread with its own store connection, which answers queries one by one."""

    def __init__(self, url: str | None, author: str) -> None:
        self._url, self._author = url, author
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="proctor-view")
        self._open = ExitStack()

    async def open(self) -> None:
        await self._run(self._open_store)

    def _open_store(self) -> None:
        self.store: Store = open_store(self._url, mode="write" if self._author else "read")
        self._open.callback(self.store.close)
        self.queries = StoreQueries(self.store, self._author)

    async def ask(self, query: Callable[[StoreQueries], T]) -> T:
        return await self._run(lambda: query(self.queries))

    async def file(self, run: str, name: str) -> tuple[int, BinaryIO]:
        return await self._run(lambda: self.store.open_artifact(self.store.run(run), name))

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        await self._run(self._open.close)
        self._thread.shutdown()


class ViewerServer:
    """The server; `url` is valid once it is open."""

    def __init__(self, store: str | None, host: str = "127.0.0.1", port: int = 0, author: str = "") -> None:
        self._host, self._requested_port = host, port
        self.access = AccessControl(host)
        self._fast = StoreThread(store, author)
        self._slow = StoreThread(store, author)  # statistics, which must not delay other queries
        self._author = author
        self._runner: web.AppRunner | None = None

    async def open(self) -> None:
        try:
            await self._fast.open()
            await self._slow.open()
        except BaseException:
            await self.close()
            raise
        self._runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._requested_port).start()
        except OSError as error:
            await self.close()
            reason = error.strerror or error
            raise UsageError(f"Cannot listen on {self._host}:{self._requested_port}: {reason}.") from None
        self.port = self._runner.addresses[0][1]

    @property
    def url(self) -> str:
        local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._host, self._host)
        host = f"[{local}]" if ":" in local else local
        return f"http://{host}:{self.port}/?token={self.access.token}"

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        await self._fast.close()
        await self._slow.close()

    def _application(self) -> web.Application:
        application = web.Application(
            middlewares=[self.access.middleware(), errors_as_json], client_max_size=MAX_REVIEW_BYTES
        )
        application.on_response_prepare.append(add_headers)
        routes = application.router
        routes.add_get("/", self._page)
        for name in page_files():
            routes.add_get(f"/{name}", self._page)
        for name, query in QUERIES.items():
            routes.add_get(f"/api/{name}", self._answer(query, self._slow if name in SLOW_QUERIES else self._fast))
        routes.add_get("/files/{run}/{name:.+}", self._file)
        if self._author:
            routes.add_post("/api/reviews", self._review)
        return application

    async def _page(self, request: web.Request) -> web.StreamResponse:
        media_type, content = page_files()[request.path.lstrip("/") or "index.html"]
        response = _body(request, content, media_type)
        self.access.set_cookie(request, response)
        return response

    def _answer(self, query: QueryHandler, thread: StoreThread) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            parameters = QueryParameters(request)
            body = await thread.ask(lambda queries: _encode(query(queries, parameters)))
            return _body(request, body, "application/json")

        return answer

    async def _review(self, request: web.Request) -> web.StreamResponse:
        review = read_review(await request.read(), self._author)
        stored = await self._fast.ask(lambda queries: queries.review(review))
        return web.Response(body=_encode(stored), content_type="application/json")

    async def _file(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        size, file = await self._fast.file(request.match_info["run"], name)
        with file:
            return await _send(request, name, size, file)


class QueryParameters:
    """The parameters of a query; raises QueryError if one is missing or malformed."""

    def __init__(self, request: web.Request) -> None:
        self._given = request.query

    def text(self, name: str) -> str:
        if name not in self._given:
            raise QueryError(f"The parameter {name!r} is missing.")
        return self._given[name]

    def number(self, name: str, default: int | None = None) -> int:
        text = str(default) if default is not None and name not in self._given else self.text(name)
        if not text.isascii() or not text.isdigit() or len(text) > MAX_DIGITS:
            raise QueryError(f"The parameter {name!r} must be a number, not {text!r}.")
        return int(text)

    def flag(self, name: str) -> bool:
        return self._given.get(name) == "1"

    @property
    def runs(self) -> list[str]:
        return [run for run in self.text("runs").split(",") if run][:MAX_RUNS]

    @property
    def filter(self) -> RecordFilter:
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
    "changes": lambda queries, q: queries.changes(),
    "runs": lambda queries, q: queries.runs(),
    "run": lambda queries, q: queries.run(q.text("run")),
    "reviewed": lambda queries, q: queries.reviewed(q.text("run")),
    "lines": lambda queries, q: queries.lines(q.text("run"), q.filter, q.number("start", 0), q.number("limit", 100)),
    "sample": lambda queries, q: queries.sample(q.text("run"), q.number("sample"), q.number("epoch", 0), q.filter),
    "events": lambda queries, q: queries.events(q.text("run"), q.text("name")),
    "comparison": lambda queries, q: queries.comparison(q.runs, shared=q.flag("shared"), by_id=q.flag("by_id")),
    "plots": lambda queries, q: queries.plots(q.runs),
    "leaderboard": lambda queries, q: queries.leaderboard(q.text("task")),
}
SLOW_QUERIES = ("comparison", "plots", "reviewed")


def read_review(body: bytes, author: str) -> Review:
    """Reads the review that the page sent; the server sets author and time."""
    try:
        fields = msgspec.json.decode(body, type=dict[str, Any])
        return msgspec.convert(fields | {"author": author, "created": 0.0}, Review)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise QueryError(f"This is not a review: {error}.") from None


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns errors into JSON, which the page shows."""
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
    """Compresses large contents, and answers 304 if the browser has the content."""
    tag = hashlib.sha256(content).hexdigest()[:24]
    if any(known.value == tag for known in request.if_none_match or ()):
        return web.Response(status=304, headers={"ETag": f'W/"{tag}"'})
    headers = {"ETag": f'W/"{tag}"', "Vary": "Accept-Encoding"}
    if len(content) > MIN_COMPRESSED_BYTES and "gzip" in request.headers.get("Accept-Encoding", ""):
        content = gzip.compress(content, 4, mtime=0)
        headers["Content-Encoding"] = "gzip"
    return web.Response(body=content, headers=headers, content_type=media_type, charset="utf-8")


async def _send(request: web.Request, name: str, size: int, file: BinaryIO) -> web.StreamResponse:
    """Sends a file or the requested range of it, as a video player needs to seek."""
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
