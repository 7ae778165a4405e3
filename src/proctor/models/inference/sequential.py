"""One completion at a time, by the library's own `generate`: for models whose rows cannot be put together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from transformers import GenerationConfig

from proctor.core.errors import ModelError
from proctor.models.base import Request
from proctor.models.inference.completion import Completion
from proctor.models.inference.decoder import as_model_inputs
from proctor.models.inference.engine import EngineThread, too_large_error
from proctor.models.inference.job import Job
from proctor.models.inference.memory import release_memory
from proctor.models.inference.prompt import TokenizedPrompt
from proctor.models.inference.sampler import choose_tokens


def generate(
    model: Any, passage: TokenizedPrompt, most: int, pick: Callable[[Tensor], int], enough: Callable[[], bool]
) -> None:
    """Has the model go on with a passage, by tokens that are chosen by its logits, until it is enough."""
    tokens = torch.tensor([passage.tokens], device=model.device)

    def leave_one(_: Tensor, logits: Tensor) -> Tensor:
        left = torch.full_like(logits, -torch.inf)
        left[0, pick(logits)] = 0.0
        return left

    def stop(tokens: Tensor, _: Any, **__: Any) -> Tensor:
        return torch.tensor([enough()], device=tokens.device)

    own = model.generation_config
    # What the model comes with would have a say in which tokens are likely, and when it is enough.
    model.generation_config = GenerationConfig(bos_token_id=own.bos_token_id, pad_token_id=own.pad_token_id)
    try:
        model.generate(
            input_ids=tokens,
            attention_mask=torch.ones_like(tokens),
            **(as_model_inputs(passage.pictures, model) if passage.pictures is not None else {}),
            generation_config=GenerationConfig(do_sample=False, max_new_tokens=most),
            logits_processor=[leave_one],
            stopping_criteria=[stop],
        )
    finally:
        model.generation_config = own


class SequentialWorker(EngineThread):
    def __init__(self, name: str, model: Any, begin: Callable[[Request], Completion]) -> None:
        super().__init__(name, begin, 1)
        self._model = model
        self._waiting: deque[Job] = deque()  # the first of them is the one that is under way
        self._thread.start()

    @property
    def _busy(self) -> bool:
        return bool(self._waiting)

    def _accept(self, job: Job) -> None:
        self._waiting.append(job)

    def _unanswered(self) -> Iterable[Job]:
        return self._waiting

    def _advance(self) -> None:
        job = self._waiting[0]
        if job.wanted:
            self._complete(job)
        if not self._closed:
            self._waiting.popleft()

    def _complete(self, job: Job) -> None:
        job.begin()
        completion = job.completion

        def pick(logits: Tensor) -> int:
            (token,) = choose_tokens(logits, [completion])
            completion.add(token)
            return token

        def enough() -> bool:
            return bool(completion.finish) or not job.wanted or self._closed

        generate(self._model, completion.passage, completion.room, pick, enough)
        if completion.finish:
            job.succeed()
        elif job.wanted and not self._closed:
            job.fail(ModelError("the model's own generate stopped before the answer had come to its end"))

    def _halve(self) -> None:
        """There is no half of one."""
        release_memory()
        job = self._waiting.popleft()
        job.fail(too_large_error(job))

    def _fail_all(self, error: Exception) -> None:
        self._waiting.popleft().fail(error)

    def _clear(self) -> None:
        self._waiting.clear()
