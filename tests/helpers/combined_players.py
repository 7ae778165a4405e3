"""Agents for episodes in which several parts of the harness meet: isolation, limits of memory, lost environments."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Any

from proctor.agents import Agent, EnvironmentCrashedError, Task

TOO_MUCH = int(0.4 * 2**30)  # bytes, where 0.3 GiB are allowed


class Blaming(Agent):
    """Says in its first step that the environment is gone."""

    def _play_env(self, task: Task) -> bool:
        raise EnvironmentCrashedError("the game has gone away")


class Bloating(Agent):
    def _play_env(self, task: Task) -> bool:
        self.held = bytearray(TOO_MUCH)
        threading.Event().wait()
        return True


class BloatingChild(Agent):
    """Takes the memory in a process that it has started."""

    def _play_env(self, task: Task) -> bool:
        takes = f"held = bytearray({TOO_MUCH}); import threading; threading.Event().wait()"
        subprocess.run([sys.executable, "-I", "-S", "-c", takes], check=False)
        return True


class BloatingFile(Agent):
    """Takes the memory for a file that it does not map."""

    def _play_env(self, task: Task) -> bool:
        file = os.memfd_create("held")
        os.posix_fallocate(file, 0, TOO_MUCH)
        threading.Event().wait()
        return True


class BloatingMind:
    """The same where the environment is stepped."""

    def act(self, observation: Any) -> int:
        self.held = bytearray(TOO_MUCH)
        threading.Event().wait()
        return 0
