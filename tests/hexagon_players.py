"""Agents that do to the game what a test needs: nothing at all, or the end of its program or of its window."""

from __future__ import annotations

import os
import signal
import time

from Xlib.display import Display

from proctor.agents import Agent, Task
from proctor.agents.desktop import CALLABLES
from proctor.agents.hexagon.options import TITLE


class Idler(Agent):
    def _play_env(self, task: Task) -> bool:
        time.sleep(0.01)
        return True


class Killer(Idler):
    """Kills the program."""

    def _init_task_hook(self, task: Task) -> None:
        os.kill(CALLABLES["window.get_pid_by_title"](TITLE), signal.SIGKILL)


class Closer(Idler):
    """Takes the window away, whatever its program says."""

    def _init_task_hook(self, task: Task) -> None:
        display = Display()
        window = CALLABLES["window.get_window_by_title"](TITLE)
        display.create_resource_object("window", window.hWnd).unmap()
        display.sync()
