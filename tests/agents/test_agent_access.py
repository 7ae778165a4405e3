"""Who may ask the servers of agents and evaluators, and what: tokens, addresses, sizes, and whatever a fuzzer makes."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from conftest import Command
from helpers import faulty_agents as fa
from helpers.agent_sides import LOCAL, TOKEN, LocalSide, Side, StartLocalSide, ask, evaluate, task
from helpers.paths import HELPERS
from proctor.agents import EpisodeOutcome, run_evaluation_client, run_evaluation_client_with_server
from proctor.agents.runtime.hosting.recipe import recipe_of
from proctor.agents.server.access import checked_url
from proctor.agents.server.agent_side import AgentSide
from proctor.agents.server.client import EvaluationError
from proctor.core.errors import UsageError


@pytest.fixture
def start_here() -> Iterator[StartLocalSide]:
    """Starts a server in a thread: `start_here("agent", Class)` or `start_here("evaluator", Class)`."""
    with ExitStack() as stack:
        yield lambda side, cls, port=0: stack.enter_context(LocalSide(side, cls, port))


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """One server for all who are turned away: that leaves it as it was."""
    folder = tmp_path_factory.mktemp("agent")
    side = Side(
        "agent", "helpers.faulty_agents:Good", PROCTOR_STORE=str(folder / "store"), XDG_STATE_HOME=str(folder / "state")
    )
    yield side
    side.end()


def test_nothing_without_the_token(agent: Side) -> None:
    for token in ("", "wrong", TOKEN + "x"):
        status, answer = ask("GET", f"{agent.url}/agent/status", token=token)
        assert (status, answer["success"]) == (401, False)
    with pytest.raises(EvaluationError, match="401"):
        run_evaluation_client(agent.url, agent.url, task(), token="another-token-of-somebody-else")


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org:8001",
        "http://169.254.169.254",
        "ftp://127.0.0.1",
        "http://user:word@127.0.0.1:1",
        "http://127.0.0.1:1/path",
        "http://[::1",
        "file:///etc/passwd",
        "",
        "http://127.0.0.1:99999",
    ],
)
def test_addresses_that_are_not_registered(agent: Side, url: str) -> None:
    status, answer = ask("POST", f"{agent.url}/agent/register_evaluator", {"evaluator_url": url})
    assert (status, answer["success"]) == (400, False)


def test_too_large_and_too_odd(agent: Side) -> None:
    url = f"{agent.url}/agent/task/start"
    assert ask("POST", url, b'"' + b"x" * 2_000_000 + b'"')[0] == 413
    for body in (b"", b"\xff", b"{", b"[]", {"env_name": "x"}, {"env_name": "x", "timeout": -1}, b'{"timeout": NaN}'):
        status, answer = ask("POST", url, body)
        assert status in (400, 422)
        assert answer["success"] is False
        assert answer["error"]
    for odd in ({"seed": 2**64}, {"success_criteria": {"a": "\ud800"}}, {"success_criteria": {"a": nested(60)}}):
        assert ask("POST", url, task().model_dump() | odd)[0] == 422
    bottomless = b'{"env_name": "x", "timeout": 1, "success_criteria": ' + b'{"a":' * 90_000
    assert ask("POST", url, bottomless)[0] in (400, 422)


def nested(levels: int) -> list[Any]:
    return [nested(levels - 1)] if levels else []


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:  # closed with something unread
        return True


def test_connections_that_say_nothing_are_closed(start_here: StartLocalSide, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = start_here("agent", fa.Good)
    with ExitStack() as stack, monkeypatch.context() as patch:
        patch.setattr("proctor.agents.server.punctual.SLOWEST_HEAD", 1.0)
        connect = (socket.create_connection((LOCAL, agent.port), timeout=60) for _ in range(300))
        silent = [stack.enter_context(connection) for connection in connect]
        for connection in silent[::2]:
            with suppress(ConnectionError):  # it may be closed by now
                connection.sendall(b"GET /agent/status HTTP/1.1\r\nX-Never-Ends: ")
        assert all(is_closed(connection) for connection in silent)
        patch.undo()
        assert ask("GET", f"{agent.url}/agent/status")[0] == 200


def test_a_host_is_allowed_however_it_is_written() -> None:
    side = AgentSide(recipe_of(fa.Good), TOKEN, ["Judge.Example"])
    assert checked_url("http://JUDGE.example:8001", side.allowed_hosts) == "http://judge.example:8001"


def test_servers_for_everyone_know_each_other() -> None:
    result = run_evaluation_client_with_server(
        task(), "0.0.0.0", 0, "0.0.0.0", 0, agent=fa.Finishing, evaluator=fa.Watching
    )
    assert result.outcome is EpisodeOutcome.COMPLETED, result.notes


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_server_for_everyone_needs_a_token(proctor: Command, host: str) -> None:
    done = proctor("serve", "agent", f"{HELPERS / 'faulty_agents.py'}:Good", "--host", host, "--port", "0")
    assert done.returncode == 2
    assert "--token" in done.stderr
    with pytest.raises(UsageError, match="token"):
        fa.Good().run(host=host, port=0)


def test_what_cannot_be_served(proctor: Command) -> None:
    for name, said in {
        "nowhere": "expected module:Class",
        "no_such_module:Agent": "could not be imported",
        f"{HELPERS / 'faulty_agents.py'}:Goood": "Good",
        f"{HELPERS / 'faulty_agents.py'}:Watching": "is not an Agent",
        f"{HELPERS / 'none.py'}:Agent": "there is no file",
    }.items():
        done = proctor("serve", "agent", name)
        assert done.returncode == 2, done.stderr
        assert said in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("whose", ["evaluator", "agent"])
def test_what_the_description_allows_brings_no_server_down(start_here: StartLocalSide, whose: str) -> None:
    """A fuzzer makes requests from the OpenAPI description, to one of two that know each other."""
    sides = {"agent": start_here("agent", fa.Finishing), "evaluator": start_here("evaluator", fa.Watching)}
    evaluate(sides["agent"], sides["evaluator"])
    url = sides[whose].url
    done = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json"),
            *("-H", f"Authorization: Bearer {TOKEN}", "--checks", "not_a_server_error", "--seed", "1"),
            *("--max-examples", "20", "--phases", "fuzzing", "--generation-database", "none", "--no-color"),
        ],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert ask("GET", f"{url}/openapi.json")[0] == 200
