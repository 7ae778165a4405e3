"""Evaluator, the base class of evaluators: they set up the environment, detect its end and score the agent."""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from proctor.agents.constants import NETWORK, TIMEOUTS
from proctor.agents.participant import Participant
from proctor.agents.runtime.clock import ClockName
from proctor.agents.runtime.hosting.host import Host
from proctor.agents.runtime.hosting.recipe import Recipe
from proctor.agents.runtime.locking import env_lock
from proctor.agents.runtime.recording import recording
from proctor.agents.success import read_success, without_infinite
from proctor.agents.types import EvaluationResult, Task

LOCK_TIMEOUT = 1.0  # seconds for which an evaluator waits for an agent that holds the lock of the environment


class Evaluator(Participant, ABC):
    """Scores an agent in an environment."""

    role: ClassVar[str] = "evaluator"
    uses_desktop: ClassVar[bool] = True  # False: it needs no display, and nothing is recorded
    has_success: ClassVar[bool] = True  # False: there is no criterion of success; the outcome is `played`
    default_port = NETWORK.EVALUATOR_PORT

    folder: Path | None = None  # for files of the current attempt
    clock: ClockName = "realtime"  # or paused: the environment is paused while the agent thinks
    setup_timeout: float = TIMEOUTS.SETUP  # seconds that _setup_environment may take

    def _check_env_continue(self, task: Task) -> bool:
        """Whether the task should continue: called about every 0.1 s while the agent plays."""
        return True

    def _check_env_continue_timer(self, task: Task) -> bool:
        """The same, called independently every `task.check_env_interval_seconds`."""
        return True

    @classmethod
    def exam(cls) -> type:
        """The task of this evaluator: `proctor run path/to/file.py:Class --agent …`."""
        from proctor.agents.evaluator_task import task_of

        return task_of(cls)

    @abstractmethod
    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        """Returns the result of a task that took so many seconds; the note says how it ended."""

    def _setup_environment(self, task: Task) -> None:
        """Called before the agent starts: start or restart the game, bring up its window."""

    def _pause_environment(self) -> None:
        """Pauses the environment. An evaluator that overrides this and `_resume_environment` allows clock=paused."""

    def _resume_environment(self) -> None:
        """Resumes the environment, as if no time had passed."""

    def _close_environment(self) -> None:
        """Called once, after the last task: removes the environment."""

    @classmethod
    def check_requirements(cls, clock: ClockName) -> None:
        """Raises UsageError if this machine lacks a requirement; called before the first episode."""

    @classmethod
    def can_pause(cls) -> bool:
        return cls._pause_environment is not Evaluator._pause_environment


class HostedEvaluator:
    """Hosts an evaluator in its process."""

    def __init__(self, recipe: Recipe, host: Host) -> None:
        evaluator = recipe.build()
        if not isinstance(evaluator, Evaluator):
            raise TypeError(f"{recipe.name} is not an Evaluator: it must extend proctor.agents.Evaluator")
        self._evaluator = evaluator
        evaluator.stop_event.on_set = lambda: host.notify("stop")
        env_lock.timeout = LOCK_TIMEOUT

    def watches(self) -> list[str]:
        """The checks that the evaluator overrides."""
        kind = type(self._evaluator)
        names = ("_check_env_continue", "_check_env_continue_timer")
        return [name.lstrip("_") for name in names if getattr(kind, name) is not getattr(Evaluator, name)]

    def is_sound(self) -> bool:
        """False if an agent has cut its connection to the display."""
        if "proctor.agents.desktop.names" not in sys.modules:  # it is not connected
            return True
        from proctor.agents.desktop.interface import answers
        from proctor.agents.desktop.names import desktop

        return desktop.cache_info().currsize == 0 or answers(desktop())

    def shows_window(self, title: str) -> bool | None:
        """Whether a window has this in its title; None without a desktop or a title."""
        if not (title and self._evaluator.uses_desktop and os.environ.get("DISPLAY")):
            return None
        from proctor.agents.desktop.interface import has_window
        from proctor.agents.desktop.names import desktop

        return has_window(desktop(), title)

    def setup_environment(self, message: dict[str, Any], folder: str, clock: ClockName, setup_timeout: float) -> None:
        recording.begin(folder, by_agent=False)
        self._evaluator.setup_timeout = setup_timeout
        self._evaluator.folder = Path(folder) if folder else None
        self._evaluator.clock = clock
        self._evaluator.stop_event.clear()
        self._evaluator._setup_environment(Task(**message))

    def check_env_continue(self, message: dict[str, Any]) -> bool:
        return bool(self._evaluator._check_env_continue(Task(**message)))

    def check_env_continue_timer(self, message: dict[str, Any]) -> bool:
        return bool(self._evaluator._check_env_continue_timer(Task(**message)))

    def pause_environment(self) -> None:
        self._evaluator._pause_environment()

    def resume_environment(self) -> None:
        self._evaluator._resume_environment()

    def close_environment(self) -> None:
        self._evaluator._close_environment()

    def score_task(self, message: dict[str, Any], elapsed: float, note: str) -> dict[str, Any]:
        result = self._evaluator._score_task(Task(**message), elapsed, note)
        if not isinstance(result, EvaluationResult):
            raise TypeError(f"_score_task must give an EvaluationResult, not {result!r}")
        given = {str(key): _to_plain(value) for key, value in result.metrics.items()}
        read_success(given, self._evaluator.has_success)
        metrics, unfit = _storable(given)
        metrics, bad = without_infinite(metrics)
        dropped = [f"the metric {name} is {given[name]}, and left out" for name in bad]
        dropped += [f"the metric {name} is left out: {why}" for name, why in unfit.items()]
        notes = "; ".join(filter(None, [result.notes, *dropped])).encode(errors="replace").decode()
        return result.model_copy(update={"metrics": metrics, "notes": notes}).model_dump(mode="json")


def _storable(metrics: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the metrics that can be stored, and why the others cannot."""
    unfit = {}
    for name, value in metrics.items():
        try:
            json.dumps(value).encode()
            msgspec.msgpack.encode([name, value])
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            unfit[name] = f"{type(error).__name__}: {error}"
    return {name: value for name, value in metrics.items() if name not in unfit}, unfit


def _to_plain(value: Any) -> Any:
    """Converts numbers of numpy to plain numbers."""
    if isinstance(value, dict):
        return {str(key): _to_plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_to_plain(inner) for inner in value]
    return value.item() if hasattr(value, "item") and getattr(value, "size", 0) == 1 else value
