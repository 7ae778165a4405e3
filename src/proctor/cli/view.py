"""Show runs, samples and comparisons in a browser, live while runs execute.

The page is served only on this machine, and needs the token in its URL. It is read-only; with --review
it accepts stars, comments and scores. With --export it becomes a folder for any web server, or for a
file:// URL."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

from proctor.cli.options import add_store_flag
from proctor.core.errors import UsageError

if TYPE_CHECKING:
    from proctor.viewer.server import ViewerServer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", metavar="RUN", help="runs to export (default: all), or the run to open")
    add_store_flag(parser)
    parser.add_argument("--port", type=int, default=0, metavar="N", help="port (default: a free one)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--no-browser", action="store_true", help="print the URL and do not open it")
    parser.add_argument(
        "--review",
        nargs="?",
        const="",
        default=None,
        metavar="AUTHOR",
        help="accept stars, comments and scores under this name (default: the user's)",
    )
    parser.add_argument("--export", metavar="DIR", help="write the page and its data to this folder instead")


def call(args: argparse.Namespace) -> int:
    store = getattr(args, "store", None)
    if args.export is not None:
        from proctor.viewer.export import export_page

        path = export_page(store, args.export, args.runs)
        print(f"{path}: open it in a browser, or copy the folder to any web server.")
        return 0
    if not 0 <= args.port < 65_536:
        raise UsageError(f"--port: expected a number from 1 to 65535, got {args.port}.")
    if len(args.runs) > 1:
        raise UsageError("The page opens one run; select several on the page, or use --export.")
    from proctor.analysis.reviews import resolve_author
    from proctor.viewer.server import ViewerServer

    server = ViewerServer(store, args.host, args.port, "" if args.review is None else resolve_author(args.review))
    address = "".join(f"#/run/{_run_id(store, name)}" for name in args.runs)
    asyncio.run(_serve(server, address, browse=not args.no_browser))
    return 0


def _run_id(store: str | None, name: str) -> str:
    """The full id: `latest` changes, and a URL may be bookmarked."""
    from proctor.store import open_store

    opened = open_store(store, mode="read")
    try:
        return opened.run(name).id
    finally:
        opened.close()


async def _serve(server: ViewerServer, address: str, *, browse: bool) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    await server.open()
    try:
        url = server.url + address
        print(url, flush=True)
        print("Ctrl-C stops the server.", file=sys.stderr)
        if browse and _has_display():
            import webbrowser

            await asyncio.to_thread(webbrowser.open, url)
        await stopped.wait()
    finally:
        await server.close()


def _has_display() -> bool:
    """Without a display a text browser would occupy the terminal."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
