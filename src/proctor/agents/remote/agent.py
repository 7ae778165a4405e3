"""The base of an agent that plays from another machine: it is given frames, and says what to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy

Action = str | dict[str, Any]
Frame = numpy.ndarray[Any, Any]  # rows of red, green and blue


class RemoteAgent(ABC):
    """Served by `proctor serve player FILE:Class`. It needs no display, and sees nothing but what it is sent."""

    @abstractmethod
    def act(self, frame: Frame) -> Sequence[Action] | None:
        """What to do about a frame: names of keys, each of which is tapped, or actions such as
        `{"do": "press", "key": "LEFT"}` and `{"do": "click", "x": 10, "y": 20}`; nothing is an empty list. None says
        that the agent has finished.
        """

    def begin(self, task: dict[str, Any]) -> None:  # noqa: B027 - a subclass may leave it
        """Called before the first frame of an episode, with what is to be done."""
