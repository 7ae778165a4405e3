"""Replicas of a local model on a Ray cluster: one per GPU, or per few CPUs."""

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

DEFAULT_CPUS = 4  # per replica without a GPU; more hardly speed up a small model
MIN_CONCURRENCY = 2  # so that a replica has its next request when it has answered one


class _Placement(NamedTuple):
    replicas: int
    cpus: int
    gpus: int


class _ReplicaInfo(NamedTuple):
    """The attributes of a prepared replica."""

    identity: dict[str, str]
    default_api: Api
    reasoning_tokens: int
    no_images_reason: str
    slots: int


class ClusterModel(Model):
    """Sends requests to its replicas, and those of a lost replica to another."""

    def __init__(self, model: Model, config: RunConfig, opener: Opener) -> None:
        """``model`` is used for its attributes only; each replica opens its own with ``opener``."""
        self.name, self.no_images_reason, self.default_api, self.batches_requests = (
            model.name,
            model.no_images_reason,
            model.default_api,
            model.batches_requests,
        )
        self._identity = model.identity()
        self._known = False
        self._replicas, cpus, gpus = _placement(config)
        concurrency = max(model.slots, MIN_CONCURRENCY)
        self.slots = self._replicas * concurrency
        local = msgspec.structs.replace(config, engine="local", ray_address=None)
        self._pool = ActorPool(
            partial(_ModelReplica, opener, local),
            self._replicas,
            cpus=cpus,
            gpus=gpus,
            max_jobs=concurrency,
            paced=False,
            on_open=self._on_open,
        )

    async def prepare(self, samples: Callable[[], Iterable[Sample]]) -> None:
        await self._pool.open()
        self.refuse_images(samples)

    def identity(self) -> dict[str, str]:
        return self._identity

    async def generate(self, request: Request) -> Output:
        try:
            return await self._pool.run(request)
        except WorkerLostError as error:
            raise ModelError(str(error)) from None

    async def close(self) -> None:
        await self._pool.close()

    def _on_open(self, node: Node, opened: _ReplicaInfo) -> None:
        identity = opened.identity
        if self._known and identity != self._identity:
            changed = ", ".join(sorted(key for key in identity if identity[key] != self._identity.get(key)))
            raise UsageError(f"its copy of {self.name} differs from that of the other nodes ({changed}).")
        self._known = True
        self._identity, self.default_api, self.no_images_reason = identity, opened.default_api, opened.no_images_reason
        self.reasoning_tokens = opened.reasoning_tokens
        self._pool.max_jobs = max(opened.slots, MIN_CONCURRENCY)
        self.slots = self._replicas * self._pool.max_jobs


def _placement(config: RunConfig) -> _Placement:
    """One replica per GPU; without GPUs, half of the CPUs are left to programs if any run."""
    cluster = capacity()
    if cluster.gpus:
        return _Placement(cluster.gpus, 1, 1)
    available = cluster.cpus
    if config.allow_code_execution and not config.generation_only:
        available -= config.workers or cluster.cpus // 2
    available = max(1, available)
    cpus = config.model_cpus or max(1, min(DEFAULT_CPUS, available, cluster.largest))
    return _Placement(max(1, available // cpus), cpus, 0)


class _ModelReplica(RemoteWorker[Request, Output]):
    def __init__(self, opener: Opener, config: RunConfig) -> None:
        self._model = opener(config)

    async def open(self) -> _ReplicaInfo:
        model = self._model
        await model.prepare(lambda: ())
        self.max_concurrency = model.slots
        return _ReplicaInfo(
            model.identity(), model.default_api, model.reasoning_tokens, model.no_images_reason, model.slots
        )

    async def process(self, item: Request) -> Output:
        return await self._model.generate(item)

    async def close(self) -> None:
        await self._model.close()
