"""What a task file may not do while it looks at what a model wrote: run it here, outside the sandbox."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from functools import wraps
from types import FrameType
from typing import Any

from proctor.code import counting

_INSTEAD = "let it use proctor.code.execution.run_programs or a metric"


def refuse_while_judging(
    what: Any, *, only_of_programs: bool = False, verb: str = "starts", instead: str = _INSTEAD
) -> None:
    """Raises if this thread judges, or could: a thread that does not know does."""
    call = counting.suspected()
    if call is None or call.unsafe or (only_of_programs and not call.programs):
        return
    shown = what if isinstance(what, str) else " ".join(map(str, what))
    known = counting.current() is call
    thread = "" if known else " in a thread that neither threading nor concurrent.futures began in it"
    call.refuse(
        f"{call.where} {verb} {shown}{thread}, which would run what a model wrote outside the sandbox: {instead}; "
        "or say --unsafe."
    )


def guarded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, refused while the task judges."""

    @wraps(function)
    def guard(*args: Any, **kwargs: Any) -> Any:
        refuse_while_judging(name)
        return function(*args, **kwargs)

    return guard


# `exec` and `eval` look at the names of whoever calls them, which is one frame up from here.


def execute(source: Any, globals: Any = None, locals: Any = None, /, **kwargs: Any) -> None:  # noqa: A002
    """`exec` of a task file."""
    refuse_while_judging("exec", verb="calls")
    builtins.exec(source, *_namespaces(sys._getframe(1), globals, locals), **kwargs)


def evaluate(source: Any, globals: Any = None, locals: Any = None, /) -> Any:  # noqa: A002
    """`eval` of a task file."""
    refuse_while_judging("eval", verb="calls", instead=f"{_INSTEAD}, or ast.literal_eval for data")
    return builtins.eval(source, *_namespaces(sys._getframe(1), globals, locals))


def _namespaces(caller: FrameType, given: Any, local: Any) -> tuple[Any, Any]:
    if given is None:
        return caller.f_globals, caller.f_locals if local is None else local
    if isinstance(given, dict):
        given.setdefault("__builtins__", caller.f_builtins)
    return given, given if local is None else local
