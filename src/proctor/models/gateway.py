"""The gateway: every request to a model passes through here for cache, concurrency, retries and price."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

import msgspec
import stamina

from proctor.config import RunConfig
from proctor.errors import TransientModelError
from proctor.models.cache import ResponseCache
from proctor.models.model import Model, Request
from proctor.types import Output, Sample

# Retries are counted in the records; without a handler the library's log lines would break the display.
logging.getLogger("stamina").addHandler(logging.NullHandler())

LONGEST_WAIT = 60.0  # between two tries, unless the server asks for more


class Gateway(Model):
    def __init__(self, model: Model, config: RunConfig, cache: ResponseCache | None = None) -> None:
        self.name = model.name
        self._model = model
        self._cache = cache
        self._places = asyncio.Semaphore(config.concurrency)
        self._tries = config.retries + 1
        self._prices = (config.price_input, config.price_output)
        self._closed_until = 0.0  # a rate limit met by one request holds back the others too

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:
        await self._model.prepare(samples)

    def identity(self) -> dict[str, str]:
        return self._model.identity()

    async def close(self) -> None:
        if self._cache is not None:
            self._cache.close()
        await self._model.close()

    async def generate(self, request: Request) -> Output:
        output = self._cache.get(self.identity(), request) if self._cache is not None else None
        if output is None:
            async with self._places:
                output = await self._try(request)
            if self._cache is not None:
                self._cache.put(self.identity(), request, output)
        return self._priced(output)

    async def _try(self, request: Request) -> Output:
        async for attempt in stamina.retry_context(
            on=self._worth_another_try, attempts=self._tries, timeout=None, wait_max=LONGEST_WAIT
        ):
            with attempt:
                await asyncio.sleep(max(0.0, self._closed_until - time.monotonic()))
                output = await self._model.generate(request)
        return msgspec.structs.replace(output, attempts=attempt.num) if attempt.num > 1 else output

    def _worth_another_try(self, error: Exception) -> bool | float:
        if not isinstance(error, TransientModelError):
            return False
        if error.retry_after is None:
            return True
        self._closed_until = max(self._closed_until, time.monotonic() + error.retry_after)
        return error.retry_after

    def _priced(self, output: Output) -> Output:
        price_input, price_output = self._prices
        if price_input is None and price_output is None:
            return output
        usage = output.usage
        cost = (usage.input_tokens * (price_input or 0) + usage.output_tokens * (price_output or 0)) / 1e6
        # What comes from the cache was paid for before.
        usage = msgspec.structs.replace(usage, cost=0.0 if output.cached else cost)
        return msgspec.structs.replace(output, usage=usage)
