"""Retries, backoff and rate limits in virtual time: no test waits."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from helpers.virtual_time import run_in_virtual_time
from proctor.core.config import build_config
from proctor.core.errors import TransientModelError
from proctor.core.types import Output, Sample
from proctor.models.base import Model, Request, Sampling
from proctor.models.client import ModelClient

REQUEST = Request("?", Sampling(max_tokens=1), 0, Sample("s", 0, "?"))


class Flaky(Model):
    """Fails so many times, then answers; records the times of its requests."""

    name = "flaky"

    def __init__(self, failures: int, retry_after: float | None = None) -> None:
        self.failures = failures
        self.retry_after = retry_after
        self.asked: list[float] = []
        self.failed = asyncio.Event()

    async def generate(self, request: Request) -> Output:
        self.asked.append(asyncio.get_running_loop().time())
        if len(self.asked) <= self.failures:
            self.failed.set()
            raise TransientModelError("later", self.retry_after)
        return Output("fine")


def make_client(model: Model, **options: object) -> ModelClient:
    return ModelClient(model, build_config({"task": "t", "model": "m"} | options))


def test_rate_limit_of_one_request_pauses_others() -> None:
    async def scene() -> None:
        model = Flaky(1, retry_after=0.8)
        client = make_client(model)
        refused = asyncio.create_task(client.generate(REQUEST))
        await model.failed.wait()
        await asyncio.sleep(0)
        await asyncio.gather(client.generate(REQUEST), client.generate(REQUEST), refused)
        assert len(model.asked) == 4
        assert min(model.asked[1:]) - model.asked[0] >= 0.79

    run_in_virtual_time(scene())


def test_backoff_doubles_until_retries_are_used() -> None:
    async def scene() -> list[float]:
        model = Flaky(99)
        with pytest.raises(TransientModelError):
            await make_client(model, retries=3).generate(REQUEST)
        return model.asked

    asked = run_in_virtual_time(scene())
    pauses = [later - earlier for earlier, later in pairwise(asked)]
    assert len(pauses) == 3
    for number, pause in enumerate(pauses):
        assert pause >= 0.25 * 2**number - 0.01, "at least half of 0.5 s, 1 s, 2 s"


def test_attempts_are_counted() -> None:
    async def scene() -> Output:
        return await make_client(Flaky(2)).generate(REQUEST)

    assert run_in_virtual_time(scene()).attempts == 3


class Bucket(Model):
    """Accepts so many requests per period, and rejects the others with Retry-After."""

    name = "bucket"

    def __init__(self, slots: int, period: float) -> None:
        self.slots, self.period = slots, period
        self.opened, self.left = float("-inf"), 0

    async def generate(self, request: Request) -> Output:
        now = asyncio.get_running_loop().time()
        if now - self.opened >= self.period:
            self.opened, self.left = now, self.slots
        if self.left == 0:
            raise TransientModelError("rate limit", self.period)
        self.left -= 1
        return Output("fine")


def test_rate_limit_fails_no_request() -> None:
    """Sixty requests at once on a server that takes eight in a fifth of a second, with no retries at all."""

    async def scene() -> list[Output]:
        client = make_client(Bucket(8, 0.2), retries=0, concurrency=60)
        return await asyncio.gather(*(client.generate(REQUEST) for _ in range(60)))

    assert [output.text for output in run_in_virtual_time(scene())] == ["fine"] * 60


@pytest.mark.parametrize("endless", [86_400.0, float("inf")])
def test_excessive_retry_after_fails(endless: float) -> None:
    async def scene() -> None:
        model = Flaky(1, retry_after=endless)
        with pytest.raises(TransientModelError):
            await make_client(model).generate(REQUEST)

    run_in_virtual_time(scene())


def test_retry_after_zero_waits_minimum_pause() -> None:
    async def scene() -> list[float]:
        model = Flaky(1, retry_after=0.0)
        await make_client(model).generate(REQUEST)
        return model.asked

    first, second = run_in_virtual_time(scene())
    assert second - first >= 0.49


class Batching(Model):
    """Answers only once so many requests have arrived."""

    name = "batching"

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.full = asyncio.Barrier(slots)

    async def generate(self, request: Request) -> Output:
        await self.full.wait()
        return Output("fine")


def test_batching_model_gets_as_many_requests_as_slots() -> None:
    async def scene() -> list[Output]:
        client = make_client(Batching(6), concurrency=1)
        assert client.slots == 6
        return await asyncio.gather(*(client.generate(REQUEST) for _ in range(12)))

    assert len(run_in_virtual_time(scene())) == 12
    assert make_client(Flaky(0), concurrency=9).slots == 9
