"""An attempt at an episode: the output of a task that an evaluator judges; and the rule for another attempt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from proctor.agents.outcome import LOSSES, EpisodeOutcome
from proctor.agents.runtime.event_log import has_begun
from proctor.agents.runtime.lags import Lags
from proctor.agents.vision.turns import Turn
from proctor.core.random import mix
from proctor.core.types import Usage

RETRY = 2  # mixed into the seed of an episode
INTERRUPTED = "the run was cut short while the agent played"


class Attempt(Struct, frozen=True):
    """One attempt at an episode, as it is kept."""

    outcome: EpisodeOutcome
    metrics: dict[str, Any]
    notes: str
    elapsed: float
    overshoot: float
    actions: int
    usage: Usage = Usage()  # of a model that plays
    lags: dict[str, Lags] = {}
    by_agent: bool = False  # the environment or the evaluator was lost after the agent had begun
    seed: int | None = None  # of this attempt: another one has another
    interrupted: bool = False  # by the end of the run
    held: str = ""  # where the agent was: trusted, isolated at a level, or remote
    turns: list[Turn] = []  # of a model that plays


class Attempts:
    """Whether an episode is tried again.

    An episode is played once. Only what failed before the agent had begun is tried again, so many times in all, and
    what was cut short together with the run. An attempt of which the agent may have seen anything is never repeated
    with its seed: else whoever fares badly could have it forgotten.
    """

    def __init__(self, most: int) -> None:
        self._left = most

    def should_retry(self, outcome: EpisodeOutcome, by_agent: bool, interrupted: bool = False) -> bool:
        if interrupted:
            return True
        self._left -= 1
        return outcome in LOSSES and not by_agent and self._left > 0


def another_seed(seed: int, epoch: int, number: int) -> int:
    """For the attempt of this number, counted from 0."""
    return seed if number == 0 else mix(seed, epoch, number, RETRY) >> 33


def interrupted(events: Path, seed: int | None, held: str) -> Attempt | None:
    """What is left of an attempt, if it had begun when the run was cut short."""
    if not has_begun(events):
        return None
    return Attempt(EpisodeOutcome.STOPPED, {}, INTERRUPTED, 0.0, 0.0, 0, seed=seed, interrupted=True, held=held)
