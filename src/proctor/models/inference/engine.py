"""The engine of a local model: a thread that batches waiting requests and decodes them."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable

import torch

from proctor.core.errors import ModelError, ProctorError
from proctor.models.base import Request
from proctor.models.inference.completion import Completion
from proctor.models.inference.decoder import Decoder
from proctor.models.inference.job import Job
from proctor.models.inference.memory import is_out_of_memory, release_memory
from proctor.models.inference.sampler import choose_tokens

logger = logging.getLogger(__name__)


class EngineThread(ABC):
    """Takes jobs as they arrive, and advances all of them step by step."""

    def __init__(self, name: str, start: Callable[[Request], Completion], max_batch_size: int) -> None:
        self._name, self._start_completion = name, start
        self._max_batch_size = max_batch_size
        self._arrived: deque[Job] = deque()  # shared by the threads, under the condition
        self._closed = False
        self._condition = threading.Condition()
        # A daemon thread, so that an engine that was not closed does not keep the process alive.
        self._thread = threading.Thread(target=self._work, name="local-model", daemon=True)

    @property
    def max_batch_size(self) -> int:
        return self._max_batch_size

    def submit(self, jobs: Iterable[Job]) -> None:
        with self._condition:
            if not self._closed:
                self._arrived.extend(jobs)
                self._condition.notify()
                return
        for job in jobs:
            job.fail(RuntimeError("the engine is closed"))

    def close(self) -> None:
        """Stop after the current step, and join the thread."""
        with self._condition:
            self._closed = True
            self._condition.notify()
        self._thread.join()

    def _work(self) -> None:
        with torch.inference_mode():
            while self._take_arrived():
                if not self._run_step():
                    self._halve_batch()
        for job in (*self._pending_jobs(), *self._arrived):
            job.future.cancel()
        self._clear()

    def _run_step(self) -> bool:
        """Decode one token for every job; false when memory ran out.

        The caller handles that case, because a traceback keeps tensors alive.
        """
        try:
            self._advance()
        except Exception as error:
            if is_out_of_memory(error):
                return False
            self._fail_all(to_model_error(error))
        return True

    def _take_arrived(self) -> bool:
        """Wait for work and start the arrived jobs; false when the engine is closed."""
        with self._condition:
            while not (self._arrived or self._busy or self._closed):
                self._condition.wait()
            if self._closed:
                return False
            arrived = list(self._arrived)
            self._arrived.clear()
        for job in arrived:
            try:
                job.completion = self._start_completion(job.request)
            except Exception as error:
                job.fail(error)
            else:
                self._enqueue(job)
        return True

    def _log_halved(self, size: int, half: int) -> None:
        logger.warning(
            "%s: a batch of %d does not fit into memory, continuing with batches of %d",
            self._name,
            size,
            half,
        )

    @property
    @abstractmethod
    def _busy(self) -> bool:
        """Whether any enqueued job is unanswered."""

    @abstractmethod
    def _enqueue(self, job: Job) -> None: ...

    @abstractmethod
    def _advance(self) -> None:
        """Decode one token for every job."""

    @abstractmethod
    def _halve_batch(self) -> None:
        """After memory ran out: halve the batch, or fail a job that does not fit alone."""

    @abstractmethod
    def _fail_all(self, error: Exception) -> None:
        """Fail the jobs of the batch; waiting jobs are decoded later."""

    @abstractmethod
    def _pending_jobs(self) -> Iterable[Job]: ...

    @abstractmethod
    def _clear(self) -> None:
        """Release all tensors."""


def to_model_error(error: Exception) -> Exception:
    """The error of a completion whose decoding raised this exception."""
    if isinstance(error, ProctorError):
        return error
    failure = ModelError(f"decoding failed: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure


def make_too_large_error(job: Job) -> ModelError:
    tokens = len(job.completion.prompt_tokens) + len(job.completion.tokens)
    return ModelError(f"{tokens} tokens do not fit into memory, even alone")


class BatchEngine(EngineThread):
    """Decodes a batch that is reassembled for every token as rows join and leave."""

    def __init__(
        self,
        name: str,
        decoder: Decoder,
        start: Callable[[Request], Completion],
        batch_size: int,
    ) -> None:
        super().__init__(name, start, batch_size)
        self._decoder = decoder
        self._waiting: deque[Job] = deque()
        self._batch: list[Job] = []  # in the order of the decoder's rows
        self._thread.start()

    @property
    def _busy(self) -> bool:
        return bool(self._waiting or self._batch)

    def _enqueue(self, job: Job) -> None:
        self._waiting.append(job)

    def _pending_jobs(self) -> Iterable[Job]:
        return (*self._batch, *self._waiting)

    def _clear(self) -> None:
        self._decoder.clear()

    def _advance(self) -> None:
        self._fill_batch()
        if self._batch:
            self._step()

    def _fill_batch(self) -> None:
        free = self._max_batch_size - len(self._batch)
        if not self._waiting or not self._decoder.accepts_rows or free <= 0:
            return
        self._waiting = deque(job for job in self._waiting if job.is_pending)
        joining = [self._waiting.popleft() for _ in range(min(len(self._waiting), free))]
        if joining:
            for job in joining:
                job.start()
            self._batch += joining
            waiting = {job.completion.prompt for job in self._waiting}
            self._decoder.admit([job.completion.prompt for job in joining], waiting)

    def _step(self) -> None:
        tokens = choose_tokens(self._decoder.logits, [job.completion for job in self._batch])
        kept = []
        for row, (job, token) in enumerate(zip(self._batch, tokens, strict=True)):
            try:
                job.completion.add(token)
            except Exception as error:  # concerns the text of this completion only
                job.fail(to_model_error(error))
            if job.completion.finish:
                job.succeed()
            elif job.is_pending:
                kept.append(row)
        self._batch = [self._batch[row] for row in kept]
        self._decoder.advance(kept, [tokens[row] for row in kept])

    def _halve_batch(self) -> None:
        """Restart the whole batch, half of it at a time."""
        self._decoder.clear()
        release_memory()
        if len(self._batch) == 1:
            job = self._batch.pop()
            job.fail(make_too_large_error(job))
            return
        self._max_batch_size = len(self._batch) // 2
        self._log_halved(len(self._batch), self._max_batch_size)
        for job in reversed(self._batch):
            job.completion.restart()
            self._waiting.appendleft(job)
        self._batch = []

    def _fail_all(self, error: Exception) -> None:
        self._decoder.clear()
        for job in self._batch:
            job.fail(error)
        self._batch = []
