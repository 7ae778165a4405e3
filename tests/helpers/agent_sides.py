"""Servers of agents and evaluators, and what tests ask them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, Self

from proctor.agents import EvaluationResult, Task, run_evaluation_client
from proctor.agents.runtime.hosting.isolation import Isolation
from proctor.agents.runtime.hosting.recipe import recipe_of
from proctor.agents.server.server import new_server

TOKEN = "a-token-for-the-tests-alone"
LOCAL = "127.0.0.1"


class Side:
    """A server started by `proctor serve`, in a process of its own."""

    def __init__(self, side: str, name: str, port: int = 0, **env: str) -> None:
        command = [sys.executable, "-m", "proctor", "serve", side, name, "--port", str(port)]
        self._folder = tempfile.TemporaryDirectory()  # what a killed one leaves behind is in it
        ours = {"PROCTOR_TOKEN": TOKEN, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": self._folder.name}
        environment = os.environ | ours | env
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert self.process.stderr is not None
        said = self.process.stderr.readline()
        self.url = said.split(" at ")[1].split()[0]
        self.port = int(self.url.rpartition(":")[2])
        ask("GET", f"{self.url}/openapi.json")  # answered when all that belongs to it has been started

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        assert self.process.stderr is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.process.stderr.close()
        self._folder.cleanup()


class LocalSide:
    """The same in a thread of this process, where the server's own process is not the subject."""

    def __init__(self, side: str, cls: type, port: int = 0, isolation: Isolation | None = None) -> None:
        self._server = new_server(side, recipe_of(cls), LOCAL, port, TOKEN, isolation=isolation)
        url = self._server.run_background()
        assert url is not None, self._server.failure
        self.url = url
        self.port = int(url.rpartition(":")[2])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.close()


StartLocalSide = Callable[..., LocalSide]


def ask(method: str, url: str, body: Any = None, token: str = TOKEN) -> tuple[int, Any]:
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"null")


def until(url: str, state: str) -> None:
    """Waits for what must come."""
    while ask("GET", f"{url}/status")[1]["state"] != state:
        time.sleep(0.05)


def task(seconds: float = 60, **fields: Any) -> Task:
    return Task(env_name="none", timeout=seconds, check_env_interval_seconds=0.05, **fields)


def evaluate(agent: Side | LocalSide, evaluator: Side | LocalSide, seconds: float = 60) -> EvaluationResult:
    return run_evaluation_client(agent.url, evaluator.url, task(seconds), token=TOKEN)
