import asyncio
import time

from proctor.config import build_config
from proctor.errors import TransientModelError
from proctor.models.gateway import Gateway
from proctor.models.model import Model, Request, Sampling
from proctor.types import Output, Sample

REQUEST = Request("?", Sampling(max_tokens=1), 0, Sample("s", 0, "?"))


class Flaky(Model):
    """Fails so many times, then answers; notes when it was asked."""

    name = "flaky"

    def __init__(self, failures: int, retry_after: float | None = None) -> None:
        self.failures = failures
        self.retry_after = retry_after
        self.asked: list[float] = []
        self.failed = asyncio.Event()

    async def generate(self, request: Request) -> Output:
        self.asked.append(time.monotonic())
        if len(self.asked) <= self.failures:
            self.failed.set()
            raise TransientModelError("later", self.retry_after)
        return Output("fine")


def gateway(model: Model, **options: object) -> Gateway:
    return Gateway(model, build_config({"task": "t", "model": "m"} | options))


def test_a_rate_limit_met_by_one_request_holds_back_the_others():
    async def scene() -> None:
        model = Flaky(1, retry_after=0.8)
        door = gateway(model)
        refused = asyncio.create_task(door.generate(REQUEST))
        await model.failed.wait()
        await asyncio.sleep(0)
        await asyncio.gather(door.generate(REQUEST), door.generate(REQUEST), refused)
        assert len(model.asked) == 4
        assert min(model.asked[1:]) - model.asked[0] >= 0.79

    asyncio.run(scene())


def test_back_off_grows_from_try_to_try_and_ends():
    async def scene() -> None:
        model = Flaky(99)
        try:
            await gateway(model, retries=3).generate(REQUEST)
        except TransientModelError:
            assert len(model.asked) == 4
        else:
            raise AssertionError("a failure became an answer")

    asyncio.run(scene())


def test_attempts_are_counted():
    async def scene() -> Output:
        return await gateway(Flaky(2)).generate(REQUEST)

    assert asyncio.run(scene()).attempts == 3
