"""The gateway: every request to a model passes through here for cache, concurrency, retries and price."""

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
UNCALIBRATED_FACTOR = 4.0  # how many times longer than estimated a prompt may be, as long as no answer has told
RATE_LIMIT_TIMEOUT = 900.0  # seconds that one request may wait for rate limits to end, all together


class ModelClient(Model):
    def __init__(
        self, model: Model, config: RunConfig, cache: ResponseCache | None = None, budget: Budget | None = None
    ) -> None:
        self.name, self.batches_requests = model.name, model.batches_requests
        self._model = model
        self._cache = cache
        self._budget = budget or Budget()
        self._stretch: float | None = None  # how many times longer than estimated a prompt has turned out to be
        self._concurrency = config.concurrency or START_SLOTS
        self._limit = limit_of(model.server, config.concurrency) if model.server else self._own_limit()
        self._pushbacks_before = self._limit.pushbacks  # by exams before this one
        self._retries = config.retries
        self._prices = (config.price_input, config.price_output)

    @property
    def slots(self) -> int:  # type: ignore[override]  # they come and go
        return self._limit.slots

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:
        # Where it is known already, before weights are fetched or a server is asked.
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
        return {"concurrency": {"settled": limit.slots, "most": limit.most, "pushbacks": pushbacks}}

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
        async with self._budget.reserved(lambda: self._most(request)):
            output = await self._try(request)
            used = output.usage.input_tokens
            if self._model.server and used + output.usage.output_tokens == 0:
                if self._stretch is None:  # not even the first
                    raise UsageError(
                        f"{self.name} does not say how many tokens it used: only --time-limit can be kept here."
                    )
                self._budget.use(self._most(request))
                return output
            self._stretch = max(self._stretch or 0.0, used / estimate_tokens(request.prompt))
            self._budget.use(price(output.usage, *self._prices))
            return output

    async def _try(self, request: Request) -> Output:
        attempt = 1
        clock = asyncio.get_running_loop().time
        patience = clock() + RATE_LIMIT_TIMEOUT
        while True:
            try:
                async with self._limit.place():
                    if attempt == 1:
                        self._budget.refuse_if_ended()  # the time may have come while it waited for its place
                    output = await self._model.generate(request)
            except TransientModelError as error:
                if error.retry_after is not None:
                    # Waiting as told is no failed try, as long as it comes to an end.
                    if clock() + error.retry_after > patience:
                        raise
                    self._limit.keep_quiet(error.retry_after)
                    continue
                if attempt > self._retries:
                    raise
                longest = min(MAX_BACKOFF, FIRST_BACKOFF * 2 ** (attempt - 1))
                await asyncio.sleep(random.uniform(longest / 2, longest))
                attempt += 1
            else:
                if self._model.server:
                    # Whoever got the place goes first: a server waits for it, the judge of this answer does not.
                    await asyncio.sleep(0)
                return msgspec.structs.replace(output, attempts=attempt) if attempt > 1 else output

    def _own_limit(self) -> ServerLimit:
        """Of a model in this process, whose slots may become known only when it is prepared."""
        slots = max(self._concurrency, self._model.slots)
        return ServerLimit(self.name, slots, slots)

    def _most(self, request: Request) -> Usage:
        """The most that a request may use, as far as the length of its prompt can be estimated."""
        stretch = UNCALIBRATED_FACTOR if self._stretch is None else self._stretch
        length = math.ceil(estimate_tokens(request.prompt) * stretch)
        return price(Usage(length, request.sampling.max_tokens), *self._prices)

    def _priced(self, output: Output) -> Output:
        usage = price(output.usage, *self._prices)
        if usage.cost is None:
            return output
        if output.cached:
            usage = msgspec.structs.replace(usage, cost=0.0)  # it was paid for before
        return msgspec.structs.replace(output, usage=usage)


def price(usage: Usage, price_input: float | None, price_output: float | None) -> Usage:
    """The same with its cost, where there is a price for a million tokens."""
    if price_input is None and price_output is None:
        return usage
    cost = (usage.input_tokens * (price_input or 0) + usage.output_tokens * (price_output or 0)) / 1e6
    return msgspec.structs.replace(usage, cost=cost)
