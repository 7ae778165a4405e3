"""The words in which referee, world and agent speak of an episode."""

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
    """What is played, for how long, and where it is written down."""

    header: Header
    log: str
    agent_seed: int
    timeout: float
    clock: Clock = "step"
    max_steps: int | None = None
    success_reward: float | None = None
    fps: float = 30.0
    idle: Idle = "noop"
    in_words: bool = False  # what the agent sees


class EnvDescription(Struct, frozen=True):
    """What an agent is told about the world before an episode, if it has a method reset(seed, world_info)."""

    name: str
    actions: Space
    clock: Clock
    fps: float


class EnvInfo(Struct, frozen=True):
    """What the referee wants to know of a world."""

    actions: Space
    threshold: float | None  # the reward that it asks for


class PromptView(Struct, frozen=True):
    """What a language model is shown of a step."""

    text: str
    reward: float | None  # of the last action
    step: int
    over: bool = False
    observation: bytes = b""  # packed, for an agent elsewhere, which has no text


class EpisodeFault(Exception):  # noqa: N818 - an outcome, to be told and not to be mended
    """Why an episode ended before its end."""

    def __init__(self, outcome: EpisodeOutcome, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome


def success(reported: bool | None, reward: float, required: float | None, threshold: float | None) -> bool | None:
    """By the reward that the user wants, by what the world says, or by the reward that it asks for; or nobody knows."""
    if required is not None:
        return reward >= required
    if reported is not None:
        return reported
    return None if threshold is None else reward >= threshold
