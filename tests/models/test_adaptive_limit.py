"""The adaptive concurrency limit, with simulated servers in virtual time and real ones on loopback."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from typing import Any

import pytest
from aiohttp import web

import proctor
from conftest import FailingRun, Serve, right_sum
from helpers.virtual_time import run_in_virtual_time
from proctor.core.config import build_config
from proctor.core.errors import TransientModelError
from proctor.core.types import Output, Sample
from proctor.models.adaptive_limit import MAX_SLOTS, START_SLOTS, ServerLimit, limit_of
from proctor.models.base import Model, Request, Sampling
from proctor.models.client import ModelClient

REQUEST = Request("?", Sampling(max_tokens=1), 0, Sample("s", 0, "?"))


class Server(Model):
    """A simulated server: so many at once, each taking a second or so."""

    name, server = "openai/m", "there"

    def __init__(self, at_once: int, retry_after: float | None = None) -> None:
        self.at_once, self.retry_after = at_once, retry_after
        self.in_flight = self.refused = self.answered = 0
        self.crowds: list[int] = []
        self.random = random.Random(1)

    async def generate(self, request: Request) -> Output:
        if self.in_flight >= self.at_once:
            self.refused += 1
            raise TransientModelError("HTTP 429", self.retry_after, overloaded=True)
        self.in_flight += 1
        self.crowds.append(self.in_flight)
        await self.answer()
        self.in_flight -= 1
        self.answered += 1
        return Output("fine")

    async def answer(self) -> None:
        await asyncio.sleep(self.random.uniform(0.5, 1.5))


def make_client(model: Model, **options: object) -> ModelClient:
    return ModelClient(model, build_config({"task": "t", "model": "m"} | options))


async def ask(client: ModelClient, number: int) -> None:
    """Send requests as a run does: twice as many samples in flight as there are slots."""
    left = number
    workers: set[asyncio.Task[None]] = set()

    async def work() -> None:
        nonlocal left
        while left > 0 and len(workers) <= 2 * client.slots:
            left -= 1
            await client.generate(REQUEST)

    while left > 0:
        while len(workers) < 2 * client.slots:
            workers.add(asyncio.create_task(work()))
        done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED, timeout=0.1)
        workers -= done
        for task in done:
            task.result()
    await asyncio.gather(*workers)


@pytest.mark.parametrize(
    ("at_once", "retry_after"),
    [
        (1, None),
        (10, 2.0),
        (50, None),
        *(
            pytest.param(at_once, retry_after, marks=pytest.mark.slow)
            for at_once, retry_after in [(1, 2.0), (3, None), (3, 2.0), (10, None), (50, 2.0), (120, None), (120, 2.0)]
        ),
    ],
)
def test_limit_converges_to_server_capacity(at_once: int, retry_after: float | None) -> None:
    server = Server(at_once, retry_after)
    client = make_client(server)
    run_in_virtual_time(ask(client, 100 * at_once + 500))
    assert server.answered == 100 * at_once + 500
    late = server.crowds[len(server.crowds) // 2 :]
    assert sum(late) / len(late) >= 0.6 * at_once, "the limit stays near the capacity"
    assert 0.7 * at_once <= client.slots <= 1.2 * at_once + 1
    assert server.refused <= 0.1 * server.answered + 2 * START_SLOTS, "and exceeds it rarely"


def test_limit_grows_to_maximum() -> None:
    server = Server(10_000)
    client = make_client(server)
    run_in_virtual_time(ask(client, 6_000))
    assert client.slots == MAX_SLOTS
    assert max(server.crowds) == MAX_SLOTS
    assert client.provenance() == {"concurrency": {"settled": MAX_SLOTS, "most": MAX_SLOTS, "pushbacks": 0}}


class Queueing(Server):
    """Accepts all requests, but processes only so many at once."""

    def __init__(self, workers: int) -> None:
        super().__init__(10_000)
        self.workers = asyncio.Semaphore(workers)

    async def answer(self) -> None:
        async with self.workers:
            await super().answer()


def test_limit_stops_growing_when_requests_queue() -> None:
    server = Queueing(30)
    client = make_client(server)
    run_in_virtual_time(ask(client, 6_000))
    assert 30 <= client.slots <= 60
    late = server.crowds[len(server.crowds) // 2 :]
    assert sum(late) / len(late) <= 60


def test_limit_does_not_grow_while_idle() -> None:
    server = Server(10_000)
    client = make_client(server)

    async def scene() -> None:
        for _ in range(200):
            await asyncio.gather(*(client.generate(REQUEST) for _ in range(4)))

    run_in_virtual_time(scene())
    assert client.slots == START_SLOTS


def test_limit_grows_after_server_recovers() -> None:
    server = Server(4)
    client = make_client(server)

    async def scene() -> int:
        await ask(client, 600)
        low = client.slots
        server.at_once = 64
        await ask(client, 8_000)
        return low

    low = run_in_virtual_time(scene())
    assert low <= 6
    assert client.slots >= 40


class Hanging(Server):
    """Times out when there are too many requests."""

    async def generate(self, request: Request) -> Output:
        try:
            return await super().generate(request)
        except TransientModelError:
            await asyncio.sleep(30)
            raise TransientModelError("no answer within 30 s", overloaded=True) from None


def test_timeouts_count_as_pushback() -> None:
    server = Hanging(5)
    client = make_client(server)
    run_in_virtual_time(ask(client, 1_000))
    assert server.answered == 1_000
    assert client.slots <= 7


class Failing(Server):
    """Fails at random, however few requests there are."""

    async def generate(self, request: Request) -> Output:
        if self.random.random() < 0.2:
            raise TransientModelError("HTTP 500")
        return await super().generate(request)


def test_other_failures_do_not_count_as_pushback() -> None:
    client = make_client(Failing(10_000), retries=50)
    run_in_virtual_time(ask(client, 5_000))
    assert client.slots >= 100


def test_models_of_one_server_share_limit_and_pauses() -> None:
    first, second, elsewhere = Server(10_000), Server(10_000), Server(10_000)
    elsewhere.server = "elsewhere"
    clients = [make_client(model, concurrency=6) for model in (first, second, elsewhere)]
    asked: list[float] = []

    async def scene() -> None:
        first.at_once, first.retry_after = 0, 20.0

        async def ask_second() -> None:
            await clients[1].generate(REQUEST)
            asked.append(asyncio.get_running_loop().time())

        refused = asyncio.create_task(clients[0].generate(REQUEST))
        await asyncio.sleep(1)
        first.at_once = 10_000
        await clients[2].generate(REQUEST)
        assert asyncio.get_running_loop().time() < 5, "another server is not concerned"
        await asyncio.gather(refused, *(ask_second() for _ in range(4)))
        together = [asyncio.create_task(client.generate(REQUEST)) for client in clients[:2] for _ in range(30)]
        while not all(task.done() for task in together):
            assert first.in_flight + second.in_flight <= 6
            await asyncio.sleep(0.1)

    run_in_virtual_time(scene())
    assert min(asked) >= 20


def test_next_run_starts_with_last_limit() -> None:
    limits = [limit_of("there", None)]
    limits[0].slots = 40
    assert limit_of("there", None) is limits[0]
    assert limit_of("there", None).slots == 40
    assert limit_of("there", 12).slots == 12
    assert limit_of("there", 100).slots == 100
    assert limit_of("elsewhere", 100).slots == 100


def test_pushbacks_are_counted_per_run() -> None:
    server = Server(3)
    first = make_client(server)
    run_in_virtual_time(ask(first, 200))
    second = make_client(server)
    assert first.provenance()["concurrency"]["pushbacks"] == server.refused > 0
    assert second.provenance()["concurrency"]["pushbacks"] == 0


def test_cancelled_request_releases_its_slot() -> None:
    async def scene() -> None:
        limit = ServerLimit("there", 2, 2)

        async def hold(release: asyncio.Event) -> None:
            async with limit.slot():
                await release.wait()

        for round_number in range(50):
            release = asyncio.Event()
            tasks = [asyncio.create_task(hold(release)) for _ in range(8)]
            await asyncio.sleep(0)
            if round_number % 2:
                release.set()  # some get a slot at the moment they are cancelled
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(5), limit.slot(), limit.slot():
            pass

    run_in_virtual_time(scene())


def test_event_loops_of_several_threads_share_a_limit() -> None:
    limit = ServerLimit("there", 3, 3)
    inside, most, lock = 0, 0, threading.Lock()

    async def ask_in_turn() -> None:
        nonlocal inside, most

        async def one() -> None:
            nonlocal inside, most
            async with limit.slot():
                with lock:
                    inside += 1
                    most = max(most, inside)
                await asyncio.sleep(0.001)
                with lock:
                    inside -= 1

        await asyncio.gather(*(one() for _ in range(60)))

    threads = [threading.Thread(target=lambda: asyncio.run(ask_in_turn())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 3


# -- real servers -------------------------------------------------------------------------------


def refusal(status: int, **headers: str) -> web.Response:
    return web.json_response({"error": {"message": "too many"}}, status=status, headers=headers)


@pytest.fixture
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long they are is tested in virtual time."""
    monkeypatch.setattr("proctor.models.client.FIRST_BACKOFF", 0.01)
    monkeypatch.setattr("proctor.models.client.MAX_BACKOFF", 0.1)
    monkeypatch.setattr("proctor.models.adaptive_limit.MIN_PAUSE", 0.01)


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (429, {}),
        (503, {"Retry-After": "0.02"}),
        pytest.param(429, {"Retry-After": "0.5"}, marks=pytest.mark.slow),
        pytest.param(503, {}, marks=pytest.mark.slow),
        pytest.param(529, {}, marks=pytest.mark.slow),
        pytest.param(529, {"Retry-After": "0.5"}, marks=pytest.mark.slow),
    ],
)
@pytest.mark.usefixtures("short_waits")
def test_rejected_requests_are_neither_lost_nor_doubled(
    adding: str, serve: Serve, status: int, headers: dict[str, str]
) -> None:
    async def reply(body: dict[str, Any], number: int) -> Any:
        if server.in_flight > 3:
            return refusal(status, **headers)
        await asyncio.sleep(0.005)
        answered[right_sum(body, number)] += 1
        return right_sum(body, number)

    answered: Counter[str] = Counter()
    server = serve(reply)
    report = proctor.evaluate(adding, "openai/m", base_url=server.url, limit=120, retries=1_000)
    assert (report.run.n, report.run.errors) == (120, 0)
    assert report.metrics["accuracy"].value == 1
    assert set(answered.values()) == {1}
    found = report.run.provenance["concurrency"]
    assert found["pushbacks"] == len(server.requests) - 120 > 0
    assert found["settled"] < START_SLOTS
    assert f"concurrency    {found['settled']} of at most {MAX_SLOTS}, pushed back" in str(report)


