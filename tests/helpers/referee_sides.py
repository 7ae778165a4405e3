"""Agents and evaluators that try to buy, lose or forge a mark, and those that raise what is no Exception."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy

from proctor.agents import Agent, EnvironmentCrashedError, EvaluationResult, Evaluator, Task, thinking
from proctor.agents.outcome import EpisodeOutcome
from proctor.agents.runtime.hosting.channel import Reply, pack

GIB = 2**30


def tried(seed: int | None) -> int:
    """How many attempts there have been at all, with this one."""
    with open("attempts.txt", "a+") as file:
        file.write(f"{seed}\n")
        file.seek(0)
        return len(file.read().split())


class Steps(Evaluator):
    """Counts the steps in a file, and says that a run of three is a success."""

    uses_desktop = False
    metrics: Any = None

    def _setup_environment(self, task: Task) -> None:
        self.attempt = tried(task.seed)
        Path("evaluator.pid").write_text(str(os.getpid()))
        Path("steps.txt").write_text("")
        Path("over").unlink(missing_ok=True)

    def _check_env_continue(self, task: Task) -> bool:
        return not Path("over").exists()

    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        steps = len(Path("steps.txt").read_text())
        return EvaluationResult(task_id=task.task_id, metrics={"success": steps >= 3, "steps": steps}, notes=note)


class NoSetUpAtFirst(Steps):
    """The environment cannot be set up, but at the second attempt."""

    def _setup_environment(self, task: Task) -> None:
        super()._setup_environment(task)
        if self.attempt == 1:
            raise RuntimeError("the game does not start")


class NoFileNoScore(Steps):
    """Its checks do not need the file, so nobody sees that it is gone before it scores."""


class Lazy(Steps):
    """Says what success is in the first episode alone."""

    GIVEN: tuple[Any, ...] = (True, None, float("nan"), 1.5, "yes")

    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        given = self.GIVEN[self.attempt - 1]
        metrics = {} if given is None else {"success": given}
        return EvaluationResult(task_id=task.task_id, metrics=metrics, notes=note)


class Exotic(Steps):
    """Metrics as numpy makes them."""

    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        metrics = {
            "success": numpy.True_,
            "ratio": numpy.float32("nan"),
            "share": numpy.float64(0.5),
            "row": numpy.zeros(3),
        }
        return EvaluationResult(task_id=task.task_id, metrics=metrics, notes=note)


class Unjudged(Steps):
    """Nobody says what success is, and that is meant so."""

    has_success = False

    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        return EvaluationResult(task_id=task.task_id, metrics={"steps": 3}, notes=note)


class Stepping(Agent):
    """Three steps."""

    def _init_task_hook(self, task: Task) -> None:
        self.left = 3

    def _play_env(self, task: Task) -> bool:
        with open("steps.txt", "a") as file:
            file.write("x")
        self.left -= 1
        return self.left > 0


class Burying(Stepping):
    """Puts a folder where the log of its episode was."""

    def _play_env(self, task: Task) -> bool:
        if self.left == 3:
            (log,) = (Path(os.readlink(f"/proc/self/fd/{fd}")) for fd in os.listdir("/proc/self/fd") if _is_log(fd))
            log.unlink()
            log.mkdir()
        return super()._play_env(task)


def _is_log(fd: str) -> bool:
    with suppress(OSError):
        return os.readlink(f"/proc/self/fd/{fd}").endswith("events.jsonl")
    return False


class Boasting(Stepping):
    """Says in place of its host how quick it was, and how much it has done."""

    def _play_env(self, task: Task) -> bool:
        lags = {"reaction": {"counts": {"-999999": -1, "x": 1}}}
        for number in range(2, 10):
            os.write(int(sys.argv[1]), pack(Reply(number, {"outcome": "completed", "lags": lags, "actions": 2**60})))
        threading.Event().wait()
        return True


class Meddling(Stepping):
    """Spoils the set-up of its environment, as soon as it sees one, as long as it may."""

    def __init__(self) -> None:
        threading.Thread(target=self._meddle, daemon=True).start()

    def _meddle(self) -> None:
        while True:
            with suppress(OSError):
                Path("set_up.txt").unlink()
            time.sleep(0.001)


class Delicate(Steps):
    """Looks after a while whether its environment is still what it was."""

    def _setup_environment(self, task: Task) -> None:
        super()._setup_environment(task)
        Path("set_up.txt").write_text("")
        time.sleep(0.3)
        if not Path("set_up.txt").exists():
            raise RuntimeError("somebody has spoilt it")


class Claiming(Stepping):
    """Says that the environment is gone."""

    def _play_env(self, task: Task) -> bool:
        super()._play_env(task)
        raise EnvironmentCrashedError("there is nothing left to play")


class KillingTheEvaluator(Stepping):
    def _play_env(self, task: Task) -> bool:
        with suppress(ProcessLookupError):
            os.kill(int(Path("evaluator.pid").read_text()), signal.SIGKILL)
        time.sleep(0.005)
        return True


class TakingTheScore(Stepping):
    """Takes away the file that is judged."""

    def _play_env(self, task: Task) -> bool:
        Path("steps.txt").unlink()
        return False


class Endless(Agent):
    def _play_env(self, task: Task) -> bool:
        time.sleep(0.005)
        return True


class Waiting(Stepping):
    """Opens the gate, where there is one, and waits there for its end."""

    def _play_env(self, task: Task) -> bool:
        if Path("gate").exists():
            with open("gate", "w") as gate:
                gate.write("x")
                gate.flush()
                threading.Event().wait()
        return super()._play_env(task)


class Pensive(Agent):
    def _play_env(self, task: Task) -> bool:
        with thinking():
            pass
        return False


class RaisingWhileTheGameEnds(Agent):
    """Raises in its first step; the game ends by itself while the agent's process is busy with its last words."""

    def _play_env(self, task: Task) -> bool:
        raise NameError("name 'presss' is not defined")

    def _finish_task_hook(self, task: Task) -> None:
        Path("over").touch()
        time.sleep(0.5)


