"""The desktop, under the names that agents and evaluators use."""

from proctor.agents.desktop.interface import DesktopError, WindowNotFoundError
from proctor.agents.desktop.keys import char_to_vk, vk_to_name
from proctor.agents.desktop.listeners import LISTENERS, RUNNABLES, get_component, list_components
from proctor.agents.desktop.messages import (
    KeyboardEvent,
    KeyboardState,
    MouseEvent,
    MouseState,
    OWAMessage,
    PointerBallisticsConfig,
    RawMouseEvent,
    WindowInfo,
)
from proctor.agents.desktop.names import (
    CALLABLES,
    activate_module,
    get_current_frame,
    get_current_frame_base64,
)
from proctor.agents.desktop.registry import Registry
from proctor.agents.desktop.runnable import Listener, Runnable
from proctor.agents.desktop.screen import MediaRef, ScreenCaptured
from proctor.agents.desktop.vk import VK

MESSAGES: Registry[type[OWAMessage]] = Registry(
    "MESSAGES",
    {
        f"desktop/{message.__name__}": message
        for message in (
            KeyboardEvent,
            KeyboardState,
            MouseEvent,
            MouseState,
            PointerBallisticsConfig,
            RawMouseEvent,
            ScreenCaptured,
            WindowInfo,
        )
    },
)

__all__ = [
    "CALLABLES",
    "LISTENERS",
    "MESSAGES",
    "RUNNABLES",
    "VK",
    "DesktopError",
    "KeyboardEvent",
    "KeyboardState",
    "Listener",
    "MediaRef",
    "MouseEvent",
    "MouseState",
    "OWAMessage",
    "PointerBallisticsConfig",
    "RawMouseEvent",
    "Runnable",
    "ScreenCaptured",
    "WindowInfo",
    "WindowNotFoundError",
    "activate_module",
    "char_to_vk",
    "get_component",
    "get_current_frame",
    "get_current_frame_base64",
    "list_components",
    "vk_to_name",
]
