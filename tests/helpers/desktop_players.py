"""Agents and evaluators on a real display, and the programs that they play."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from Xlib import display
from Xlib.protocol import request

from proctor.agents import Agent, EnvironmentCrashedError, EvaluationResult, Task, thinking
from proctor.agents.desktop import CALLABLES, LISTENERS, VK, KeyboardEvent, get_current_frame
from proctor.agents.desktop.interface import window_titled
from proctor.agents.desktop.names import desktop
from proctor.agents.windows.window import WindowEvaluator

THOUGHT = 0.6  # seconds
LONG_THOUGHT = 1.5  # seconds

# A window that turns from blue to green when the right arrow was pressed `sys.argv[1]` times, and closes at escape.
GAME = """
import os, sys
import pygame
pygame.display.init()
screen = pygame.display.set_mode((320, 240))
pygame.display.set_caption("Arrow Game")
left = int(sys.argv[1])
while True:
    screen.fill((0, 200, 0) if left <= 0 else (0, 0, 200))
    pygame.display.flip()
    event = pygame.event.wait()
    if event.type == pygame.KEYDOWN and event.key == pygame.K_RIGHT:
        left -= 1
    if event.type == pygame.KEYDOWN and event.key == pygame.K_ESCAPE:
        sys.exit(0)
    if event.type == pygame.KEYDOWN and event.key == pygame.K_c:
        os.abort()
"""

# A window with the title and the colour that it is told, always at one place, which writes down the keys that it gets.
NOTEPAD = """
import os, sys
title, colour, file = sys.argv[1:]
notes = open(file, "ab", buffering=0)
os.environ["SDL_VIDEO_WINDOW_POS"] = "40,40"
import pygame
pygame.display.init()
screen = pygame.display.set_mode((200, 150))
pygame.display.set_caption(title)
while True:
    screen.fill(colour)
    pygame.display.flip()
    event = pygame.event.wait()
    if event.type == pygame.KEYDOWN:
        notes.write(pygame.key.name(event.key).encode())
"""


# A green window with the title of that game, in a corner of the display.
FORGERY = """
import os
os.environ["SDL_VIDEO_WINDOW_POS"] = "0,0"
import pygame
pygame.display.init()
screen = pygame.display.set_mode((320, 240))
pygame.display.set_caption("Arrow Game")
while True:
    screen.fill((0, 200, 0))
    pygame.display.flip()
    pygame.event.wait()
