"""The client of a model: cache, concurrency limit, retries, budget and price of each request."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from proctor.core.budget import Budget
from proctor.core.config import RunConfig
from proctor.core.errors import TransientModelError, UsageError
from proctor.core.types import Output, Sample, Usage
from proctor.models.adaptive_limit import START_SLOTS, ServerLimit, limit_of
from proctor.models.base import Model, Request, estimate_tokens
from proctor.models.cache import ResponseCache

FIRST_BACKOFF = 0.5  # seconds before the second try; doubled before each further one
MAX_BACKOFF = 60.0
UNCALIBRATED_FACTOR = 4.0  # how many times longer than estimated a prompt may be, before the first answer
RATE_LIMIT_TIMEOUT = 900.0  # seconds that one request may wait for rate limits in total


class ModelClient(Model):
    def __init__(
        self, model: Model, config: RunConfig, cache: ResponseCache | None = None, budget: Budget | None = None
    ) -> None:
        self.name, self.batches_requests = model.name, model.batches_requests
        self._model = model
        self._cache = cache
        self._budget = budget or Budget()
        self._estimate_factor: float | None = None  # largest ratio of actual to estimated prompt tokens
        self._concurrency = config.concurrency or START_SLOTS
        self._limit = limit_of(model.server, config.concurrency) if model.server else self._own_limit()
        self._pushbacks_before = self._limit.pushbacks  # of earlier runs
        self._retries = config.retries
        self._prices = (config.price_input, config.price_output)

    @property
    def slots(self) -> int:  # type: ignore[override]  # changes while it runs
        return self._limit.slots

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:
        # Early if already known: before weights are downloaded or a server is contacted.
        self._model.refuse_images(samples)
        await self._model.prepare(samples)
        self.default_api, self.reasoning_tokens = self._model.default_api, self._model.reasoning_tokens
        if not self._model.server:
            self._limit = self._own_limit()

    def identity(self) -> dict[str, str]:
        return self._model.identity()

    def provenance(self) -> dict[str, Any]:
        if not self._model.server:
            return {}
        limit = self._limit
        pushbacks = limit.pushbacks - self._pushbacks_before
        return {"concurrency": {"settled": limit.slots, "most": limit.max_slots, "pushbacks": pushbacks}}

    async def close(self) -> None:
        if self._cache is not None:
            self._cache.close()
        await self._model.close()

    async def generate(self, request: Request) -> Output:
        output = self._cache.get(self.identity(), request) if self._cache is not None else None
        if output is None:
            output = await (self._try_within_budget(request) if self._budget.counts_tokens else self._try(request))
            if self._cache is not None:
                self._cache.put(self.identity(), request, output)
        return self._priced(output)

    async def _try_within_budget(self, request: Request) -> Output:
        async with self._budget.reserve(lambda: self._max_usage(request)):
            output = await self._try(request)
            used = output.usage.input_tokens
            if self._model.server and used + output.usage.output_tokens == 0:
                if self._estimate_factor is None:  # the server has never reported usage
                    raise UsageError(
                        f"{self.name} does not report how many tokens it used: only --time-limit can be kept here."
                    )
                self._budget.use(self._max_usage(request))
                return output
            factor = used / estimate_tokens(request.prompt)
            self._estimate_factor = max(self._estimate_factor or 0.0, factor)
            self._budget.use(price(output.usage, *self._prices))
            return output

    async def _try(self, request: Request) -> Output:
        attempt = 1
        clock = asyncio.get_running_loop().time
        deadline = clock() + RATE_LIMIT_TIMEOUT
        while True:
            try:
                async with self._limit.slot():
                    if attempt == 1:
                        self._budget.raise_if_exhausted()  # it may have ended while the request waited
                    output = await self._model.generate(request)
            except TransientModelError as error:
                if error.retry_after is not None:
                    # A wait that the server asks for is not a failed attempt, up to the deadline.
                    if clock() + error.retry_after > deadline:
                        raise
                    self._limit.pause(error.retry_after)
                    continue
                if attempt > self._retries:
                    raise
                longest = min(MAX_BACKOFF, FIRST_BACKOFF * 2 ** (attempt - 1))
                await asyncio.sleep(random.uniform(longest / 2, longest))
                attempt += 1
            else:
                if self._model.server:
                    # Let the request that got the slot start before this answer is scored.
                    await asyncio.sleep(0)
                return msgspec.structs.replace(output, attempts=attempt) if attempt > 1 else output

    def _own_limit(self) -> ServerLimit:
        """The limit of an in-process model, whose slots may be known only once it is prepared."""
        slots = max(self._concurrency, self._model.slots)
        return ServerLimit(self.name, slots, slots)

    def _max_usage(self, request: Request) -> Usage:
        """The most that a request may use, from an estimate of its prompt's length."""
        factor = UNCALIBRATED_FACTOR if self._estimate_factor is None else self._estimate_factor
        length = math.ceil(estimate_tokens(request.prompt) * factor)
        return price(Usage(length, request.sampling.max_tokens), *self._prices)

    def _priced(self, output: Output) -> Output:
        usage = price(output.usage, *self._prices)
        if usage.cost is None:
            return output
        if output.cached:
            usage = msgspec.structs.replace(usage, cost=0.0)  # an earlier run paid for it
        return msgspec.structs.replace(output, usage=usage)


def price(usage: Usage, price_input: float | None, price_output: float | None) -> Usage:
    """Add the cost, if a price for a million tokens is given."""
    if price_input is None and price_output is None:
        return usage
    cost = (usage.input_tokens * (price_input or 0) + usage.output_tokens * (price_output or 0)) / 1e6
    return msgspec.structs.replace(usage, cost=cost)
