"""The gate between an environment by the clock and its agent."""

from __future__ import annotations

import asyncio
import io
import socket
import sys
from collections.abc import Iterator
from typing import Any

import aiohttp
import msgspec
import pytest

from proctor.agents.envs import observations, spaces
from proctor.agents.envs.observation_server import ObservationServer
from proctor.agents.envs.pending_actions import Frame, PendingAction


@pytest.fixture
def gate() -> Iterator[ObservationServer]:
    interval = sys.getswitchinterval()
    opened = ObservationServer()
    opened.open("secret", spaces.Choice(3).take)
    yield opened
    end(opened)
    sys.setswitchinterval(interval)


def end(gate: ObservationServer) -> None:
    """In the product a gate ends with its process."""
    asyncio.run_coroutine_threadsafe(gate._runner.cleanup(), gate._loop).result()
    gate._loop.call_soon_threadsafe(gate._loop.stop)
    gate._thread.join()
    gate._loop.close()


def ask(gate: ObservationServer, *requests: tuple[str, str, dict[str, Any]]) -> list[tuple[int, bytes]]:
    async def all_of_them() -> list[tuple[int, bytes]]:
        answers = []
        async with aiohttp.ClientSession(f"http://127.0.0.1:{gate.port}") as session:
            for method, path, options in requests:
                given = {"headers": {"Authorization": "Bearer secret"}} | options
                async with session.request(method, path, **given) as reply:
                    answers.append((reply.status, await reply.read()))
        return answers

    return asyncio.run(all_of_them())


def move(tick: int, action: Any) -> dict[str, Any]:
    return {"data": msgspec.msgpack.encode(PendingAction(tick, action, 1, 2))}


def test_observation_server_requires_the_token(gate: ObservationServer) -> None:
    tokens: list[dict[str, str]] = [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}]
    for headers in tokens:
        answers = ask(gate, ("GET", "/observation", {"headers": headers}), ("POST", "/action", {"headers": headers}))
        assert [status for status, _ in answers] == [401, 401]


def test_binary_token_is_refused(gate: ObservationServer) -> None:
    with socket.create_connection(("127.0.0.1", gate.port), timeout=30) as connection:
        connection.sendall(b"GET /observation HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\xfe\r\n\r\n")
        with connection.makefile("rb") as answer:
            assert answer.readline() == b"HTTP/1.1 401 Unauthorized\r\n"


def test_observation_server_gives_the_newest_and_takes_the_last(gate: ObservationServer) -> None:
    gate.show(Frame(0, observations.pack("first"), None, False))
    gate.show(Frame(1, observations.pack("second"), 1.0, False))
    ((_, seen), *answers) = ask(
        gate,
        ("GET", "/observation", {}),
        ("POST", "/action", move(0, 1)),
        ("POST", "/action", move(1, 2)),
        ("POST", "/action", move(1, 7)),
        ("POST", "/action", move(9, 1)),
        ("POST", "/action", move(1, float("inf"))),
        ("POST", "/action", {"data": b"\xc1"}),
        ("POST", "/action", {"data": io.BytesIO(b"x" * 2_000_000)}),
        ("GET", "/observation", {"params": {"after": "?"}}),
        ("GET", "/elsewhere", {}),
    )
    assert msgspec.msgpack.decode(seen, type=Frame).tick == 1
    assert [status for status, _ in answers] == [200, 204, 400, 400, 400, 400, 413, 400, 404]
    assert gate.dropped == 1
    taken = gate.take()
    assert taken is not None
    assert taken.action == 2
    assert gate.take() is None
    gate.close()
    assert ask(gate, ("POST", "/action", move(1, 1)))[0][0] == 410
    gate.open("secret", spaces.Choice(3).take)
    gate.show(Frame(0, b"", None, False))
    assert ask(gate, ("POST", "/action", move(0, 0)))[0][0] == 204


def test_an_action_that_cannot_even_be_looked_at_is_refused(gate: ObservationServer) -> None:
    def take(action: Any) -> Any:
        raise RuntimeError("what is this")

    gate.open("secret", take)
    gate.show(Frame(0, b"", None, False))
    ((status, said),) = ask(gate, ("POST", "/action", move(0, 1)))
    assert (status, said) == (400, b"its action raised RuntimeError: what is this")
