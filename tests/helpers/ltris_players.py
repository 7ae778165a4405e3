"""Agents for LTris, a game from Debian, and an evaluator as a user writes one."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy

from proctor.agents import TIMES, Agent, Task, env_lock
from proctor.agents.desktop import CALLABLES, VK, get_current_frame
from proctor.agents.windows.window import WindowEvaluator, WindowView

LOOK_AGAIN = 0.02
STILL = 3  # times that nothing has changed
WELL = (slice(0, 400), slice(66, 266))  # where the pieces fall: twenty rows of ten cells
CELL = 20  # its width and its height
EDGE = (slice(0, 400), 271)
LIGHT = 90  # from which a cell is no longer the wall behind


class Idle(Agent):
    """Does nothing."""

    def _play_env(self, task: Task) -> bool:
        time.sleep(LOOK_AGAIN)
        return True


class MenuPlayer(Agent):
    """Opens the page for a new game, and has finished."""

    keys: Sequence[VK] = (VK.DOWN, VK.RETURN)

    def _init_task_hook(self, task: Task) -> None:
        self._wait_until_still(task)
        self._left = list(self.keys)

    def _play_env(self, task: Task) -> bool:
        if not self._left:
            return self._go_on(task)
        before = get_current_frame(task.window_name).copy()
        self._press(task, self._left.pop(0))
        while numpy.array_equal(get_current_frame(task.window_name), before):
            time.sleep(LOOK_AGAIN)
        if self._left:  # a menu fades from one line to the next
            self._wait_until_still(task)
        return True

    def _go_on(self, task: Task) -> bool:
        """When all keys are pressed."""
        self._wait_until_still(task)
        return False

    def _press(self, task: Task, key: VK) -> None:
        with env_lock:
            CALLABLES["window.make_active"](task.window_name)
            CALLABLES["keyboard.press"](key)
            time.sleep(TIMES.KEYBOARD_PRESS_DELAY)
            CALLABLES["keyboard.release"](key)

    def _wait_until_still(self, task: Task) -> None:
        same, last = 0, get_current_frame(task.window_name).copy()
        while same < STILL:
            time.sleep(LOOK_AGAIN)
            now = get_current_frame(task.window_name).copy()
            same, last = (same + 1 if now.any() and numpy.array_equal(now, last) else 0), now


class PatientMenuPlayer(MenuPlayer):
    """Opens the page for a new game, and waits to see what comes of it."""

    def _go_on(self, task: Task) -> bool:
        time.sleep(LOOK_AGAIN)
        return True


class Dropper(MenuPlayer):
    """Starts a classic game and drops every piece where it is."""

    keys = (VK.DOWN, VK.RETURN, *[VK.DOWN] * 5, VK.RIGHT, *[VK.UP] * 4, VK.RETURN)

    def _go_on(self, task: Task) -> bool:
        self._press(task, VK.END)
        return True


class Pile(WindowEvaluator):
    """Success is a pile of so many cells. In a game the well has an edge of bright stone; a menu has no such thing."""

    def _look(self, task: Task) -> WindowView:
        frame = self._frame(task)
        cells = frame[WELL].max(axis=2).reshape(20, CELL, 10, CELL).mean(axis=(1, 3)) > LIGHT
        pile = int(cells.sum()) if frame[EDGE].max(axis=1).min() > LIGHT else 0
        return WindowView(frame, pile >= task.success_criteria["cells"], facts={"cells": pile})
