"""The right answers that a task file's rows hold under many names, for --check-references and `proctor check`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from proctor.code import reply
from proctor.code.forms import form_of

if TYPE_CHECKING:
    from proctor.code.task import Task

# Where data sets keep whole programs, and where they keep several of them.
_PROGRAMS = ("solution", "code", "correct_code", "reference_code", "reference_solution", "gold_solution", "gold_code")
_LISTS = ("solutions", "canonical_solutions", "correct_solutions")
_PARITY = "def parity(b1,b2,b3,b4):"  # the one problem without rows


class Answer(NamedTuple):
    text: str
    whole: bool
    """It is a generation as it is; else it completes the prompt."""


def find_answer(task: Task, doc: Any) -> Answer | None:
    if "get_solution" in inspect.signature(task.get_reference).parameters:
        return _whole(task.get_reference(doc, get_solution=True))  # type: ignore[call-arg]
    reference = task.get_reference(doc)
    if not task.requires_execution:
        first = reference[0] if isinstance(reference, list | tuple) and reference else reference
        return _whole(first) or _of_row(task, doc)
    if isinstance(reference, int | float) and not isinstance(reference, bool):
        return Answer(f"print({reference!r})", whole=True)  # a program is asked for that says a number
    return _of_row(task, doc)


def _of_parity() -> Answer:
    from proctor.code.tasks.parity import mended_function  # all tasks, in every worker that scores

    return Answer(mended_function(), whole=True)


def _whole(text: Any) -> Answer | None:
    return Answer(text, whole=True) if isinstance(text, str) else None


def _of_row(task: Task, doc: Any) -> Answer | None:
    begun = form_of(task.get_prompt(doc)).begun
    if not isinstance(doc, Mapping):
        return _of_parity() if _PARITY in begun else None
    given = str(doc.get("prompt") or "")
    body = doc.get("canonical_solution") or (doc.get("completion") if doc.get("is_success") else None)
    if isinstance(body, str):
        return _of_body(begun, given, body)
    function = reply.begun_function(begun)
    for program in _programs(doc):
        # Where the prompt begins a function, what does not define it goes on with it.
        completes = function is not None and not reply.defines_at_top(program, function[0])
        return _of_body(begun, given, program) if completes else Answer(program, whole=True)
    return None


def _of_body(begun: str, given: str, body: str) -> Answer:
    """The end of what the row has begun. The task's prompt may be stripped, or have an instruction around it."""
    if reply.begun_function(begun) is None and reply.begun_function(given) and reply.compiles(given + body):
        return Answer(given + body, whole=True)
    program, start = f"{given}{body}".lstrip(), begun.lstrip()
    rest = program[len(start) :] if start and program.startswith(start) else body.removeprefix(begun)
    ways = (way for way in (rest, body, f"\n{body}") if reply.compiles(begun + way))
    return Answer(next(ways, rest), whole=False)


def _programs(doc: Mapping[str, Any]) -> Iterator[str]:
    yield from (text for key in _PROGRAMS if isinstance(text := doc.get(key), str) and text.strip())
    for key in _LISTS:
        listed = _decoded(doc.get(key))
        for one in listed if isinstance(listed, list) else ():
            text = one.get("solution", one.get("code")) if isinstance(one, Mapping) else one
            if isinstance(text, str) and text.strip():
                yield text


def _decoded(listed: Any) -> Any:
    """APPS has its lists as JSON."""
    if not isinstance(listed, str) or not listed.strip():
        return listed
    try:
        return msgspec.json.decode(listed)
    except msgspec.DecodeError:
        return [listed]
