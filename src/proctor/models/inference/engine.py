"""The engine of a local model: requests that wait are put together and decoded on one thread of its own."""

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
    """A thread that takes requests as they come, and a turn at a time until all are answered."""

    def __init__(self, name: str, begin: Callable[[Request], Completion], most: int) -> None:
        self._name, self._begin = name, begin
        self._most = most  # completions at once
        self._arrived: deque[Job] = deque()  # shared by the threads, under the condition
        self._closed = False
        self._condition = threading.Condition()
        # A daemon: whoever forgets to close it can still end.
        self._thread = threading.Thread(target=self._work, name="local-model", daemon=True)

    @property
    def most(self) -> int:
        return self._most

    def submit(self, jobs: Iterable[Job]) -> None:
        with self._condition:
            if not self._closed:
                self._arrived.extend(jobs)
                self._condition.notify()
                return
        for job in jobs:
            job.fail(RuntimeError("the engine is closed"))

    def close(self) -> None:
        """Breaks off at the next token, and returns when the thread has ended."""
        with self._condition:
            self._closed = True
            self._condition.notify()
        self._thread.join()

    def _work(self) -> None:
        with torch.inference_mode():
            while self._take_arrived():
                if not self._turn():
                    self._halve()
        for job in (*self._unanswered(), *self._arrived):
            job.future.cancel()
        self._clear()

    def _turn(self) -> bool:
        """A token for everyone; false when memory ran out, which is for later: the traceback holds on to tensors."""
        try:
            self._advance()
        except Exception as error:
            if is_out_of_memory(error):
                return False
            self._fail_all(to_model_error(error))
        return True

    def _take_arrived(self) -> bool:
        """Waits until there is something to do; false when the engine is to end."""
        with self._condition:
            while not (self._arrived or self._busy or self._closed):
                self._condition.wait()
            if self._closed:
                return False
            arrived = list(self._arrived)
            self._arrived.clear()
        for job in arrived:
            try:
                job.completion = self._begin(job.request)
            except Exception as error:
                job.fail(error)
            else:
                self._accept(job)
        return True

    def _say_halved(self, size: int, half: int) -> None:
        logger.warning(
            "%s: a batch of %d does not fit into memory, going on with batches of %d", self._name, size, half
        )

    @property
    @abstractmethod
    def _busy(self) -> bool:
        """Whether anybody is not answered yet, of those who were accepted."""

    @abstractmethod
    def _accept(self, job: Job) -> None:
        """Lets a job wait for its turn."""

    @abstractmethod
    def _advance(self) -> None: ...

    @abstractmethod
    def _halve(self) -> None:
        """After memory ran out: with fewer at once, or without the one that does not even fit alone."""

    @abstractmethod
    def _fail_all(self, error: Exception) -> None:
        """Gives up whoever was being decoded; those who wait have their turn."""

    @abstractmethod
    def _unanswered(self) -> Iterable[Job]: ...

    @abstractmethod
    def _clear(self) -> None:
        """Lets go of everything."""


def to_model_error(error: Exception) -> Exception:
    """What becomes of a completion when the libraries fail."""
    if isinstance(error, ProctorError):
        return error
    failure = ModelError(f"decoding failed: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure


def too_large_error(job: Job) -> ModelError:
    tokens = len(job.completion.prompt) + len(job.completion.tokens)
    return ModelError(f"{tokens} tokens do not fit into memory, even alone")


class BatchEngine(EngineThread):
    """Rows of a decoder, which come and go between two tokens."""

    def __init__(self, name: str, decoder: Decoder, begin: Callable[[Request], Completion], batch_size: int) -> None:
        super().__init__(name, begin, batch_size)
        self._decoder = decoder
        self._waiting: deque[Job] = deque()
        self._batch: list[Job] = []  # in the order of the decoder's rows
        self._thread.start()

    @property
    def _busy(self) -> bool:
        return bool(self._waiting or self._batch)

    def _accept(self, job: Job) -> None:
        self._waiting.append(job)

    def _unanswered(self) -> Iterable[Job]:
        return (*self._batch, *self._waiting)

    def _clear(self) -> None:
        self._decoder.clear()

    def _advance(self) -> None:
        self._seat()
        if self._batch:
            self._step()

    def _seat(self) -> None:
        """Gives free slots in the batch to those who wait."""
        if not self._waiting or not self._decoder.open or len(self._batch) >= self._most:
            return
        self._waiting = deque(job for job in self._waiting if job.wanted)
        fresh = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._most - len(self._batch)))]
        if fresh:
            for job in fresh:
                job.begin()
            self._batch += fresh
            waiting = {job.completion.passage for job in self._waiting}
            self._decoder.admit([job.completion.passage for job in fresh], waiting)

    def _step(self) -> None:
        tokens = choose_tokens(self._decoder.logits, [job.completion for job in self._batch])
        going = []
        for row, (job, token) in enumerate(zip(self._batch, tokens, strict=True)):
            try:
                job.completion.add(token)
            except Exception as error:  # of its text alone: the others are none the worse for it
                job.fail(to_model_error(error))
            if job.completion.finish:
                job.succeed()
            elif job.wanted:
                going.append(row)
        self._batch = [self._batch[row] for row in going]
        self._decoder.advance(going, [tokens[row] for row in going])

    def _halve(self) -> None:
        """The half of the batch begins anew, the rest waits."""
        self._decoder.clear()
        release_memory()
        if len(self._batch) == 1:
            job = self._batch.pop()
            job.fail(too_large_error(job))
            return
        self._most = len(self._batch) // 2
        self._say_halved(len(self._batch), self._most)
        for job in reversed(self._batch):
            job.completion.restart()
            self._waiting.appendleft(job)
        self._batch = []

    def _fail_all(self, error: Exception) -> None:
        self._decoder.clear()
        for job in self._batch:
            job.fail(error)
        self._batch = []
