"""The exams of this family by short name."""

from __future__ import annotations

from proctor.task import Task

EXAMS: dict[str, type[Task]] = {}
