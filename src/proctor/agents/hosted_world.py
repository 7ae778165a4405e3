"""A world in its process, with the agent beside it when the world waits for it."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from proctor.agents.channel import IN_AGENT
from proctor.agents.episode import About, Episode, View
from proctor.agents.events import Ending
from proctor.agents.host import Host, described
from proctor.agents.outcome import Outcome
from proctor.agents.play import Play, World, WorldFailedError
from proctor.agents.policy import Policy
from proctor.agents.recipe import Recipe
from proctor.agents.spaces import IllegalActionError


class HostedWorld:
    """The role: called by the referee, one episode after the other."""

    def __init__(self, recipe: Recipe, host: Host) -> None:
        self._world, self._host = World(recipe.made()), host
        self._policy: Policy | None = None
        self._play: Play | None = None
        self._seen: Any = None

    def about(self) -> Any:
        return msgspec.to_builtins(About(self._world.actions, self._world.threshold))

    def take_agent(self, recipe: bytes) -> None:
        self._policy = Policy(msgspec.msgpack.decode(recipe, type=Recipe))

    def begin(self, told: dict[str, Any]) -> Any:
        """Resets the world; gives an ending if that fails."""
        self._play = Play(self._world, msgspec.convert(told, Episode), self._host.pulse)
        try:
            self._seen = self._play.begin()
        except WorldFailedError as error:
            return _told(self._play.end(Outcome.ENV_CRASH, str(error)))
        return None

    def play(self) -> Any:
        """The whole episode: the world and the agent in turns."""
        play, policy, pulse = self._begun, self._policy, self._host.pulse
        assert policy is not None
        act, observation, deadline = policy.act, self._seen, play.deadline
        try:
            pulse.begin(IN_AGENT)
            policy.begin(play.episode.agent_seed, play.info)
            while not play.over:
                if time.monotonic_ns() >= deadline:
                    return _told(play.end(Outcome.TIMEOUT, "time was up"))
                pulse.begin(IN_AGENT)
                action = act(observation)
                pulse.end()
                if action is None:
                    raise IllegalActionError("None is no action")
                observation = play.step(action)
        except WorldFailedError as error:
            return _told(play.end(Outcome.ENV_CRASH, str(error)))
        except BaseException as error:  # also what only ends a program: it must not end this one
            return _told(play.end(Outcome.AGENT_CRASH, described(error).text))
        return _told(play.end())

    def look(self) -> Any:
        """The observation in words."""
        play = self._begun
        return msgspec.to_builtins(View(self._world.in_words(self._seen), play.last_reward, play.length, play.over))

    def step(self, action: Any) -> Any:
        """For an agent elsewhere that the world waits for: the next view, or the ending if the world fails."""
        try:
            self._seen = self._begun.step(action)
            self._host.pulse.end()
            return self.look()
        except WorldFailedError as error:
            return _told(self._begun.end(Outcome.ENV_CRASH, str(error)))

    def end(self, outcome: str, why: str) -> Any:
        return _told(self._begun.end(Outcome(outcome), why))

    @property
    def _begun(self) -> Play:
        assert self._play is not None
        return self._play


def _told(ending: Ending) -> Any:
    return msgspec.to_builtins(ending)
