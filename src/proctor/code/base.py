"""`Task` where guides look for it: `from proctor.code.base import Task`."""

from proctor.code.task import Task

__all__ = ["Task"]
