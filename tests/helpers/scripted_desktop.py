"""A stand-in for a desktop with one game on it: the state is a file, so that agent and evaluator share it.

Each key pressed is a line of the file. The space bar starts a game; after `LIFE` presses of the right arrow it is over.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIFE = 5


class VK:
    SPACE, RIGHT, F10 = 32, 39, 121


class KeyboardEvent:
    vk = 0


class Listener:
    def configure(self, callback: Callable[[KeyboardEvent], None]) -> Listener:
        return self

    def start(self) -> None:
        pass


LISTENERS = {"keyboard": Listener}


def activate_module(name: str) -> None:
    assert name.startswith("owa.env.")


def _write(line: str) -> None:
    with open(os.environ["SCRIPTED_DESKTOP"], "a") as file:
        file.write(line + "\n")


CALLABLES: dict[str, Callable[[Any], None]] = {
    "window.make_active": lambda name: _write(f"active {name}"),
    "keyboard.press": lambda key: _write(f"press {key}"),
    "keyboard.release": lambda key: _write(f"release {key}"),
}


def get_current_frame_base64(window_name: str) -> str:
    lines = Path(os.environ["SCRIPTED_DESKTOP"]).read_text().splitlines()
    begun = max((i for i, line in enumerate(lines) if line == f"press {VK.SPACE}"), default=len(lines))
    presses = lines[begun:].count(f"press {VK.RIGHT}")
    return base64.b64encode(json.dumps({"over": presses >= LIFE, "score": presses}).encode()).decode()
