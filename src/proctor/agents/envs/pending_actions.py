"""What passes between an environment that does not wait and its agent, and where the agent's last move lies."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from proctor.agents.envs.spaces import IllegalActionError
from proctor.agents.runtime.hosting.host import described

POLL = 1.0  # seconds that a question for the next observation may wait, before it has to be asked again


class EnvGoneError(Exception):
    """The line to the environment is cut: it is dead, or the agent has cut it."""


class Frame(Struct, frozen=True):
    """An observation on its way to the agent. Times are of the clock that all processes of a machine share."""

    tick: int
    observation: bytes  # packed
    reward: float | None
    over: bool


class PendingAction(Struct, frozen=True):
    """An action on its way to the environment."""

    tick: int  # of the observation that it answers
    action: Any  # None is none: the idle one is meant
    seen: int  # when the agent had the observation, in nanoseconds
    sent: int
    arrived: int = 0


class ActionQueue(ABC):
    """The newest observation goes out, the newest move of the agent comes in and waits until the environment takes it.

    Used for one episode after the other. A subclass says over what the two reach each other.
    """

    port = 0  # at which an agent finds it, where it needs to

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open = False
        self._tick, self._frame = -1, b""
        self._move: PendingAction | None = None
        self.dropped = 0  # moves that were replaced by a newer one before they were taken
        self.looked = threading.Event()  # the agent has asked for an observation

    def open(self, token: str, take: Callable[[Any], Any]) -> None:
        """For an episode; `take` says what an action of the environment is."""
        with self._changed:
            self._take, self._move = take, None
            self._tick, self._frame = -1, b""
            self._open, self.dropped = True, 0
        self.looked.clear()

    @abstractmethod
    def show(self, frame: Frame) -> None: ...

    def take(self) -> PendingAction | None:
        """What the agent wants to do, if it has said so since it was last asked."""
        with self._changed:
            return self._taken()

    def wait(self, seconds: float) -> PendingAction | None:
        """The same, as soon as there is something, or the gate is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._move is not None or not self._open, max(0.0, seconds))
            return self._taken()

    def _taken(self) -> PendingAction | None:
        move, self._move = self._move, None
        return move

    def close(self) -> None:
        """No action goes through any more."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _bring(self, move: PendingAction, arrived: int) -> bool:
        """Whether it came in time. Raises IllegalActionError if it is no move of this environment."""
        try:
            action = None if move.action is None else self._take(move.action)
        except IllegalActionError:
            raise
        except Exception as error:  # whatever is wrong with an action is the fault of whoever gave it
            raise IllegalActionError(f"its action raised {described(error).text}") from error
        with self._changed:
            if not -1 < move.tick <= self._tick:
                raise IllegalActionError(f"there was no tick {move.tick}")
            if self._open:
                self.dropped += self._move is not None
                self._move = msgspec.structs.replace(move, action=action, arrived=arrived)
                self._changed.notify_all()
            return self._open
