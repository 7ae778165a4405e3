"""The exams of this family by short name."""

from __future__ import annotations

from proctor.agents.recipe import Recipe, with_arguments
from proctor.agents.window_exam import WindowExam
from proctor.agents.world import WorldExam
from proctor.task import Task


class CatchExam(WorldExam):
    summary = "things fall, a paddle catches them"

    def world(self, in_words: bool) -> Recipe:
        return with_arguments("proctor.agents.catch", "Catch", **self.settings.env_kwargs)


EXAMS: dict[str, type[Task]] = {"catch": CatchExam, "window": WindowExam}
