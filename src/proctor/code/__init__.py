"""The code family: benchmarks whose answers are programs, most of them judged by running them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.core.lazy import lazy_exports

if TYPE_CHECKING:
    from proctor.code.stopwords import STOP_WORDS
    from proctor.code.task import Task
    from proctor.code.tasks import TASK_REGISTRY, get_task

__all__ = ["STOP_WORDS", "TASK_REGISTRY", "Task", "get_task"]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "STOP_WORDS": "stopwords",
        "TASK_REGISTRY": "tasks",
        "Task": "task",
        "get_task": "tasks",
    },
)
