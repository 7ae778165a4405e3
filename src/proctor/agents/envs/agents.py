"""Agents for stepped environments: a class with act(observation), or a function of the observation."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any

from proctor.agents.envs.types import EnvDescription
from proctor.agents.runtime.hosting.host import described
from proctor.agents.runtime.hosting.recipe import Recipe


class AgentFailedError(Exception):
    """The agent raised something."""


class Policy:
    """Wraps an agent of either form."""

    def __init__(self, recipe: Recipe) -> None:
        target = recipe.load()
        if not is_playable(target):
            raise TypeError(f"{recipe.name} cannot play: it is neither a function nor has it a method act(observation)")
        self._take(recipe.build() if inspect.isclass(target) else target)

    @classmethod
    def of(cls, agent: Any) -> Policy:
        """Wraps an existing object."""
        policy = cls.__new__(cls)
        policy._take(agent)
        return policy

    def _take(self, agent: Any) -> None:
        self._act: Callable[[Any], Any] = getattr(agent, "act", agent)
        self._reset = getattr(agent, "reset", None)

    def begin(self, seed: int, info: EnvDescription) -> None:
        import numpy

        # For agents that use the global generators: the same seed gives the same actions.
        random.seed(seed)
        numpy.random.seed(seed)
        if self._reset is not None:
            try:
                self._reset(seed, info)
            except BaseException as error:
                raise AgentFailedError(f"reset raised {described(error).text}") from error

    def decide(self, observation: Any) -> Any:
        """Returns the next action."""
        try:
            action = self._act(observation)
        except BaseException as error:  # also SystemExit and the like
            raise AgentFailedError(described(error).text) from error
        if action is None:
            raise AgentFailedError("it gave None, which is not an action")
        return action


def is_playable(target: Any) -> bool:
    return hasattr(target, "act") or (callable(target) and not inspect.isclass(target))


class RandomAgent:
    """Draws actions uniformly."""

    def reset(self, seed: int, world_info: EnvDescription) -> None:
        import numpy

        self._generator = numpy.random.default_rng(seed)
        self._actions = world_info.actions

    def act(self, observation: Any) -> Any:
        return self._actions.draw(self._generator)


RANDOM = Recipe(__name__, RandomAgent.__name__)
