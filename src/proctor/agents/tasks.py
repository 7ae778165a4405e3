"""The tasks of this family by short name. Importing them needs no extra; running them may."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from proctor.agents.envs.task import EnvTask
from proctor.agents.evaluator_task import EvaluatorTask
from proctor.agents.runtime.hosting.recipe import Recipe, with_arguments
from proctor.agents.runtime.limits import EpisodeLimits, Seconds
from proctor.agents.windows.requirements import require_modules
from proctor.agents.windows.task import WindowTask
from proctor.core.config import RunConfig
from proctor.core.task import Task


class CatchTask(EnvTask):
    summary = "things fall, a paddle catches them"

    def env_recipe(self, in_words: bool) -> Recipe:
        return with_arguments("proctor.agents.envs.catch", "Catch", **self.settings.env_kwargs)


class HexagonStepsTask(EnvTask):
    summary = "walls close in from six sides: the same game as hexagon, in steps"

    def env_recipe(self, in_words: bool) -> Recipe:
        return with_arguments("proctor.agents.games.hexagon.env", "Hexagon", **self.settings.env_kwargs)


class HexagonSettings(EpisodeLimits, frozen=True):
    level: Annotated[int, Meta(ge=1, le=5)] = 1
    fps: Annotated[int, Meta(ge=10, le=240)] = 60  # frames that the game shows in a second
    survive: Seconds = 20.0  # seconds that are a success


class HexagonTask(EvaluatorTask):
    """Played in a real window."""

    Settings = HexagonSettings
    needs_window = True
    summary = "walls close in from six sides, in a real window"

    async def open(self, config: RunConfig) -> None:
        require_modules("this game", "pygame")
        await super().open(config)

    def evaluator_recipe(self) -> Recipe:
        options = {"level": self.settings.level, "fps": self.settings.fps}
        return with_arguments("proctor.agents.games.hexagon.evaluator", "HexagonEvaluator", **options)

    def task_fields(self) -> dict[str, Any]:
        return {
            "env_name": "hexagon",
            "window_name": "Proctor Hexagon",
            "task_description": (
                "Walls close in from six sides. Keep the small arrow in the middle out of their way: "
                "LEFT and RIGHT move it around the centre."
            ),
            "timeout": self.settings.timeout,
            "success_criteria": {"time_survived": self.settings.survive},
        }


EXAMS: dict[str, type[Task]] = {
    "catch": CatchTask,
    "hexagon": HexagonTask,
    "hexagon_steps": HexagonStepsTask,
    "window": WindowTask,
}
