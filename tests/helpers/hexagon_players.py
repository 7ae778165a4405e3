"""An agent that does to the game what its task says: nothing at all, or the end of its program or of its window."""

from __future__ import annotations

import os
import signal
import time

from Xlib.display import Display

from proctor.agents import Agent, Task
from proctor.agents.desktop import CALLABLES, VK
from proctor.agents.games.hexagon.options import TITLE


class Meddler(Agent):
    def _init_task_hook(self, task: Task) -> None:
        assert VK.LEFT not in CALLABLES["keyboard.get_state"](), "a key of the episode before is still down"
        if task.task_description == "kill":
            CALLABLES["keyboard.press"](VK.LEFT)  # and never releases it
            os.kill(CALLABLES["window.get_pid_by_title"](TITLE), signal.SIGKILL)
        elif task.task_description == "close":  # whatever the program says
            display = Display()
            window = CALLABLES["window.get_window_by_title"](TITLE)
            display.create_resource_object("window", window.hWnd).unmap()
            display.sync()
            display.close()

    def _play_env(self, task: Task) -> bool:
        time.sleep(0.01)
        return True
