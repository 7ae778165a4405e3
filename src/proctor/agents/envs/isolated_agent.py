"""An isolated agent and its environment: two processes connected by a socket.

With the clock `step` the environment asks and the agent answers. With the others the agent requests the newest
observation, as it would over HTTP, which its sandbox does not have.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Any

import msgspec

from proctor.agents.envs import observations
from proctor.agents.envs.agents import AgentFailedError, Policy
from proctor.agents.envs.pending_actions import POLL, ActionQueue, EnvGoneError, Frame, PendingAction
from proctor.agents.envs.spaces import IllegalActionError, plain
from proctor.agents.envs.types import AGENT_ENDED, EnvDescription
from proctor.agents.runtime.hosting.channel import IN_AGENT
from proctor.agents.runtime.hosting.host import Host, described
from proctor.agents.runtime.hosting.recipe import Recipe

LENGTH = 4  # bytes before each message that say how long it is
AT_ONCE, LARGEST_PART = 1 << 16, 1 << 22  # bytes that are read by one call
LARGEST_REPLY = 1024 * 1024  # of an agent
BEGIN, ACT = "begin", "act"  # of an environment that waits
LOOK, MOVE = "look", "move"  # of an agent in one that does not
DONE, FAILED, NOTHING, CLOSED = "done", "failed", "nothing", "closed"


class AgentSocket:
    """Sends and receives messages of plain data."""

    def __init__(self, descriptor: int, largest: int | None = None) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.setblocking(True)
        self._largest = largest
        self._heard = b""  # of the next message

    def send(self, kind: str, *values: Any) -> None:
        body = msgspec.msgpack.encode((kind, *values))
        self._socket.sendall(len(body).to_bytes(LENGTH, "big") + body)

    def receive(self) -> list[Any] | None:
        """Returns None when the other side is gone. Raises AgentFailedError for an invalid message."""
        if not self._hear(LENGTH):
            return None
        size = int.from_bytes(self._heard[:LENGTH], "big")
        if self._largest is not None and size > self._largest:
            raise AgentFailedError(f"it answered with {size} bytes; at most {self._largest} are read")
        if not self._hear(LENGTH + size):
            return None
        body, self._heard = self._heard[LENGTH : LENGTH + size], self._heard[LENGTH + size :]
        try:
            message = msgspec.msgpack.decode(body, type=list)
            if not message or not isinstance(message[0], str):
                raise ValueError("it has no kind")
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError) as error:
            raise AgentFailedError(f"it sent an invalid answer: {error}") from None
        return message

    def _hear(self, size: int) -> bool:
        """Waits until so many bytes are received; False at the end of the stream."""
        if len(self._heard) < size:
            parts, missing = [self._heard], size - len(self._heard)
            while missing > 0:
                part = self._socket.recv(max(AT_ONCE, min(missing, LARGEST_PART)))
                if not part:
                    return False
                parts.append(part)
                missing -= len(part)
            self._heard = b"".join(parts)
        return True


class IsolatedPolicy:
    """The policy of an isolated agent with the clock `step`: asked over the socket."""

    def __init__(self, line: AgentSocket) -> None:
        self._line = line

    def begin(self, seed: int, info: EnvDescription) -> None:
        self._ask(BEGIN, seed, msgspec.to_builtins(info))

    def decide(self, observation: Any) -> Any:
        action = self._ask(ACT, observations.pack(observation))
        if action is None:
            raise AgentFailedError("it gave None, which is not an action")
        return action

    def _ask(self, kind: str, *values: Any) -> Any:
        try:
            self._line.send(kind, *values)
            reply = self._line.receive()
        except OSError:
            reply = None
        if reply is None:
            raise AgentFailedError(AGENT_ENDED)
        if reply[0] == DONE and len(reply) == 2:
            return reply[1]
        if reply[0] == FAILED and len(reply) == 2 and isinstance(reply[1], str):
            raise AgentFailedError(reply[1])
        raise AgentFailedError("it sent an invalid answer")


class SocketActionQueue(ActionQueue):
    """An action queue over a socket that only the agent has, so it needs no token."""

    def __init__(self, line: AgentSocket) -> None:
        super().__init__()
        self._line = line
        threading.Thread(target=self._serve, daemon=True, name="action-queue").start()

    def show(self, frame: Frame) -> None:
        body = msgspec.msgpack.encode(frame)
        with self._changed:
            self._tick, self._frame = frame.tick, body
            self._changed.notify_all()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                try:
                    asked = self._line.receive()
                    if asked is None:
                        return
                    after = self._heed(asked)
                except (AgentFailedError, IllegalActionError) as error:
                    self._line.send(FAILED, str(error))
                    continue
                self._line.send(*self._next(after))

    def _heed(self, asked: list[Any]) -> int:
        """Handles a request; returns the tick after which the agent wants an observation."""
        arrived = time.monotonic_ns()
        if len(asked) != 2 or asked[0] not in (LOOK, MOVE):
            raise AgentFailedError("it sent an unknown request")
        if asked[0] == LOOK:
            if type(asked[1]) is not int:
                raise AgentFailedError("after is the number of a tick")
            self.looked.set()
            return asked[1]
        try:
            move = msgspec.convert(asked[1], PendingAction)
        except msgspec.ValidationError as error:
            raise AgentFailedError(f"not an action: {error}") from None
        self._bring(move, arrived)
        return move.tick

    def _next(self, after: int) -> tuple[Any, ...]:
        """The newest observation, once there is one after this tick."""
        with self._changed:
            self._changed.wait_for(lambda: self._tick > after or not self._open, POLL)
            if self._tick > after:
                return DONE, self._frame
            return (NOTHING,) if self._open else (CLOSED,)


class IsolatedAgent:
    """Hosts an agent in its sandbox."""

    def __init__(self, recipe: Recipe, host: Host) -> None:
        self._policy, self._pulse = Policy(recipe), host.pulse
        self._line = AgentSocket(host.handed[0])

    def begin(self, seed: int, info: dict[str, Any]) -> None:
        """Resets the agent, before a timed clock starts."""
        self._pulse.clear()
        self._pulse.begin(IN_AGENT)
        self._policy.begin(seed, msgspec.convert(info, EnvDescription))
        self._pulse.clear()

    def attend(self) -> None:
        """With the clock `step`: answers until the environment is gone."""
        while (asked := self._line.receive()) is not None:
            try:
                answer = self._answer(*asked)
            except AgentFailedError as error:
                self._line.send(FAILED, str(error))
                continue
            try:
                self._line.send(DONE, answer)
            except (TypeError, ValueError, OverflowError, RecursionError) as error:
                self._line.send(FAILED, f"its action cannot be sent: {described(error).text}")

    def _answer(self, kind: str, *values: Any) -> Any:
        if kind == BEGIN:
            self._policy.begin(values[0], msgspec.convert(values[1], EnvDescription))
            return None
        action = self._policy.decide(observations.unpack(values[0]))
        try:
            return plain(action)
        except BaseException as error:  # an action may be an object with methods of its own
            raise AgentFailedError(f"its action raised {described(error).text}") from error

    def play(self, url: str, token: str) -> None:
        """With the other clocks: plays until the episode is over."""
        tick = -1
        asked: tuple[Any, ...] = (LOOK, tick)
        while True:
            try:
                self._line.send(*asked)
                reply = self._line.receive()
            except OSError as error:
                raise EnvGoneError(f"{type(error).__name__}: {error}") from error
            if reply is None:
                raise EnvGoneError("the connection is lost")
            asked = (LOOK, tick)
            if reply[0] == CLOSED:
                return
            if reply[0] == FAILED:
                raise IllegalActionError(reply[1])
            if reply[0] == NOTHING:
                continue
            frame = msgspec.msgpack.decode(reply[1], type=Frame)
            if frame.over:
                return
            tick, seen = frame.tick, time.monotonic_ns()
            observation = observations.unpack(frame.observation)
            self._pulse.begin(IN_AGENT)
            action = plain(self._policy.decide(observation))
            self._pulse.end()
            asked = (MOVE, PendingAction(tick, action, seen, time.monotonic_ns()))
