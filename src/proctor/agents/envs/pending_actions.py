"""What passes between an environment that does not wait and its agent."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

POLL = 1.0  # seconds that a question for the next observation may wait, before it has to be asked again


class EnvGoneError(Exception):
    """The line to the world is cut: it is dead, or the agent has cut it."""


class Frame(Struct, frozen=True):
    """An observation on its way to the agent. Times are of the clock that all processes of a machine share."""

    tick: int
    observation: bytes  # packed
    reward: float | None
    over: bool


class PendingAction(Struct, frozen=True):
    """An action on its way to the world."""

    tick: int  # of the observation that it answers
    action: Any  # None is none: the idle one is meant
    seen: int  # when the agent had the observation, in nanoseconds
    sent: int
    arrived: int = 0
