"""Evaluators for any program with a window: scored by what it shows or by its exit code."""

from __future__ import annotations

import os
import shlex
import shutil
import time
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import Struct

from proctor.agents.desktop import WindowInfo, WindowNotFoundError
from proctor.agents.desktop.interface import make_active, window_titled
from proctor.agents.desktop.names import desktop, frame_of, png
from proctor.agents.outcome import EnvironmentCrashedError
from proctor.agents.types import EvaluationResult, Task
from proctor.agents.windows.evaluator import ProgramEvaluator
from proctor.agents.windows.screen_checks import SURE, find_text, shows_picture
from proctor.agents.windows.vision_judge import VisionJudge
from proctor.core.errors import ModelError, UsageError

APPEARING = 0.75  # of the set-up timeout, in which a program has to show its window
POLL_INTERVAL = 0.02
JUDGED = "judged.png"


class WindowView(Struct):
    """A frame, and what it shows."""

    frame: Any
    success: bool
    over: bool = False
    facts: dict[str, Any] = {}  # further metrics
    kept: str | None = None  # the file of the frame, if it is stored already


class WindowEvaluator(ProgramEvaluator):
    """Scores by `task.success_criteria`: text or image that means success, over_text that means the end, exit_code.

    `task.env_name` is the command that starts the program, `task.window_name` a part of its window's title. A subclass
    may look for something else by overriding `_look`: at `_frame`, as a window of the agent's may have that title, too.
    """

    _seen: WindowView | None = None

    def __init__(self, home: str = "", keep_home: bool = False) -> None:
        self.home, self.keep_home = home, keep_home

    def command(self, task: Task) -> list[str]:
        return shlex.split(task.env_name)

    def _setup_environment(self, task: Task) -> None:
        self._seen = None
        command = self.command(task)
        if not command or shutil.which(command[0]) is None:
            raise EnvironmentCrashedError(f"there is no program {command[0] if command else ''!r}")
        silent = {"SDL_AUDIODRIVER": os.environ.get("SDL_AUDIODRIVER", "dummy")}
        self._start(command, self.folder / "program.log" if self.folder else None, silent)
        deadline = time.monotonic() + APPEARING * self.setup_timeout
        while True:
            try:
                make_active(desktop(), task.window_name, self._is_ours)
                return
            except WindowNotFoundError:
                self._must_run()
                if time.monotonic() > deadline:
                    raise
            time.sleep(POLL_INTERVAL)

    def _check_env_continue(self, task: Task) -> bool:
        if "exit_code" in task.success_criteria or self._was_left():
            return self._running().poll() is None
        self._must_run()
        return True

    def _was_left(self) -> bool:
        """Whether the program has ended with status 0, which is a regular end."""
        return self._running().poll() == 0

    def _check_env_continue_timer(self, task: Task) -> bool:
        self._seen = self._look(task)
        return not self._seen_the_end()

    def _seen_the_end(self) -> bool:
        return self._seen is not None and (self._seen.success or self._seen.over)

    def _frame(self, task: Task) -> Any:
        """Captures the program's window as RGB."""
        return frame_of(window_titled(desktop(), task.window_name, self._is_ours))

    def _is_ours(self, window: WindowInfo) -> bool:
        """Whether the window belongs to the program or its children; True if unknown."""
        pid = desktop().window_pid(window)
        return pid is None or self._running().owns(pid)

    def _look(self, task: Task) -> WindowView:
        """Captures the window and checks the criteria."""
        criteria = task.success_criteria
        frame = self._frame(task)
        texts = {key: criteria[key] for key in ("text", "over_text") if criteria.get(key)}
        found, lines = find_text(frame, list(texts.values())) if texts else ([], [])
        shown = dict(zip(texts, found, strict=True))
        fit = shows_picture(frame, Path(criteria["image"])) if criteria.get("image") else None
        by_picture = fit is not None and fit >= SURE
        success = shown.get("text", False) or by_picture
        return WindowView(frame, success, shown.get("over_text", False), {"read": lines, "fit": fit})

    def _last_look(self, task: Task) -> WindowView:
        """The frame to score: that of the end if it was seen, else the current one."""
        return self._seen if self._seen is not None and self._seen_the_end() else self._look(task)

    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        criteria = task.success_criteria
        if "exit_code" in criteria or (self._was_left() and not self._seen_the_end()):
            code = self._running().poll()
            metrics: dict[str, Any] = {"success": code == criteria.get("exit_code"), "exit_code": code}
        else:
            view = self._last_look(task)
            metrics = {"success": view.success, **view.facts}
            metrics["frame"] = self._keep(view.frame) if view.kept is None else view.kept
        metrics["task_elapsed_time"] = task_elapsed_time
        self._end()
        return EvaluationResult(task_id=task.task_id, metrics=metrics, notes=note)

    def _keep(self, frame: Any, name: str = JUDGED) -> str:
        """Stores the scored frame beside the log of the episode."""
        if self.folder is None:
            return ""
        (self.folder / name).write_bytes(png(frame))
        return name


class QuestionEvaluator(WindowEvaluator):
    """Asks a vision model at the end, and every `judge_every` seconds before it.

    `task.success_criteria` has question and judge_model, and may have judge_base_url, judge_api, judge_every and
    over_text: the frame that shows over_text is the one in question.
    """

    _due = 0.0  # when it is asked next, before the end

    def _setup_environment(self, task: Task) -> None:
        super()._setup_environment(task)
        self._numbers = count(1)
        self._due = time.monotonic() + task.success_criteria.get("judge_every", 0)

    def _check_env_continue_timer(self, task: Task) -> bool:
        goes_on = super()._check_env_continue_timer(task)
        every, now = task.success_criteria.get("judge_every"), time.monotonic()
        if goes_on and every is not None and now >= self._due and self._seen is not None:
            self._due = now + every
            # Its own name: if time is up before the model answers, another frame is the last one.
            self._seen = self._ask(task, self._seen, f"judged-{next(self._numbers)}.png")
        return not self._seen_the_end()

    def _last_look(self, task: Task) -> WindowView:
        view = super()._last_look(task)
        return self._ask(task, view, JUDGED) if view.kept is None else view

    def _ask(self, task: Task, view: WindowView, name: str) -> WindowView:
        """Adds the verdict on a frame. Stores the frame first: the environment runs on."""
        criteria = task.success_criteria
        kept = self._keep(view.frame, name)
        try:
            judge = VisionJudge(
                criteria["judge_model"], criteria.get("judge_base_url", ""), criteria.get("judge_api", "chat")
            )
            verdict, reply = judge.judge(png(view.frame), criteria["question"])
        except (ModelError, UsageError) as error:
            raise ModelError(f"no verdict on {name}: {error}") from None
        facts = view.facts | {"score": verdict.score, "why": verdict.why, "reply": reply}
        return WindowView(view.frame, verdict.success, verdict.over, facts, kept)
