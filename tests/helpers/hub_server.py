"""A model hub on loopback with a single model, tiny/llama."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"
KNOWN = ("main", COMMIT)


class Handler(BaseHTTPRequestHandler):
    folder: Path

    def do_GET(self) -> None:
        status, headers, content = self._answer(self.path.partition("?")[0].split("/")[1:])
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(content))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    do_HEAD = do_GET  # noqa: N815

    def _answer(self, path: list[str]) -> tuple[int, dict[str, str], bytes]:
        match path:
            case ["api", "models", "tiny", "llama"] | ["api", "models", "tiny", "llama", "revision", "main"]:
                return 200, {}, json.dumps({"id": "tiny/llama", "sha": COMMIT, "siblings": []}).encode()
            case ["api", "models", "tiny", "llama", "revision", _]:
                return 404, {"X-Error-Code": "RevisionNotFound"}, b""
            case ["tiny", "llama", "resolve", revision, name] if revision in KNOWN and (self.folder / name).is_file():
                content = (self.folder / name).read_bytes()
                return 200, {"X-Repo-Commit": COMMIT, "ETag": f'"{name}-{len(content)}"'}, content
            case ["tiny", "llama", *_] | ["api", "models", "tiny", "llama", "tree", *_]:
                return 404, {"X-Repo-Commit": COMMIT, "X-Error-Code": "EntryNotFound"}, b""
        return 404, {"X-Error-Code": "RepoNotFound"}, b""

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a hub whose model has the files of this folder; yields its URL."""
    handler = type("OfFolder", (Handler,), {"folder": folder})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def use_hub(url: str, cache: Path, patch: pytest.MonkeyPatch) -> None:
    """Patch the settings of HF_ENDPOINT and HF_HOME, which the library reads only on import."""
    patch.setattr("huggingface_hub.constants.ENDPOINT", url)
    patch.setattr(
        "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}"
    )
    patch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    patch.setattr("transformers.utils.hub._hf_api", None)
