"""An engine that decodes one completion at a time with `generate` of transformers, for models
whose rows cannot share a batch."""

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
from proctor.models.inference.engine import EngineThread, make_too_large_error
from proctor.models.inference.job import Job
from proctor.models.inference.memory import release_memory
from proctor.models.inference.prompt import TokenizedPrompt
from proctor.models.inference.sampler import choose_tokens


def generate(
    model: Any,
    prompt: TokenizedPrompt,
    max_new_tokens: int,
    pick: Callable[[Tensor], int],
    is_done: Callable[[], bool],
) -> None:
    """Continue the prompt; `pick` chooses each token from the logits, until `is_done`."""
    tokens = torch.tensor([prompt.tokens], device=model.device)

    def mask_all_but_picked(_: Tensor, logits: Tensor) -> Tensor:
        masked = torch.full_like(logits, -torch.inf)
        masked[0, pick(logits)] = 0.0
        return masked

    def stop(tokens: Tensor, _: Any, **__: Any) -> Tensor:
        return torch.tensor([is_done()], device=tokens.device)

    original = model.generation_config
    # The model's own generation settings would change the logits and the stopping criteria.
    model.generation_config = GenerationConfig(bos_token_id=original.bos_token_id, pad_token_id=original.pad_token_id)
    try:
        model.generate(
            input_ids=tokens,
            attention_mask=torch.ones_like(tokens),
            **(as_model_inputs(prompt.images, model) if prompt.images is not None else {}),
            generation_config=GenerationConfig(do_sample=False, max_new_tokens=max_new_tokens),
            logits_processor=[mask_all_but_picked],
            stopping_criteria=[stop],
        )
    finally:
        model.generation_config = original


class SequentialWorker(EngineThread):
    def __init__(self, name: str, model: Any, start: Callable[[Request], Completion]) -> None:
        super().__init__(name, start, 1)
        self._model = model
        self._waiting: deque[Job] = deque()  # the first one is being decoded
        self._thread.start()

    @property
    def _busy(self) -> bool:
        return bool(self._waiting)

    def _enqueue(self, job: Job) -> None:
        self._waiting.append(job)

    def _pending_jobs(self) -> Iterable[Job]:
        return self._waiting

    def _advance(self) -> None:
        job = self._waiting[0]
        if job.is_pending:
            self._decode(job)
        if not self._closed:
            self._waiting.popleft()

    def _decode(self, job: Job) -> None:
        job.start()
        completion = job.completion

        def pick(logits: Tensor) -> int:
            (token,) = choose_tokens(logits, [completion])
            completion.add(token)
            return token

        def is_done() -> bool:
            return bool(completion.finish) or not job.is_pending or self._closed

        generate(self._model, completion.prompt, completion.max_tokens, pick, is_done)
        if completion.finish:
            job.succeed()
        elif job.is_pending and not self._closed:
            job.fail(ModelError("the model's generate() stopped before the completion ended"))

    def _halve_batch(self) -> None:
        """Fail the job: a batch of one cannot be halved."""
        release_memory()
        job = self._waiting.popleft()
        job.fail(make_too_large_error(job))

    def _fail_all(self, error: Exception) -> None:
        self._waiting.popleft().fail(error)

    def _clear(self) -> None:
        self._waiting.clear()
