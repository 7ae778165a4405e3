"""Hosts an environment in its process, together with the agent if the environment waits for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.agents.envs import observations
from proctor.agents.envs.agents import AgentFailedError, Policy
from proctor.agents.envs.event_log import EpisodeEnding
from proctor.agents.envs.spaces import IllegalActionError
from proctor.agents.envs.step_play import EnvFailedError, Environment, Play
from proctor.agents.envs.types import EnvInfo, Episode, PromptView
from proctor.agents.outcome import EpisodeOutcome
from proctor.agents.runtime.hosting.channel import IN_AGENT
from proctor.agents.runtime.hosting.host import Host
from proctor.agents.runtime.hosting.recipe import Recipe

if TYPE_CHECKING:
    from proctor.agents.envs.isolated_agent import IsolatedPolicy
    from proctor.agents.envs.pending_actions import ActionQueue


class HostedEnv:
    """The role: called by the referee, one episode after the other."""

    def __init__(self, recipe: Recipe, host: Host) -> None:
        self._env, self._host = Environment(recipe.build()), host
        self._policy: Policy | IsolatedPolicy | None = None
        self._play: Play | None = None
        self._observation: Any = None
        self._action_queue: ActionQueue | None = None

    def about(self) -> Any:
        return msgspec.to_builtins(EnvInfo(self._env.actions, self._env.threshold))

    def take_agent(self, recipe: bytes) -> None:
        self._policy = Policy(msgspec.msgpack.decode(recipe, type=Recipe))

    def take_line(self) -> None:
        """Uses an isolated agent through a socket that only the two have."""
        from proctor.agents.envs.isolated_agent import LARGEST_REPLY, AgentSocket, IsolatedPolicy

        self._policy = IsolatedPolicy(AgentSocket(self._host.handed[0], LARGEST_REPLY))

    def begin(self, message: dict[str, Any]) -> Any:
        """Resets the environment; returns an ending if that fails."""
        if self._play is not None:
            self._play.close()
        self._play = Play(self._env, msgspec.convert(message, Episode), self._host.pulse)
        try:
            self._observation = self._play.begin()
        except EnvFailedError as error:
            return _to_builtins(self._play.end(error.outcome, str(error)))
        return None

    def play(self) -> Any:
        """Plays the whole episode: environment and agent in turns."""
        play, policy, pulse = self._begun, self._policy, self._host.pulse
        assert policy is not None
        act, observation, deadline = policy.decide, self._observation, play.deadline
        try:
            pulse.begin(IN_AGENT)
            policy.begin(play.episode.agent_seed, play.info)
            while not play.over:
                if time.monotonic_ns() >= deadline:
                    return _to_builtins(play.end(EpisodeOutcome.TIMEOUT, "time was up"))
                pulse.begin(IN_AGENT)
                observation = play.step(act(observation))
        except (AgentFailedError, IllegalActionError) as error:
            return _to_builtins(play.end(EpisodeOutcome.AGENT_CRASH, str(error)))
        except EnvFailedError as error:
            return _to_builtins(play.end(error.outcome, str(error)))
        return _to_builtins(play.end())

    def build_action_queue(self) -> None:
        """Called before the first timed episode, so that it does not delay a running one."""
        if self._host.handed:
            from proctor.agents.envs.isolated_agent import LARGEST_REPLY, AgentSocket, SocketActionQueue

            self._action_queue = SocketActionQueue(AgentSocket(self._host.handed[0], LARGEST_REPLY))
            return
        from proctor.agents.envs.observation_server import (
            ObservationServer,  # slow to import, and most environments do not need it
        )

        self._action_queue = ObservationServer()

    def serve(self, token: str) -> int:
        """Opens the episode to an agent in another process that knows the token; returns the port."""
        assert self._action_queue is not None
        self._action_queue.open(token, self._env.actions.take)
        return self._action_queue.port

    def play_timed(self) -> Any:
        """Plays the whole episode by the clock."""
        from proctor.agents.envs.timed_play import TimedPlay

        assert self._action_queue is not None
        return _to_builtins(TimedPlay(self._begun, self._action_queue).run(self._observation))

    def look(self) -> Any:
        """Returns the observation as text, or packed if the agent does not read."""
        play = self._begun
        if not play.episode.in_words:
            packed = observations.pack(self._observation)
            view = PromptView("", play.last_reward, play.length, play.over, packed)
            return msgspec.to_builtins(view, builtin_types=(bytes,))
        return msgspec.to_builtins(
            PromptView(self._env.in_words(self._observation), play.last_reward, play.length, play.over)
        )

    def step(self, action: Any) -> Any:
        """Takes a step for an agent in another process; returns the next view, or the ending if the step fails."""
        try:
            self._observation = self._begun.step(action)
            self._begun.rest()
            return self.look()
        except IllegalActionError as error:
            return _to_builtins(self._begun.end(EpisodeOutcome.AGENT_CRASH, str(error)))
        except EnvFailedError as error:
            return _to_builtins(self._begun.end(error.outcome, str(error)))

    def end(self, outcome: str, why: str) -> Any:
        return _to_builtins(self._begun.end(EpisodeOutcome(outcome), why))

    def close_env(self) -> None:
        """Closes the environment, which removes its files and shared memory."""
        self._env.close()

    @property
    def _begun(self) -> Play:
        assert self._play is not None
        return self._play


def _to_builtins(ending: EpisodeEnding) -> Any:
    return msgspec.to_builtins(ending)
