"""Agents and evaluators that fail in every way there is."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
import time

from proctor.agents import Agent, EnvironmentCrashedError, EvaluationResult, Evaluator, Task, env_lock
from proctor.agents.runtime.hosting.channel import Reply, pack


def note(what: str) -> None:
    with open(os.environ["NOTES"], "a") as file:
        file.write(f"{what}\n")


class Good(Agent):
    """Plays until it is stopped."""

    def _play_env(self, task: Task) -> bool:
        time.sleep(0.005)
        return True


class Finishing(Agent):
    """Has done its part after three steps."""

    def _init_task_hook(self, task: Task) -> None:
        self.left = 3

    def _play_env(self, task: Task) -> bool:
        self.left -= 1
        return self.left > 0


class Sleeping(Agent):
    """Never comes back from its first step."""

    def _play_env(self, task: Task) -> bool:
        threading.Event().wait()
        return True


class Spinning(Agent):
    """Holds on to the interpreter: no other thread of its process gets a turn."""

    def _play_env(self, task: Task) -> bool:
        return bool(ctypes.PyDLL(None).sleep(600))


class SleepingLater(Good):
    """Plays one step, then hangs."""

    has_played: bool

    def _play_env(self, task: Task) -> bool:
        if self.has_played:
            threading.Event().wait()
        self.has_played = True
        return super()._play_env(task)

    def _init_task_hook(self, task: Task) -> None:
        self.has_played = False


class HoldingOn(Agent):
    """Hangs with the lock of the environment in its hands."""

    def _play_env(self, task: Task) -> bool:
        with env_lock:
            threading.Event().wait()
        return True


class Thinking(Agent):
    """Is in the middle of a thought when time is up, but not for long."""

    def _play_env(self, task: Task) -> bool:
        time.sleep(0.3)
        return True


class Raising(Agent):
    def _play_env(self, task: Task) -> bool:
        raise RuntimeError("the agent stumbled")


class RaisingBefore(Good):
    def _init_task_hook(self, task: Task) -> None:
        raise RuntimeError("the agent never began")


class RaisingAfter(Good):
    def _finish_task_hook(self, task: Task) -> None:
        raise RuntimeError("the agent stumbled on the way out")


class Exiting(Agent):
    def _play_env(self, task: Task) -> bool:
        os._exit(3)


class Aborting(Agent):
    def _play_env(self, task: Task) -> bool:
        os.abort()


class Quitting(Agent):
    def _play_env(self, task: Task) -> bool:
        sys.exit(3)


class Killed(Agent):
    def _play_env(self, task: Task) -> bool:
        os.kill(os.getpid(), signal.SIGKILL)
        return True


class Flooding(Finishing):
    """Says three megabytes."""

    def _play_env(self, task: Task) -> bool:
        for _ in range(16):
            os.write(1, b"x" * 65536)
        return super()._play_env(task)


class Forking(Good):
    """Leaves children in sessions of their own, and grandchildren whose parents are gone."""

    def _init_task_hook(self, task: Task) -> None:
        for generations in (1, 2):
            if os.fork() == 0:
                os.setsid()
                if generations == 2 and os.fork() != 0:
                    os._exit(0)
                threading.Event().wait()


class StoppingItsGuardian(Sleeping):
    """And hangs, so that it has to be frozen: by whom?"""

    def _init_task_hook(self, task: Task) -> None:
        os.kill(os.getppid(), signal.SIGSTOP)


class StoppingItsGuardianPlaying(Good):
    def _init_task_hook(self, task: Task) -> None:
        os.kill(os.getppid(), signal.SIGSTOP)


class KillingItsGuardian(Forking):
    """With children in the world, and grandchildren that nobody knows any more."""

    def _play_env(self, task: Task) -> bool:
        os.kill(os.getppid(), signal.SIGKILL)
        threading.Event().wait()  # once is enough: the next parent is not ours
        return True


class SpeakingInTongues(Sleeping):
    """Answers in place of its host."""

    def _play_env(self, task: Task) -> bool:
        for number in range(2, 10):
            os.write(int(sys.argv[1]), pack(Reply(number, {"outcome": "splendid"})))
        return super()._play_env(task)


class ClosingItsChannel(Good):
    """Says nothing any more, and plays on."""

    def _play_env(self, task: Task) -> bool:
        with socket.socket(fileno=os.dup(int(sys.argv[1]))) as channel:
            channel.shutdown(socket.SHUT_WR)
        return super()._play_env(task)


class Noted(Finishing):
    """Says when it is made, and takes a while for it."""

    def __init__(self) -> None:
        time.sleep(0.2)
        note("agent")


class Stopping(Good):
    """Somebody presses F10."""

    def _play_env(self, task: Task) -> bool:
        self.stop_event.set()
        return True


class Unmakeable(Good):
    def __init__(self) -> None:
        raise ValueError("no model to be had")


class Watching(Evaluator):
    """Lets the agent play until its time is up."""

    uses_desktop = False

    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        metrics = {"success": True, "elapsed": task_elapsed_time}
        return EvaluationResult(task_id=task.task_id, metrics=metrics, notes=note)


class WritingMuch(Watching):
    has_success = False

    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        return EvaluationResult(task_id=task.task_id, metrics={"moves": list(range(100_000))})


class Ending(Watching):
    """Sees the end at once."""

    def _check_env_continue(self, task: Task) -> bool:
        return False


class EndingByTimer(Watching):
    def _check_env_continue_timer(self, task: Task) -> bool:
        return False


class BlindThenTimer(EndingByTimer):
    """Hangs in one check; the other still sees the end."""

    def _check_env_continue(self, task: Task) -> bool:
        threading.Event().wait()
        return True


class ScoreRaises(Ending):
    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        raise RuntimeError("the judge stumbled")


class ScoreHangs(Ending):
    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        threading.Event().wait()
        raise AssertionError


class ScoreIsNone(Ending):
    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        return None  # type: ignore[return-value]


class CheckRaises(Watching):
    def _check_env_continue(self, task: Task) -> bool:
        raise RuntimeError("the judge cannot see")


class CheckHangs(Watching):
    def _check_env_continue(self, task: Task) -> bool:
        threading.Event().wait()
        return True


class CheckDies(Watching):
    def _check_env_continue(self, task: Task) -> bool:
        os._exit(5)


class WindowGone(Watching):
    def _check_env_continue(self, task: Task) -> bool:
        raise EnvironmentCrashedError("the window is gone")


class SetupRaises(Watching):
    def _setup_environment(self, task: Task) -> None:
        raise RuntimeError("the game does not start")


class SetupNoted(Watching):
    def _setup_environment(self, task: Task) -> None:
        note("environment")


class TakingTheLock(Watching):
    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        with env_lock:
            return super()._score_task(task, task_elapsed_time, note)


class StoppedByHand(Watching):
    def _check_env_continue(self, task: Task) -> bool:
        self.stop_event.set()
        return True


class CrashingEverySecond(Finishing):
    """By its seed, so that a new process knows whose turn it is."""

    def _init_task_hook(self, task: Task) -> None:
        super()._init_task_hook(task)
        with open("turns", "a+") as file:
            file.write("x")
            file.seek(0)
            if len(file.read()) % 2:
                raise RuntimeError("the agent stumbled")


class Logging(Finishing):
    """Leaves a mark for each episode; at the third it opens a gate, and waits there for its end."""

    def _init_task_hook(self, task: Task) -> None:
        super()._init_task_hook(task)
        with open(os.environ["EPISODES"], "a") as file:
            file.write("x")
        if "GATE" in os.environ and os.path.getsize(os.environ["EPISODES"]) == 3:
            with open(os.environ["GATE"], "w") as gate:
                gate.write("x")
            threading.Event().wait()
