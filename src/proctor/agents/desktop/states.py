"""What is down on a desktop now, as messages."""

from __future__ import annotations

import time

from proctor.agents.desktop.interface import Desktop
from proctor.agents.desktop.keys import EITHER
from proctor.agents.desktop.messages import KeyboardState, MouseButton, MouseState
from proctor.agents.desktop.vk import VK

MOUSE_BUTTONS: dict[MouseButton, VK] = {
    "left": VK.LBUTTON,
    "middle": VK.MBUTTON,
    "right": VK.RBUTTON,
    "x1": VK.XBUTTON1,
    "x2": VK.XBUTTON2,
}


def keyboard_state(desktop: Desktop) -> KeyboardState:
    """The keys and mouse buttons that are down; LSHIFT is SHIFT, too."""
    down = desktop.keys_down() | desktop.buttons_down()
    down |= {int(key) for key, sides in EITHER.items() if down.intersection(sides)}
    return KeyboardState(buttons=down, timestamp=time.time_ns())


def mouse_state(desktop: Desktop) -> MouseState:
    (x, y, _), down = desktop.pointer(), desktop.buttons_down()
    buttons = {name for name, vk in MOUSE_BUTTONS.items() if vk in down}
    return MouseState(x=x, y=y, buttons=buttons, timestamp=time.time_ns())
