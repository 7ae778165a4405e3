"""Any program with a window as an environment: started, looked at, judged by what it shows or how it exits."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

from proctor.agents.desktop import CALLABLES, WindowNotFoundError, get_current_frame
from proctor.agents.desktop.names import png
from proctor.agents.evaluator import Evaluator
from proctor.agents.judges import SURE, find_text, shows_picture
from proctor.agents.outcome import EnvironmentCrashedError
from proctor.agents.protocol import EvaluationResult, Task

APPEARING = 30.0  # seconds in which a program shows its window
LOOK_AGAIN = 0.02
JUDGED = "judged.png"


class Sight(Struct):
    """A frame, and what was seen in it."""

    frame: Any
    lines: list[str]
    fit: float | None
    success: bool
    over: bool


class WindowEvaluator(Evaluator):
    """Judges by `task.success_criteria`: text or image that means success, over_text that means the end, exit_code.

    `task.env_name` is the command that starts the program, `task.window_name` a part of its window's title. A subclass
    may look for something else by overriding `_look`.
    """

    _program: subprocess.Popen[bytes] | None = None
    _seen: Sight | None = None

    def command(self, task: Task) -> list[str]:
        return shlex.split(task.env_name)

    def _setup_environment(self, task: Task) -> None:
        self._end()
        self._seen = None
        command = self.command(task)
        if not command or shutil.which(command[0]) is None:
            raise EnvironmentCrashedError(f"there is no program {command[0] if command else ''!r}")
        with open(self.folder / "program.log" if self.folder else os.devnull, "ab") as log:
            self._program = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"SDL_AUDIODRIVER": "dummy", **os.environ},  # there is nobody to hear it
            )
        deadline = time.monotonic() + APPEARING
        while True:
            try:
                CALLABLES["window.make_active"](task.window_name)
                return
            except WindowNotFoundError:
                self._must_run()
                if time.monotonic() > deadline:
                    raise
            time.sleep(LOOK_AGAIN)

    def _check_env_continue(self, task: Task) -> bool:
        if "exit_code" in task.success_criteria:
            return self._running().poll() is None
        self._must_run()
        return True

    def _check_env_continue_timer(self, task: Task) -> bool:
        self._seen = self._look(task)
        return not (self._seen.success or self._seen.over)

    def _look(self, task: Task) -> Sight:
        """What the window shows now, and what it means."""
        wanted = task.success_criteria
        frame = get_current_frame(task.window_name)
        texts = {key: wanted[key] for key in ("text", "over_text") if wanted.get(key)}
        found, lines = find_text(frame, list(texts.values())) if texts else ([], [])
        shown = dict(zip(texts, found, strict=True))
        fit = shows_picture(frame, Path(wanted["image"])) if wanted.get("image") else None
        by_picture = fit is not None and fit >= SURE
        by_text, over = shown.get("text", False), shown.get("over_text", False)
        return Sight(frame, lines, fit, by_text or by_picture, over)

    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        wanted = task.success_criteria
        if "exit_code" in wanted:
            code = self._running().poll()
            metrics: dict[str, Any] = {"success": code == wanted["exit_code"], "exit_code": code}
        else:
            sight = (
                self._seen if self._seen is not None and (self._seen.success or self._seen.over) else self._look(task)
            )
            metrics = {
                "success": sight.success,
                "read": sight.lines,
                "fit": sight.fit,
                "frame": self._keep(sight.frame),
            }
        metrics["task_elapsed_time"] = task_elapsed_time
        self._end()
        return EvaluationResult(task_id=task.task_id, metrics=metrics, notes=note)

    def _keep(self, frame: Any) -> str:
        """The frame that was judged, beside the log of the episode."""
        if self.folder is None:
            return ""
        (self.folder / JUDGED).write_bytes(png(frame))
        return JUDGED

    def _running(self) -> subprocess.Popen[bytes]:
        if self._program is None:
            raise EnvironmentCrashedError("the program was not started")
        return self._program

    def _must_run(self) -> None:
        code = self._running().poll()
        if code is not None:
            raise EnvironmentCrashedError(f"the program ended with status {code}")

    def _end(self) -> None:
        if self._program is not None:
            self._program.kill()
            self._program.wait()
            self._program = None
