"""The queue between a timed environment and its agent: the newest observation and the newest action."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from proctor.agents.envs.spaces import IllegalActionError
from proctor.agents.runtime.hosting.host import described

POLL = 1.0  # seconds for which a request for the next observation waits


class EnvGoneError(Exception):
    """The connection to the environment is lost: it is dead, or the agent closed it."""


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
    """Holds the newest observation and the newest action until the other side takes it.

    Reused for every episode. A subclass implements the transport.
    """

    port = 0  # of the server, if the transport has one

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open = False
        self._tick, self._frame = -1, b""
        self._move: PendingAction | None = None
        self.dropped = 0  # moves that were replaced by a newer one before they were taken
        self.looked = threading.Event()  # the agent has asked for an observation

    def open(self, token: str, take: Callable[[Any], Any]) -> None:
        """Begins an episode; `take` converts and validates an action."""
        with self._changed:
            self._take, self._move = take, None
            self._tick, self._frame = -1, b""
            self._open, self.dropped = True, 0
        self.looked.clear()

    @abstractmethod
    def show(self, frame: Frame) -> None: ...

    def take(self) -> PendingAction | None:
        """Returns the agent's new action, if there is one."""
        with self._changed:
            return self._taken()

    def wait(self, seconds: float) -> PendingAction | None:
        """The same, but waits until there is an action or the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._move is not None or not self._open, max(0.0, seconds))
            return self._taken()

    def _taken(self) -> PendingAction | None:
        move, self._move = self._move, None
        return move

    def close(self) -> None:
        """Rejects all further actions."""
        with self._changed:
            self._open = False
            self._changed.notify_all()

    def _bring(self, move: PendingAction, arrived: int) -> bool:
        """Puts an action into the queue; False if the episode is over. Raises IllegalActionError if it is invalid."""
        try:
            action = None if move.action is None else self._take(move.action)
        except IllegalActionError:
            raise
        except Exception as error:  # an object of the agent may raise anything
            raise IllegalActionError(f"its action raised {described(error).text}") from error
        with self._changed:
            if not -1 < move.tick <= self._tick:
                raise IllegalActionError(f"there was no tick {move.tick}")
            if self._open:
                self.dropped += self._move is not None
                self._move = msgspec.structs.replace(move, action=action, arrived=arrived)
                self._changed.notify_all()
            return self._open
