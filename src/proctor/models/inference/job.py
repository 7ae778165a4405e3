"""A request to a local model, with the future of its output."""

from __future__ import annotations

import time
from concurrent.futures import Future

from proctor.core.types import Output, Usage
from proctor.models.base import Request
from proctor.models.inference.completion import Completion


class Job:
    """A caller that no longer waits cancels the future; the engine then drops the job."""

    completion: Completion
    started: float

    def __init__(self, request: Request) -> None:
        self.request = request
        self.future: Future[Output] = Future()

    @property
    def is_pending(self) -> bool:
        return not self.future.done()

    def start(self) -> None:
        self.started = time.perf_counter()

    def succeed(self) -> None:
        if self._claim():
            completion = self.completion
            usage = Usage(len(completion.prompt_tokens), len(completion.tokens))
            seconds = time.perf_counter() - self.started
            self.future.set_result(Output(completion.text, usage, completion.finish, seconds))

    def fail(self, error: Exception) -> None:
        if self._claim():
            self.future.set_exception(error)

    def _claim(self) -> bool:
        """Make the future uncancellable; return whether the caller still waits."""
        return self.is_pending and self.future.set_running_or_notify_cancel()