@pytest.mark.usefixtures("short_waits")
def test_every_fault_is_retried_until_answered(adding: str, serve: Serve) -> None:
    """Five faults in turn."""

    def reply(body: dict[str, Any], number: int) -> Any:
        text = right_sum(body, number)
        tried[text] += 1
        if tried[text] == 1:
            match int(text) // 2 % 5:
                case 0:
                    return refusal(500)
                case 1:
                    return web.Response(body=b"\x00\xff[[[", content_type="application/json")
                case 2:
                    return web.Response(body=b"[" * 200_000, content_type="application/json")
                case 3:
                    return web.Response(body=b"<html>", headers={"X-Cut": "yes"})
                case 4:
                    return refusal(429)
        return text

    tried: Counter[str] = Counter()
    server = serve(reply)
    report = proctor.evaluate(adding, "openai/m", base_url=server.url, limit=40, retries=1, concurrency=8)
    records = list(report.records())
    assert [record.sample.index for record in records] == list(range(40))
    assert [record.outputs[0].attempts for record in records] == [2] * 40
    assert (report.run.errors, report.metrics["accuracy"].value) == (0, 1)


@pytest.mark.usefixtures("short_waits")
def test_timeout_becomes_error_record(adding: str, serve: Serve, failing_run: FailingRun) -> None:
    async def reply(body: dict[str, Any], number: int) -> str:
        await server.gate.wait()
        return right_sum(body, number)

    server = serve(reply)
    _, (record,) = failing_run(adding, "openai/m", base_url=server.url, limit=1, retries=1, timeout=0.5)
    assert record.error is not None
    assert record.error.message == "no answer within 0.5 s"


@pytest.mark.usefixtures("short_waits")
def test_truncated_response_is_retried(adding: str) -> None:
    """A server that promises more bytes than it sends."""
    asked = 0

    async def scene(ready: threading.Event, port: list[int], stop: threading.Event) -> None:
        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal asked
            head = await reader.readuntil(b"\r\n\r\n")
            if b"POST" in head:
                asked += 1
                body = b'{"choices":[{"message":{"content":"0"}}]}'
                sent = body[:20] if asked == 1 else body
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
                writer.write(b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + sent)
            else:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        port.append(server.sockets[0].getsockname()[1])
        ready.set()
        await asyncio.to_thread(stop.wait)
        server.close()

    ready, stop = threading.Event(), threading.Event()
    port: list[int] = []
    thread = threading.Thread(target=lambda: asyncio.run(scene(ready, port, stop)))
    thread.start()
    assert ready.wait(30)
    try:
        report = proctor.evaluate(adding, "openai/m", base_url=f"http://127.0.0.1:{port[0]}/v1", limit=1)
    finally:
        stop.set()
        thread.join()
    (record,) = report.records()
    assert record.outputs[0].attempts == asked == 2
