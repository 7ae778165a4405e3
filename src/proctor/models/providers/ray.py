"""A local model on a cluster: a copy for each GPU, or for every few CPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Literal, NamedTuple

import msgspec

from proctor.core.config import RunConfig
from proctor.core.errors import ModelError, UsageError
from proctor.core.types import Output, Sample
from proctor.distributed.actor import Node, RemoteWorker
from proctor.distributed.cluster import capacity
from proctor.distributed.pool import ActorPool, WorkerLostError
from proctor.models.base import Model, Request

Api = Literal["chat", "completions"]
Opener = Callable[[RunConfig], Model]

USUAL_CPUS = 4  # of a copy, where there is no GPU: more make a small model hardly faster
LEAST_AT_ONCE = 2  # so that a copy has its next request when it has answered one


class _Placement(NamedTuple):
    copies: int
    cpus: int
    gpus: int


class _Opened(NamedTuple):
    """What is known of a copy once it is prepared."""

    identity: dict[str, str]
    usual_api: Api
    reasoning_tokens: int
    blind: str
    places: int


class ClusterModel(Model):
    """Stands for its copies. What a lost one was asked is asked of another."""

    def __init__(self, model: Model, config: RunConfig, opener: Opener) -> None:
        """``model`` is the one that a copy opens by ``opener``; here it is only looked at."""
        self.name, self.blind, self.usual_api, self.batches = model.name, model.blind, model.usual_api, model.batches
        self._identity = model.identity()
        self._known = False
        self._copies, cpus, gpus = _placement(config)
        at_once = max(model.places, LEAST_AT_ONCE)
        self.places = self._copies * at_once
        alone = msgspec.structs.replace(config, engine="local", ray_address=None)
        self._pool = ActorPool(
            partial(_Copy, opener, alone),
            self._copies,
            cpus=cpus,
            gpus=gpus,
            max_jobs=at_once,
            paced=False,
            on_open=self._on_open,
        )

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:
        await self._pool.open()
        self.refuse_pictures(samples)

    def identity(self) -> dict[str, str]:
        return self._identity

    async def generate(self, request: Request) -> Output:
        try:
            return await self._pool.run(request)
        except WorkerLostError as error:
            raise ModelError(str(error)) from None

    async def close(self) -> None:
        await self._pool.close()

    def _on_open(self, node: Node, opened: _Opened) -> None:
        identity = opened.identity
        if self._known and identity != self._identity:
            changed = ", ".join(sorted(key for key in identity if identity[key] != self._identity.get(key)))
            raise UsageError(f"its copy of {self.name} is not that of the other nodes ({changed}).")
        self._known = True
        self._identity, self.usual_api, self.blind = identity, opened.usual_api, opened.blind
        self.reasoning_tokens = opened.reasoning_tokens
        self._pool.max_jobs = max(opened.places, LEAST_AT_ONCE)
        self.places = self._copies * self._pool.max_jobs


def _placement(config: RunConfig) -> _Placement:
    """Where there are no GPUs, half of the CPUs are left to programs, if any are to be run."""
    there = capacity()
    if there.gpus:
        return _Placement(there.gpus, 1, 1)
    ours = there.cpus
    if config.allow_code_execution and not config.generation_only:
        ours -= config.workers or there.cpus // 2
    ours = max(1, ours)
    cpus = config.model_cpus or max(1, min(USUAL_CPUS, ours, there.largest))
    return _Placement(max(1, ours // cpus), cpus, 0)


class _Copy(RemoteWorker[Request, Output]):
    def __init__(self, opener: Opener, config: RunConfig) -> None:
        self._model = opener(config)

    async def open(self) -> _Opened:
        model = self._model
        await model.prepare(lambda: ())
        self.max_concurrency = model.places
        return _Opened(model.identity(), model.usual_api, model.reasoning_tokens, model.blind, model.places)

    async def process(self, item: Request) -> Output:
        return await self._model.generate(item)

    async def close(self) -> None:
        await self._model.close()
