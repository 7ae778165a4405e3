"""Hosts an agent in its process, behind the server for remote agents."""

from __future__ import annotations

import inspect
import io
from typing import Any

import msgspec
import numpy

from proctor.agents.envs import observations
from proctor.agents.envs.agents import AgentFailedError, Policy, is_playable
from proctor.agents.envs.spaces import plain
from proctor.agents.envs.types import EnvDescription
from proctor.agents.remote.messages import CONTENT_TYPES, WindowAnswer, window_answer
from proctor.agents.runtime.hosting.channel import IN_AGENT
from proctor.agents.runtime.hosting.host import Host, described
from proctor.agents.runtime.hosting.recipe import Recipe


class HostedRemoteAgent:
    """Windows need a class with act(frame); environments need act(observation), or a function."""

    def __init__(self, recipe: Recipe, host: Host) -> None:
        target = recipe.load()
        if not is_playable(target):
            raise TypeError(f"{recipe.name} cannot play: it is neither a function nor has it a method act")
        self._pulse = host.pulse
        self._agent = recipe.build() if inspect.isclass(target) else target
        self._act = getattr(self._agent, "act", self._agent)
        self._policy = Policy.of(self._agent)

    def begin_window(self, task: dict[str, Any]) -> None:
        begin = getattr(self._agent, "begin", None)
        if begin is not None:
            self._ask(begin, task)

    def begin_env(self, seed: int, info: dict[str, Any]) -> None:
        self._policy.begin(seed, msgspec.convert(info, EnvDescription))

    def act_in_window(self, body: bytes, content_type: str, size: str) -> bytes:
        """Returns the answer as JSON; validates it here, where the agent's author sees the error."""
        reply = self._ask(self._act, unpacked(body, content_type, size))
        if reply is None:
            return msgspec.json.encode(WindowAnswer(done=True))
        try:
            actions = [{"do": "tap", "key": part} if isinstance(part, str) else part for part in reply]
            answer = msgspec.json.encode({"actions": actions})
            window_answer(answer)
        except Exception as error:
            raise AgentFailedError(f"its answer is not a list of actions: {described(error).text}") from error
        return answer

    def act_in_env(self, body: bytes) -> bytes:
        self._pulse.begin(IN_AGENT)
        try:
            action = self._policy.decide(observations.unpack(body))
            return msgspec.json.encode({"action": plain(action)})
        except AgentFailedError:
            raise
        except Exception as error:
            raise AgentFailedError(f"its action cannot be sent: {described(error).text}") from error
        finally:
            self._pulse.end()

    def _ask(self, method: Any, argument: Any) -> Any:
        self._pulse.begin(IN_AGENT)
        try:
            return method(argument)
        except BaseException as error:  # also what only ends a program: it must not end this one
            raise AgentFailedError(described(error).text) from error
        finally:
            self._pulse.end()


def unpacked(body: bytes, content_type: str, size: str) -> numpy.ndarray[Any, Any]:
    """A frame as rows of red, green and blue."""
    if content_type == CONTENT_TYPES["raw"]:
        width, _, height = size.partition("x")
        return numpy.frombuffer(body, numpy.uint8).reshape(int(height), int(width), 3).copy()
    from PIL import Image

    with Image.open(io.BytesIO(body)) as image:
        return numpy.asarray(image.convert("RGB"))
