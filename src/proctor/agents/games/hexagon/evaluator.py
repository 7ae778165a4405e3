"""The evaluator of hexagon: starts the game and scores by the state that the game reports."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from proctor.agents.desktop import CALLABLES, VK, WindowNotFoundError
from proctor.agents.games.hexagon.moves import read_moves
from proctor.agents.games.hexagon.options import TITLE
from proctor.agents.games.hexagon.rules import TICKS, Phase
from proctor.agents.games.hexagon.state import GameState, read_state
from proctor.agents.outcome import EnvironmentCrashedError
from proctor.agents.runtime.locking import env_lock
from proctor.agents.runtime.recording import recording
from proctor.agents.types import EvaluationResult, Task
from proctor.agents.windows.evaluator import ProgramEvaluator

SURVIVE = 20.0  # seconds, unless the task says otherwise
LOOK_AGAIN = 0.005  # seconds between two looks at a game that is about to do something
TICK = 1 / TICKS  # the first one comes as soon as the game is started, and not after its time
DYING = 3.0  # seconds between the end of a window and that of its program, on a busy machine
STARTING = 0.75  # of the time for a setup, in which a game is there; then it is us who say what is wrong


class HexagonEvaluator(ProgramEvaluator):
    """Scores how long the agent survives among walls that close in on it."""

    def __init__(self, level: int = 1, size: str = "640x480", fps: int = 60) -> None:
        self._options = ["--level", str(level), "--size", size, "--fps", str(fps), "--rounds", "1", "--locked"]
        self._level = level
        self._state_fd = os.memfd_create("hexagon-state")  # gone with the last process that has it
        self._moves = os.memfd_create("hexagon-moves")

    def _setup_environment(self, task: Task) -> None:
        """A new game that waits for its start. It starts at the first check: then the agent has begun."""
        self._end()
        for file in (self._state_fd, self._moves):
            os.ftruncate(file, 0)
        files = [f"--state=/proc/self/fd/{self._state_fd}", f"--moves=/proc/self/fd/{self._moves}"]
        told = [f"--title={_title(task)}", f"--seed={task.seed or 0}", *files]
        program = [sys.executable, "-m", "proctor.agents.games.hexagon", *self._options, *told]
        self._start(program, pass_fds=(self._state_fd, self._moves))
        seconds = STARTING * self.setup_timeout
        deadline = time.monotonic() + seconds
        while not self._is_ready(task):
            if time.monotonic() >= deadline:
                raise EnvironmentCrashedError(f"the game was not ready after {seconds:g} s")
            time.sleep(LOOK_AGAIN)

    def _is_ready(self, task: Task) -> bool:
        """Whether it has drawn its first frame and has the keyboard."""
        if self._state() is None:
            return False
        with suppress(WindowNotFoundError):
            CALLABLES["window.make_active"](_title(task))
            return bool(CALLABLES["window.is_active"](_title(task)))
        return False

    def _check_env_continue(self, task: Task) -> bool:
        state = self._living_state(task)
        # If that key should be lost, the next check finds the game waiting again.
        if state.phase is Phase.READY and not self._running().is_paused:
            with self._needing_window(), env_lock:
                CALLABLES["window.make_active"](_title(task))
                CALLABLES["keyboard.press"](VK.SPACE)
                CALLABLES["keyboard.release"](VK.SPACE)
        return state.phase is not Phase.OVER

    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        state, survived = self._living_state(task), task_elapsed_time
        self._log_moves(task, state)
        # The agent has stopped before; a game that was not over went on without it, which is not to the agent's credit.
        if state.survived <= task_elapsed_time + TICK * (state.phase is Phase.OVER):
            survived = state.survived
        return EvaluationResult(
            task_id=task.task_id,
            metrics={
                "success": survived > task.success_criteria.get("time_survived", SURVIVE),
                "time_survived": survived,
                "task_elapsed_time": task_elapsed_time,
                "frames": state.frame,
                "late_frames": state.late,
            },
            notes=note,
        )

    def _log_moves(self, task: Task, state: GameState) -> None:
        """Those of which the state has come: by them the round can be played again."""
        made = read_moves(Path(f"/proc/self/fd/{self._moves}"))
        moves = [move for move in made if move[0] < state.tick]
        about = {"seed": task.seed or 0, "level": self._level, "ticks": state.tick, "cursor": state.cursor}
        recording.note("moves", moves=moves, phase=str(state.phase), **about)

    def _living_state(self, task: Task) -> GameState:
        state = self._state()
        if state is None:
            raise EnvironmentCrashedError("the game reports no state")
        with self._needing_window():
            CALLABLES["window.get_window_by_title"](_title(task))
        return state

    @contextmanager
    def _needing_window(self) -> Iterator[None]:
        try:
            yield
        except WindowNotFoundError as error:
            self._state(DYING)  # a program that dies loses its window first
            raise EnvironmentCrashedError(f"the window of the game is gone: {error}") from error

    def _state(self, timeout: float = 0.0) -> GameState | None:
        """None before the first frame. Raises if the game has ended, or does so within this time."""
        with suppress(subprocess.TimeoutExpired):
            raise EnvironmentCrashedError(f"the game has ended, with status {self._running().wait(timeout)}")
        return read_state(Path(f"/proc/self/fd/{self._state_fd}"))


def _title(task: Task) -> str:
    return task.window_name or TITLE
