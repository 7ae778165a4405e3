"""One episode, in the environment's process: takes every step and writes it into the log."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

from proctor.agents.envs import observations, spaces
from proctor.agents.envs.event_log import EpisodeEnding, StepLog, StepState
from proctor.agents.envs.types import EnvDescription, Episode, success
from proctor.agents.outcome import EpisodeOutcome
from proctor.agents.runtime.hosting.channel import IN_ENV, Pulse
from proctor.agents.runtime.hosting.host import described
from proctor.agents.success import SuccessError, read_decision

NOOPS = ("noop", "no-op", "none", "stay", "nothing", "still")  # names of the action that does nothing


class EnvFailedError(Exception):
    """The environment raised something, or reported an invalid success."""

    def __init__(self, what: str, error: BaseException) -> None:
        super().__init__(f"{what} raised {described(error).text}")
        self.outcome = EpisodeOutcome.JUDGE_ERROR if isinstance(error, SuccessError) else EpisodeOutcome.ENV_CRASH


class Environment:
    """An environment with Gymnasium's methods, its action space and its threshold."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped
        names = tuple(str(name) for name in getattr(wrapped, "action_names", ()))
        self.actions = spaces.described(wrapped.action_space, names)
        self.threshold: float | None = getattr(getattr(wrapped, "spec", None), "reward_threshold", None)

    def noop(self) -> Any:
        """The action of a tick without an action."""
        if hasattr(self.wrapped, "idle_action"):
            return self.wrapped.idle_action
        actions = self.actions
        if isinstance(actions, spaces.Choice):
            for number, name in enumerate(actions.names, actions.start):
                if name.casefold() in NOOPS:
                    return number
        return actions.first

    def close(self) -> None:
        close = getattr(self.wrapped, "close", None)
        if close is not None:
            close()

    def in_words(self, observation: Any) -> str:
        own = getattr(self.wrapped, "text", None)
        return observations.in_words(observation) if own is None else str(own(observation))


class Play:
    """A running episode."""

    def __init__(self, env: Environment, episode: Episode, pulse: Pulse) -> None:
        self.env, self.episode = env, episode
        self.info = EnvDescription(episode.header.task, env.actions, episode.clock, episode.fps)
        self.length = self.idle = 0
        self.reward = 0.0
        self.over = episode.max_steps == 0
        self.last_reward: float | None = None
        self._pulse = pulse
        self._step = env.wrapped.step
        self._take = env.actions.take
        self._log = StepLog(Path(episode.log), episode.header)
        self._most = math.inf if episode.max_steps is None else episode.max_steps
        self._reported_success: bool | None = None  # by the environment
        self._last_action: Any = None
        self._started = 0

    def begin(self) -> Any:
        """The first observation."""
        self._pulse.begin(IN_ENV)
        try:
            observation, info = self.env.wrapped.reset(seed=self.episode.header.seed)
            frame = observations.fingerprint(observation)
            if info:
                self._note_success(info)
        except BaseException as error:  # also what only ends a program: it must not end this one
            raise EnvFailedError("reset", error) from error
        self._started = time.monotonic_ns()
        self._log.add(self._started, StepState(None, None, False, False, frame), self._reported_success)
        self._pulse.clear()
        return observation

    @property
    def deadline(self) -> int:
        return self._started + int(self.episode.timeout * 1e9)

    def step(self, action: Any, timing: dict[str, int] | None = None) -> Any:
        """Returns the next observation. None stands for no action: the environment gets its idle action."""
        if action is None:
            taken = self._idle_action()
        else:
            try:
                taken = self._take(action)
            except spaces.IllegalActionError:
                raise
            except BaseException as error:  # an action may be an object with methods of its own
                kind, why = type(action).__name__, described(error).text
                raise spaces.IllegalActionError(f"its action, of type {kind}, raised {why}") from error
        self._last_action = taken
        self._pulse.begin(IN_ENV)
        try:
            observation, reward, terminated, truncated, info = self._step(taken)
            self.last_reward = reward = float(reward)
            if not math.isfinite(reward):
                raise ValueError(f"a reward of {reward}")
            frame = observations.fingerprint(observation)
            if info:
                self._note_success(info)
        except BaseException as error:
            raise EnvFailedError(f"step {self.length + 1}", error) from error
        self.length += 1
        self.reward += reward
        self.over = bool(terminated or truncated) or self.length >= self._most
        state = StepState(spaces.plain(taken), reward, bool(terminated), bool(truncated), frame)
        self._log.add(time.monotonic_ns(), state, self._reported_success, timing)
        return observation

    def _idle_action(self) -> Any:
        self.idle += 1
        if self.episode.idle == "repeat" and self._last_action is not None:
            return self._last_action
        try:
            return self._take(self.env.noop())
        except spaces.IllegalActionError as error:
            raise EnvFailedError("its idle action", error) from error

    def rest(self) -> None:
        """Marks the time until the next step as idle."""
        self._pulse.end()

    def _note_success(self, info: Any) -> None:
        reported = info.get("is_success", info.get("success"))
        if reported is not None:
            self._reported_success = read_decision(reported)

    def close(self) -> None:
        self._pulse.clear()
        self._log.close()

    def end(self, outcome: EpisodeOutcome = EpisodeOutcome.COMPLETED, why: str = "", **figures: Any) -> EpisodeEnding:
        self.close()
        succeeded = success(self._reported_success, self.reward, self.episode.success_reward, self.env.threshold)
        seconds = (time.monotonic_ns() - self._started) / 1e9 if self._started else 0.0
        return EpisodeEnding(
            outcome,
            self.reward,
            self.length,
            succeeded if outcome.is_play else None,
            why,
            self._log.trace,
            seconds,
            self.episode.clock,
            idle=self.idle,
            **figures,
        )