class RaisingAfterTheEnd(Agent):
    """Ends the game, and raises when it is told that this is the end."""

    def _play_env(self, task: Task) -> bool:
        Path("over").touch()
        self.stop_event.wait()
        raise RuntimeError("there is no window any more")


class OwnError(BaseException):
    """No Exception."""


class BrokenError(BaseException):
    """Cannot even be told."""

    def __str__(self) -> str:
        raise KeyboardInterrupt


ERRORS: dict[str, type[BaseException]] = {
    "KeyboardInterrupt": KeyboardInterrupt,
    "SystemExit": SystemExit,
    "GeneratorExit": GeneratorExit,
    "OwnError": OwnError,
    "BrokenError": BrokenError,
}


class Raising:
    """Raises in one of its methods."""

    def __init__(self, hook: str, error: str) -> None:
        self._hook, self._error = hook, error
        self._raise_in("__init__")

    def _raise_in(self, hook: str) -> None:
        if hook == self._hook:
            raise ERRORS[self._error]


class RaisingAgent(Raising, Agent):
    def _init_task_hook(self, task: Task) -> None:
        self._raise_in("_init_task_hook")

    def _play_env(self, task: Task) -> bool:
        self._raise_in("_play_env")
        if self._hook == "_finish_task_hook":
            return False
        time.sleep(0.005)
        return True

    def _finish_task_hook(self, task: Task) -> None:
        self._raise_in("_finish_task_hook")


class RaisingEvaluator(Raising, Evaluator):
    uses_desktop = False

    def _setup_environment(self, task: Task) -> None:
        self._raise_in("_setup_environment")

    def _check_env_continue(self, task: Task) -> bool:
        self._raise_in("_check_env_continue")
        return self._hook != "_score_task"

    def _check_env_continue_timer(self, task: Task) -> bool:
        self._raise_in("_check_env_continue_timer")
        return True

    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        self._raise_in("_score_task")
        return EvaluationResult(task_id=task.task_id, metrics={"success": True}, notes=note)

    def _pause_environment(self) -> None:
        self._raise_in("_pause_environment")

    def _resume_environment(self) -> None:
        self._raise_in("_resume_environment")

    def _close_environment(self) -> None:
        self._raise_in("_close_environment")


# What a hook of an agent and of an evaluator that raises makes of the task.
AGENT_HOOKS = {
    "__init__": EpisodeOutcome.AGENT_CRASH,
    "_init_task_hook": EpisodeOutcome.AGENT_CRASH,
    "_play_env": EpisodeOutcome.AGENT_CRASH,
    "_finish_task_hook": EpisodeOutcome.COMPLETED,  # the play is over
}
EVALUATOR_HOOKS = {
    "__init__": EpisodeOutcome.JUDGE_ERROR,
    "_setup_environment": EpisodeOutcome.ENV_CRASH,
    "_check_env_continue": EpisodeOutcome.JUDGE_ERROR,
    "_check_env_continue_timer": EpisodeOutcome.JUDGE_ERROR,
    "_score_task": EpisodeOutcome.JUDGE_ERROR,
}

BLOAT = "import time; held = bytearray(int(0.4 * 2**30)); time.sleep(600)"


class Bloating(Agent):
    """Takes more memory than it may have."""

    def _play_env(self, task: Task) -> bool:
        self.held = bytearray(int(0.4 * GIB))
        threading.Event().wait()
        return True


class BloatingChild(Agent):
    """The same, in a process that it has started."""

    def _play_env(self, task: Task) -> bool:
        subprocess.run([sys.executable, "-c", BLOAT], check=False)
        return True


class BloatingGame(Steps):
    """A program that takes more memory than it may have."""

    def _setup_environment(self, task: Task) -> None:
        super()._setup_environment(task)
        self._game = subprocess.Popen([sys.executable, "-c", BLOAT])


class SlowToMake(Stepping):
    def __init__(self) -> None:
        threading.Event().wait()


class SlowToSetUp(Steps):
    def _setup_environment(self, task: Task) -> None:
        threading.Event().wait()


class Blind(Steps):
    """A check that never returns; the other one sees the end."""

    def _check_env_continue(self, task: Task) -> bool:
        threading.Event().wait()
        return True

    def _check_env_continue_timer(self, task: Task) -> bool:
        return not Path("over").exists()
