"""Servers of agents and evaluators as real processes, and what tests ask them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import Any

from proctor.agents import EvaluationResult, Task, run_evaluation_client

TOKEN = "a-token-for-the-tests-alone"
LOCAL = "127.0.0.1"


class Side:
    """A server started by `proctor serve`, in a process of its own."""

    def __init__(self, side: str, name: str, port: int = 0, **env: str) -> None:
        command = [sys.executable, "-m", "proctor", "serve", side, name, "--port", str(port)]
        environment = os.environ | {"PROCTOR_TOKEN": TOKEN, "PYTHONPATH": os.pathsep.join(sys.path)} | env
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert self.process.stderr is not None
        said = self.process.stderr.readline()
        self.url = said.split(" at ")[1].split()[0]
        self.port = int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        assert self.process.stderr is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.process.stderr.close()


def ask(method: str, url: str, body: Any = None, token: str = TOKEN) -> tuple[int, Any]:
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"null")


def until(url: str, state: str) -> None:
    """Waits for what must come."""
    while ask("GET", f"{url}/status")[1]["state"] != state:
        time.sleep(0.01)


def task(seconds: float = 0.4, **fields: Any) -> Task:
    return Task(env_name="none", timeout=seconds, check_env_interval_seconds=0.05, **fields)


def evaluate(agent: Side, evaluator: Side, seconds: float = 0.4) -> EvaluationResult:
    return run_evaluation_client(agent.url, evaluator.url, task(seconds), token=TOKEN)
