"""The HTTP messages between a referee and a remote agent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

VERSION = 1
STATUS, BEGIN, STEP, END = "/player/status", "/player/begin", "/player/step", "/player/end"
EPISODE, NUMBER, SIZE = "Proctor-Episode", "Proctor-Step", "Proctor-Size"  # headers of a step
CONTENT_TYPES = {"png": "image/png", "jpeg": "image/jpeg", "raw": "application/x-proctor-rgb"}
OBSERVATION = "application/x-proctor-observation"
LARGEST_FRAME = 256 * 1024 * 1024  # bytes: a raw frame of 8192 × 8192 fits
LARGEST_ANSWER = 1024 * 1024
MOST_ACTIONS = 256  # in one answer
MOST_TEXT = 1_000

Duration = Annotated[float, Meta(ge=0, le=10)]  # seconds
Button = Literal["left", "middle", "right", "x1", "x2"]
Text = Annotated[str, Meta(max_length=MOST_TEXT)]
Turns = Annotated[int, Meta(ge=-100, le=100)]


class Action(Struct, frozen=True, tag_field="do", forbid_unknown_fields=True):
    """An action in a window. Coordinates are those of the frame, from its upper left corner."""


class Press(Action, frozen=True, tag="press"):
    key: Text  # a name of VK, such as LEFT, SPACE, KEY_A or A


class Release(Action, frozen=True, tag="release"):
    key: Text


class Tap(Action, frozen=True, tag="tap"):
    key: Text
    seconds: Duration = 0.05


class Type(Action, frozen=True, tag="type"):
    text: Text


class Move(Action, frozen=True, tag="move"):
    x: int
    y: int


class Click(Action, frozen=True, tag="click"):
    x: int | None = None  # default: where the pointer is
    y: int | None = None
    button: Button = "left"
    seconds: Duration = 0.05


class ButtonDown(Action, frozen=True, tag="button_down"):
    button: Button = "left"


class ButtonUp(Action, frozen=True, tag="button_up"):
    button: Button = "left"


class Scroll(Action, frozen=True, tag="scroll"):
    dx: Turns = 0
    dy: Turns = 0


class Wait(Action, frozen=True, tag="wait"):
    seconds: Duration


WindowAction = Press | Release | Tap | Type | Move | Click | ButtonDown | ButtonUp | Scroll | Wait


class Status(Struct):
    protocol: int
    state: Literal["READY", "PLAYING"]
    agent: str = ""


class Begin(Struct):
    """An episode begins. Whatever the agent was doing before is over."""

    episode: str
    kind: Literal["window", "world"]
    task: dict[str, Any] | None = None  # of a window
    seed: int | None = None
    world: dict[str, Any] | None = None  # name, actions, clock and fps of an environment
    protocol: int = VERSION


class WindowAnswer(Struct, forbid_unknown_fields=True):
    actions: Annotated[list[WindowAction], Meta(max_length=MOST_ACTIONS)] = []
    done: bool = False


class EnvAnswer(Struct, forbid_unknown_fields=True):
    action: Any


class End(Struct):
    episode: str


class AgentFailure(Struct):
    """The body of an answer with status 500: the agent raised something."""

    error: str


window_answer = msgspec.json.Decoder(WindowAnswer).decode
world_answer = msgspec.json.Decoder(EnvAnswer).decode
