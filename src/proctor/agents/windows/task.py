"""`agents/window`: a task in any program with a window."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from proctor.agents.evaluator_task import EvaluatorTask
from proctor.agents.runtime.hosting.recipe import Recipe, with_arguments
from proctor.agents.runtime.limits import EpisodeLimits, Seconds
from proctor.agents.windows.requirements import require_modules
from proctor.core.config import RunConfig, user_path
from proctor.core.errors import UsageError

SUCCESS_SETTINGS = ("text", "image", "exit_code")  # success without a model
JUDGE_SETTINGS = ("judge_model", "judge_base_url", "judge_every")  # of no use without a question


class WindowSettings(EpisodeLimits, frozen=True):
    command: str = ""  # starts the program
    window: str = ""  # a part of its window's title
    description: str = ""  # what the agent is to do
    text: str = ""  # success: this is to be read
    image: str = ""  # success: this picture, a file, is to be seen
    exit_code: int | None = None  # success: the program ends with it
    over_text: str = ""  # the end, but no success: this is to be read
    question: str = ""  # success: a vision model says so when it is asked this
    judge_model: str = ""  # that model: openai/NAME
    judge_base_url: str = ""  # of its server, if that is not OpenAI's
    judge_api: Literal["chat", "responses"] = "chat"
    judge_every: Seconds | None = None  # seconds after which it is asked before the end, too, and may see the end
    home: str = ""  # a folder: the program's home folder is a copy of it, made for each episode; none: it is empty
    keep_home: bool = False  # what the program leaves in its home folder is kept beside the log
    look_every: Seconds = 1.0


class WindowTask(EvaluatorTask):
    """Judged by what the window shows, or by how the program exits."""

    Settings = WindowSettings
    needs_window = True
    summary = "any program with a window: --command, --window, and what success looks like"

    def evaluator_recipe(self) -> Recipe:
        name = "QuestionEvaluator" if self.settings.question else "WindowEvaluator"
        home = str(self._home()) if self.settings.home else ""
        return with_arguments("proctor.agents.windows.window", name, home=home, keep_home=self.settings.keep_home)

    def _home(self) -> Path:
        folder = user_path(self.settings.home).resolve()
        if not folder.is_dir():
            raise UsageError(f"{self.name}: home: there is no folder {self.settings.home}.")
        return folder

    async def open(self, config: RunConfig) -> None:
        await super().open(config)
        self.evaluator_recipe()  # raises if there is no such home folder
        criteria = self.task_fields()["success_criteria"]
        if "text" in criteria or "over_text" in criteria:
            require_modules("reading text from frames", "rapidocr")
        if "image" in criteria:
            require_modules("finding a picture in a frame", "cv2")
        if "question" in criteria:
            from proctor.agents.windows.vision_judge import VisionJudge

            # Fails before the first episode if the judge cannot be reached.
            await VisionJudge(
                criteria["judge_model"], criteria.get("judge_base_url", ""), criteria["judge_api"]
            ).reach()

    def task_fields(self) -> dict[str, Any]:
        settings = self.settings
        if not settings.command or not settings.window:
            raise UsageError(f"{self.name}: which program? Give --command and --window.")
        return {
            "env_name": settings.command,
            "window_name": settings.window,
            "task_description": settings.description,
            "timeout": settings.timeout,
            "check_env_interval_seconds": min(settings.look_every, settings.judge_every or settings.look_every),
            "success_criteria": self._criteria(),
        }

    def _criteria(self) -> dict[str, Any]:
        keys = (*SUCCESS_SETTINGS, "over_text", "question", *JUDGE_SETTINGS)
        given = {key: value for key in keys if (value := getattr(self.settings, key)) not in ("", None)}
        seen = [key for key in SUCCESS_SETTINGS if key in given]
        if "question" in given:
            if seen:
                raise UsageError(
                    f"{self.name}: two judges may differ: set question or {seen[0]}. "
                    "With question, over_text may say when it is over."
                )
            if "judge_model" not in given:
                raise UsageError(f"{self.name}: who answers the question? Set judge_model=openai/NAME.")
            return given | {"judge_api": self.settings.judge_api}
        if not seen:
            raise UsageError(f"{self.name}: what is success? Set text, image, exit_code or question with --set.")
        for key in JUDGE_SETTINGS:
            if key in given:
                raise UsageError(f"{self.name}: {key} is for a question: set question, too.")
        return given
