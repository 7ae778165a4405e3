"""The exams of this family by short name."""

from __future__ import annotations

from proctor.agents.window_exam import WindowExam
from proctor.task import Task

EXAMS: dict[str, type[Task]] = {"window": WindowExam}
