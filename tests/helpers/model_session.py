"""Helpers that run requests on engines, and on whole models in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from proctor.core.config import build_config
from proctor.core.types import Output, Sample
from proctor.models import open_model
from proctor.models.base import Request
from proctor.models.client import ModelClient
from proctor.models.inference.completion import Completion
from proctor.models.inference.job import Job

if TYPE_CHECKING:
    from proctor.models.inference.engine import EngineThread


def decode_all(engine: EngineThread, requests: Sequence[Request]) -> list[Completion]:
    """Decode the requests, and close the engine."""
    jobs = [Job(each) for each in requests]
    engine.submit(jobs)
    for job in jobs:
        job.future.result(600)
    engine.close()
    return [job.completion for job in jobs]


class ModelSession:
    """A context with a model that is prepared for these samples."""

    def __init__(self, model: str, samples: Sequence[Sample] = (), inputs_known: bool = False, **options: Any) -> None:
        self.model: ModelClient = open_model(
            build_config({"task": "t", "model": model} | options), inputs_known=inputs_known
        )
        self.samples = samples
        self.runner = asyncio.Runner()

    def __enter__(self) -> ModelSession:
        self.runner.run(self.model.prepare(lambda: self.samples))
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.run(self.model.close())
        self.runner.close()

    def ask(self, *requests: Request) -> list[Output]:
        async def generate_all() -> list[Output]:
            return await asyncio.gather(*(self.model.generate(each) for each in requests))

        return self.runner.run(generate_all())
