"""RemoteAgent, the base class of agents that play from another machine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy

Action = str | dict[str, Any]
Frame = numpy.ndarray[Any, Any]  # rows of red, green and blue


class RemoteAgent(ABC):
    """Served by `proctor serve player FILE:Class`. It needs no display: it receives frames and returns actions."""

    @abstractmethod
    def act(self, frame: Frame) -> Sequence[Action] | None:
        """Returns the actions for a frame: names of keys to tap, or actions such as
        `{"do": "press", "key": "LEFT"}` and `{"do": "click", "x": 10, "y": 20}`. None says that the agent has finished.
        """

    def begin(self, task: dict[str, Any]) -> None:  # noqa: B027 - a subclass may leave it
        """Called with the task before the first frame of an episode."""
