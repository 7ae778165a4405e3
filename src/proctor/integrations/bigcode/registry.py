"""The harness's `tasks`: our registry."""

from __future__ import annotations

from proctor.code.tasks import TASK_REGISTRY, get_task

__all__ = ["ALL_TASKS", "TASK_REGISTRY", "get_task"]

ALL_TASKS = sorted(TASK_REGISTRY)
