"""A request to a local model, and whoever waits for its output."""

from __future__ import annotations

import time
from concurrent.futures import Future

from proctor.core.types import Output, Usage
from proctor.models.base import Request
from proctor.models.inference.completion import Completion


class Job:
    """A waiter that is gone has cancelled the future, and nothing needs to be done any more."""

    completion: Completion
    started: float

    def __init__(self, request: Request) -> None:
        self.request = request
        self.future: Future[Output] = Future()

    @property
    def wanted(self) -> bool:
        return not self.future.done()

    def begin(self) -> None:
        self.started = time.perf_counter()

    def succeed(self) -> None:
        if self._hold():
            done = self.completion
            usage = Usage(len(done.prompt), len(done.tokens))
            self.future.set_result(Output(done.text, usage, done.finish, time.perf_counter() - self.started))

    def fail(self, error: Exception) -> None:
        if self._hold():
            self.future.set_exception(error)

    def _hold(self) -> bool:
        """Whether there is still somebody to tell; from here on a waiter cannot go."""
        return self.wanted and self.future.set_running_or_notify_cancel()
