"""A process that has its own model hub, on loopback, and asks for its models: the library reads its settings only once.

    python hub_driver.py FOLDER HOME

The hub has one model, tiny/llama, whose files are those of FOLDER. What became of each attempt is printed as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

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


def attempt(model: str, **options: Any) -> dict[str, Any]:
    import proctor
    from proctor.errors import ProctorError

    try:
        report = proctor.evaluate(
            "shapes/existence", model, limit=2, max_tokens=2, settings={"shapes": 2}, api="completions", **options
        )
    except ProctorError as error:
        return {"error": str(error)}
    return {"n": report.run.n, "errors": report.run.errors, "identity": report.run.provenance["candidate"]}


if __name__ == "__main__":
    Handler.folder = Path(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    os.environ |= {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_HOME": sys.argv[2]}
    became = {
        "there": attempt("tiny/llama"),
        "unknown": attempt("hf/tiny/other"),
        "no revision": attempt("hf/tiny/llama", revision="x"),
    }
    server.shutdown()
    server.server_close()
    thread.join()
    became |= {"away": attempt("hf/tiny/llama"), "away and unknown": attempt("hf/tiny/other")}
    print(json.dumps(became))
