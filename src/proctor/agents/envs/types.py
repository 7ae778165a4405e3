"""The messages between referee, environment and agent."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from proctor.agents.envs.event_log import Header
from proctor.agents.envs.spaces import Space
from proctor.agents.outcome import EpisodeOutcome

Clock = Literal["step", "realtime", "paused"]
Idle = Literal["noop", "repeat"]
AGENT_ENDED = "the agent's process has ended"  # what the environment of an isolated agent sees


class Episode(Struct, frozen=True):
    """An episode to play: its limits, clock and log."""

    header: Header
    log: str
    agent_seed: int
    timeout: float
    clock: Clock = "step"
    max_steps: int | None = None
    success_reward: float | None = None
    fps: float = 30.0
    idle: Idle = "noop"
    in_words: bool = False  # observations are text


class EnvDescription(Struct, frozen=True):
    """The argument `world_info` of an agent's method reset(seed, world_info)."""

    name: str
    actions: Space
    clock: Clock
    fps: float


class EnvInfo(Struct, frozen=True):
    """What the referee needs to know of an environment."""

    actions: Space
    threshold: float | None  # its reward threshold for success


class PromptView(Struct, frozen=True):
    """A step as a language model sees it."""

    text: str
    reward: float | None  # of the last action
    step: int
    over: bool = False
    observation: bytes = b""  # packed, for a remote agent, which gets no text


class EpisodeFault(Exception):  # noqa: N818 - an outcome
    """Ends an episode before its regular end."""

    def __init__(self, outcome: EpisodeOutcome, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome


def success(reported: bool | None, reward: float, required: float | None, threshold: float | None) -> bool | None:
    """Success by the user's required reward, by the environment's report, or by its threshold; None if unknown."""
    if required is not None:
        return reward >= required
    if reported is not None:
        return reported
    return None if threshold is None else reward >= threshold
