"""`agents/window`: any program with a window, as an exam."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from proctor.agents.exam import EvaluatorExam, Seconds
from proctor.agents.hosting.recipe import Recipe
from proctor.errors import UsageError


class WindowSettings(Struct, frozen=True):
    clock: Literal["realtime"] = "realtime"  # the program does not wait for the agent
    command: str = ""  # starts the program
    window: str = ""  # a part of its window's title
    description: str = ""  # what the agent is to do
    text: str = ""  # success: this is to be read
    image: str = ""  # success: this picture, a file, is to be seen
    exit_code: int | None = None  # success: the program ends with it
    over_text: str = ""  # the end, but no success: this is to be read
    timeout: Seconds = 60.0
    look_every: Seconds = 1.0
    attempts: Annotated[int, Meta(ge=1, le=100)] = 2


class WindowExam(EvaluatorExam):
    """Judged by what the window shows, or by how the program exits."""

    Settings = WindowSettings
    summary = "any program with a window: --command, --window, and what success looks like"

    evaluator = Recipe("proctor.agents.window", "WindowEvaluator")

    def task_fields(self) -> dict[str, Any]:
        settings = self.settings
        if not settings.command or not settings.window:
            raise UsageError(f"{self.name}: which program? Give --command and --window.")
        if not (settings.text or settings.image or settings.exit_code is not None):
            raise UsageError(f"{self.name}: what is success? Set text, image or exit_code with --set.")
        wanted = {"text": settings.text, "image": settings.image, "over_text": settings.over_text}
        criteria: dict[str, Any] = {key: value for key, value in wanted.items() if value}
        if settings.exit_code is not None:
            criteria["exit_code"] = settings.exit_code
        return {
            "env_name": settings.command,
            "window_name": settings.window,
            "task_description": settings.description,
            "timeout": settings.timeout,
            "check_env_interval_seconds": settings.look_every,
            "success_criteria": criteria,
        }
