"""The gateway: every request to a model passes through here for cache, concurrency, retries and price."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable

import msgspec

from proctor.config import RunConfig
from proctor.errors import TransientModelError
from proctor.models.cache import ResponseCache
from proctor.models.model import Model, Request
from proctor.types import Output, Sample

FIRST_WAIT = 0.5  # seconds before the second try; doubled before each further one
LONGEST_WAIT = 60.0


class Gateway(Model):
    def __init__(self, model: Model, config: RunConfig, cache: ResponseCache | None = None) -> None:
        self.name = model.name
        self._model = model
        self._cache = cache
        self._places = asyncio.Semaphore(config.concurrency)
        self._retries = config.retries
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
        attempt = 1
        while True:
            if (wait := self._closed_until - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            try:
                output = await self._model.generate(request)
            except TransientModelError as error:
                if attempt > self._retries:
                    raise
                await self._back_off(attempt, error.retry_after)
                attempt += 1
            else:
                return msgspec.structs.replace(output, attempts=attempt) if attempt > 1 else output

    async def _back_off(self, attempt: int, retry_after: float | None) -> None:
        if retry_after is not None:
            self._closed_until = max(self._closed_until, time.monotonic() + retry_after)
        else:
            # With jitter, so that requests which failed together do not come back together.
            longest = min(LONGEST_WAIT, FIRST_WAIT * 2 ** (attempt - 1))
            await asyncio.sleep(random.uniform(longest / 2, longest))

    def _priced(self, output: Output) -> Output:
        price_input, price_output = self._prices
        if price_input is None and price_output is None:
            return output
        usage = output.usage
        cost = (usage.input_tokens * (price_input or 0) + usage.output_tokens * (price_output or 0)) / 1e6
        # What comes from the cache was paid for before.
        usage = msgspec.structs.replace(usage, cost=0.0 if output.cached else cost)
        return msgspec.structs.replace(output, usage=usage)
