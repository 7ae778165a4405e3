"""The code family: benchmarks whose answers are programs, most of them judged by running them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proctor.code.stopwords import STOP_WORDS
    from proctor.code.task import Task
    from proctor.code.tasks import TASK_REGISTRY, get_task

__all__ = ["STOP_WORDS", "TASK_REGISTRY", "Task", "get_task"]

_HOMES = {
    "STOP_WORDS": "proctor.code.stopwords",
    "TASK_REGISTRY": "proctor.code.tasks",
    "Task": "proctor.code.task",
    "get_task": "proctor.code.tasks",
}


def __getattr__(name: str) -> Any:
    # Loaded on first use: the tasks themselves import from here.
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