"""


class ArrowGame(WindowEvaluator):
    """Success is a green window."""

    def command(self, task: Task) -> list[str]:
        return [sys.executable, "-c", GAME, str(task.success_criteria.get("presses", 5))]

    def _check_env_continue(self, task: Task) -> bool:
        super()._check_env_continue(task)
        return not self._is_green(task)

    def _check_env_continue_timer(self, task: Task) -> bool:
        return True

    def _is_green(self, task: Task) -> bool:
        _, green, blue = self._frame(task)[120, 160]
        return bool(green > 100 and blue < 100)

    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        result = EvaluationResult(task_id=task.task_id, metrics={"success": self._is_green(task)}, notes=note)
        self._end()
        return result


class Pressing(Agent):
    """Presses one key again and again."""

    key = VK.RIGHT

    def __init__(self) -> None:
        def stop_at_f10(event: KeyboardEvent) -> None:
            if event.vk == VK.F10:
                self.stop_event.set()

        LISTENERS["keyboard"]().configure(callback=stop_at_f10).start()

    def _play_env(self, task: Task) -> bool:
        CALLABLES["window.make_active"](task.window_name)
        CALLABLES["keyboard.press"](self.key)
        time.sleep(0.02)
        CALLABLES["keyboard.release"](self.key)
        return True


class Closing(Pressing):
    key = VK.ESCAPE


class Crashing(Pressing):
    key = VK.KEY_C


class KillingTheGame(Pressing):
    def _play_env(self, task: Task) -> bool:
        pid = CALLABLES["window.get_pid_by_title"](task.window_name)
        os.kill(pid, signal.SIGKILL)
        return super()._play_env(task)


class Mistyping(Pressing):
    def _play_env(self, task: Task) -> bool:
        CALLABLES["window.make_active"]("Arow")
        return True


class Claiming(Pressing):
    def _play_env(self, task: Task) -> bool:
        raise EnvironmentCrashedError("all is lost")


class ClosingGame(ArrowGame):
    """It is over when the program has ended; success is to have ended it in the ordinary way."""

    def _check_env_continue(self, task: Task) -> bool:
        return not self._was_left()

    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        result = EvaluationResult(task_id=task.task_id, metrics={"success": self._was_left()}, notes=note)
        self._end()
        return result


class ClosingAtTheEnd(Closing):
    """Looks for the window as long as there is one, and then once more."""

    def _play_env(self, task: Task) -> bool:
        super()._play_env(task)
        while True:
            get_current_frame(task.window_name)
            time.sleep(0.001)


class MistypingAtTheEnd(Closing):
    """Ends the game by its last words, after its own error."""

    def _play_env(self, task: Task) -> bool:
        CALLABLES["window.make_active"]("Arow")
        return True

    def _finish_task_hook(self, task: Task) -> None:
        super()._play_env(task)


class PressingF10(Pressing):
    key = VK.F10


class KillingTheFilm(Pressing):
    def _init_task_hook(self, task: Task) -> None:
        display = os.environ["DISPLAY"].encode()
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                # The command of a process that is busy with its memory can be waited for long: only of those that film.
                if (entry / "comm").read_text().strip() != "ffmpeg":
                    continue
                if display in (entry / "cmdline").read_bytes().split(b"\0"):
                    os.kill(int(entry.name), signal.SIGKILL)


class Raising(Agent):
    """Presses two keys, and raises while it holds the second."""

    def _play_env(self, task: Task) -> bool:
        CALLABLES["window.make_active"](task.window_name)
        CALLABLES["keyboard.press"](VK.LEFT)
        CALLABLES["keyboard.release"](VK.LEFT)
        CALLABLES["keyboard.press"](VK.UP)
        self._fail()
        return True

    def _fail(self) -> None:
        raise RuntimeError("on purpose")


class Dying(Raising):
    def _fail(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Idle(Agent):
    def _play_env(self, task: Task) -> bool:
        time.sleep(0.01)
        return True


class Forging(Agent):
    """Opens a window of its own that looks like success, beside the one of the game, and has finished."""

    def _init_task_hook(self, task: Task) -> None:
        self._window = subprocess.Popen([sys.executable, "-c", FORGERY])
        while desktop().window_pid(window_titled(desktop(), "Arrow Game")) != self._window.pid:
            time.sleep(0.01)  # until it is the topmost of that title

    def _play_env(self, task: Task) -> bool:
        return False


class DeafToF10(Idle):
    """Somebody presses F10, and neither agent nor evaluator listens."""

    def _init_task_hook(self, task: Task) -> None:
        CALLABLES["keyboard.press"](VK.F10)
        CALLABLES["keyboard.release"](VK.F10)


class KillingTheDisplay(Idle):
    """Once."""

    def _init_task_hook(self, task: Task) -> None:
        if not Path("killed").exists():
            Path("killed").touch()
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(f"/tmp/.X11-unix/X{os.environ['DISPLAY'].removeprefix(':')}")
                server, _, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            os.kill(server, signal.SIGKILL)


class CuttingConnections(Pressing):
    """Ends the connections of all others to the display in its first episode, and plays in the next."""

    def _play_env(self, task: Task) -> bool:
        mark = Path("cut")
        if mark.exists():
            return super()._play_env(task)
        mark.touch()
        connection = display.Display()
        own = connection.display.info.resource_id_base
        for base in range(0, 1 << 29, 1 << 21):
            for resource in () if base == own else range(base, base + 30):
                request.KillClient(display=connection.display, resource=resource)
        with suppress(Exception):  # of errors for resources that there are not, python-xlib knows some and not others
            connection.sync()
        threading.Event().wait()
        return True


class Pensive(Agent):
    """Thinks for longer than it acts."""

    def _play_env(self, task: Task) -> bool:
        with thinking():
            time.sleep(LONG_THOUGHT)
        self.stop_event.wait(0.1)
        return True


class Comparing(Agent):
    """Raises if the window moves while it thinks. It need not move else: not every program does."""

    def _play_env(self, task: Task) -> bool:
        with thinking():
            before = get_current_frame(task.window_name)
            self.stop_event.wait(THOUGHT)
            after = get_current_frame(task.window_name)
        if (before != after).any():
            raise RuntimeError("the window does not stand still")
        self.stop_event.wait(THOUGHT)
        return True
