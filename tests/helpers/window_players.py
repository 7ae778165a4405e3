"""Agents and evaluators for what one episode in a window leaves for the next, and for its record."""

from __future__ import annotations

import sys
import time

from helpers.desktop_players import ArrowGame
from proctor.agents import Agent, Task
from proctor.agents.desktop import CALLABLES, VK, get_current_frame
from proctor.agents.desktop.names import desktop

HELD = 0.4  # seconds

# Looks sixty times a second whether the mouse is down, as games do: green after so many clicks.
POLLING = """
import sys
import pygame
pygame.display.init()
screen = pygame.display.set_mode((320, 240))
pygame.display.set_caption("Arrow Game")
clock = pygame.time.Clock()
left, was_down = int(sys.argv[1]), False
while True:
    pygame.event.pump()
    down = pygame.mouse.get_pressed()[0]
    left -= down and not was_down
    was_down = down
    screen.fill((0, 200, 0) if left <= 0 else (0, 0, 200))
    pygame.display.flip()
    clock.tick(60)
"""


class PollingGame(ArrowGame):
    def command(self, task: Task) -> list[str]:
        return [sys.executable, "-c", POLLING, str(task.success_criteria["presses"])]


class Clicking(Agent):
    """Once for each step, and not for longer than a click lasts by itself."""

    def _init_task_hook(self, task: Task) -> None:
        CALLABLES["window.make_active"](task.window_name)
        CALLABLES["mouse.move"](160, 120)

    def _play_env(self, task: Task) -> bool:
        CALLABLES["mouse.click"]()
        time.sleep(0.05)
        return True


class HoldingTheMouse(Agent):
    """Never lets go; finds out whether somebody did it for it."""

    def _init_task_hook(self, task: Task) -> None:
        down = desktop().buttons_down()
        if down:
            raise RuntimeError(f"the mouse is held already: {down}")

    def _play_env(self, task: Task) -> bool:
        for button in ("left", "x2"):
            CALLABLES["mouse.press"](button)
        return False


class Reacting(Agent):
    """Presses at once, and holds for long: it is in the middle of a step whenever its time is up."""

    def _play_env(self, task: Task) -> bool:
        get_current_frame(task.window_name)
        CALLABLES["keyboard.press"](VK.LEFT)
        time.sleep(HELD)
        CALLABLES["keyboard.release"](VK.LEFT)
        return True
