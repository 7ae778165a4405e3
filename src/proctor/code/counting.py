"""That a task's own code is at work on what a model wrote, for what has to behave in another way meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cached_property
from tempfile import TemporaryDirectory

from proctor.errors import UsageError

RESULTS = "process_results"


class UncontainedError(UsageError):
    """A task wants to run what a model wrote outside the sandbox."""


class Counting:
    """One call of it: of `process_results`, or of what goes before it."""

    def __init__(self, stack: ExitStack, where: str, *, final: bool, programs: bool, unsafe: bool) -> None:
        self.where = where  # the method that was called
        self.final = final  # over all problems; the other calls are about some of them, and there are many
        self.programs = programs  # the answers are programs to be run
        self.unsafe = unsafe  # the user does not mind where they run
        self.refusal: UncontainedError | None = None
        self._stack = stack

    @property
    def of_results(self) -> bool:
        """Whether programs may be run in it."""
        return self.where == RESULTS

    @cached_property
    def folder(self) -> str:
        """For what the call leaves behind: several run side by side."""
        return self._stack.enter_context(TemporaryDirectory(prefix="proctor-"))

    def refuse(self, why: str) -> None:
        """Raises, and the whole call will: the task's code, or a thread of its own, may let the error vanish."""
        self.refusal = UncontainedError(why)
        raise self.refusal


# Without a default: a thread that the run did not start does not know what it works for.
_CURRENT: ContextVar[Counting | None] = ContextVar("counting")
_RUNNING: set[Counting] = set()


def current() -> Counting | None:
    """The call that this thread works for, as far as it knows."""
    return _CURRENT.get(None)


def suspected() -> Counting | None:
    """The call that this thread works for; where it does not know, the strictest of all that are under way."""
    try:
        return _CURRENT.get()
    except LookupError:
        return min(list(_RUNNING), key=lambda call: (call.unsafe, not call.programs), default=None)


def stand_outside() -> None:
    """Lets this thread, and what it starts with its context, know that it works for no call."""
    _CURRENT.set(None)


@contextmanager
def counting(where: str, *, final: bool, programs: bool, unsafe: bool) -> Iterator[None]:
    with ExitStack() as stack:
        call = Counting(stack, where, final=final, programs=programs, unsafe=unsafe)
        token = _CURRENT.set(call)
        _RUNNING.add(call)
        try:
            yield
        except Exception as error:
            if call.refusal is not None:  # whatever became of it on its way
                raise call.refusal from error
            raise
        finally:
            _RUNNING.discard(call)
            _CURRENT.reset(token)
        if call.refusal is not None:
            raise call.refusal
