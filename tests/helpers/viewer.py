"""`proctor view` as a process, and an HTTP client for it."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

DEADLINE = 120  # seconds; much more than needed


class ViewerReply(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class ViewerProcess:
    """`proctor view` as a process."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "proctor", "view", "--no-browser", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._output, self._errors = self.process.stdout, self.process.stderr
        self.url = self._output.readline().strip()
        assert self.url, self._errors.read()
        parts = urlsplit(self.url)
        self.host, self.port = parts.hostname or "", parts.port
        self.token = parse_qs(parts.query)["token"][0]

    def request(
        self,
        path: str,
        *,
        token: bool = True,
        method: str = "GET",
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
        **more: str,
    ) -> ViewerReply:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=DEADLINE)
        given = {name.replace("_", "-"): value for name, value in {**(headers or {}), **more}.items()}
        if token:
            given.setdefault("Cookie", f"proctor-{self.port}={self.token}")
        connection.request(method, path, body, given)
        reply = connection.getresponse()
        answer = ViewerReply(reply.status, reply.headers, reply.read())
        connection.close()
        return answer

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(DEADLINE)
        self._output.close()
        self._errors.close()
        return code
