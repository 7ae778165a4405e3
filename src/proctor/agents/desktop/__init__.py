"""The desktop, under the names that agents and evaluators use."""

from proctor.agents.desktop.interface import DesktopError, KeyboardEvent, MouseEvent, WindowInfo, WindowNotFoundError
from proctor.agents.desktop.names import (
    CALLABLES,
    LISTENERS,
    activate_module,
    get_current_frame,
    get_current_frame_base64,
)
from proctor.agents.desktop.vk import VK

__all__ = [
    "CALLABLES",
    "LISTENERS",
    "VK",
    "DesktopError",
    "KeyboardEvent",
    "MouseEvent",
    "WindowInfo",
    "WindowNotFoundError",
    "activate_module",
    "get_current_frame",
    "get_current_frame_base64",
]
