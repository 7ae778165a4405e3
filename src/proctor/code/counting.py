"""That a task's `process_results` is at work, for what has to behave in another way meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cached_property
from tempfile import TemporaryDirectory


class Counting:
    """One call of it."""

    def __init__(self, stack: ExitStack, *, final: bool, programs: bool, unsafe: bool) -> None:
        self.final = final  # over all problems; the other calls are about some of them, and there are many
        self.programs = programs  # the answers are programs to be run
        self.unsafe = unsafe  # the user does not mind where they run
        self._stack = stack

    @cached_property
    def folder(self) -> str:
        """For what the call leaves behind: several run side by side."""
        return self._stack.enter_context(TemporaryDirectory(prefix="proctor-"))


_CURRENT: ContextVar[Counting | None] = ContextVar("counting", default=None)


def current() -> Counting | None:
    return _CURRENT.get()


@contextmanager
def counting(*, final: bool, programs: bool, unsafe: bool) -> Iterator[None]:
    with ExitStack() as stack:
        token = _CURRENT.set(Counting(stack, final=final, programs=programs, unsafe=unsafe))
        try:
            yield
        finally:
            _CURRENT.reset(token)
