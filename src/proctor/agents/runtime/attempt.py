"""An attempt at an episode, which is the output of an evaluator task, and the rule for retries."""

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
INTERRUPTED = "the run was interrupted while the agent played"


class Attempt(Struct, frozen=True):
    """One attempt at an episode, as it is stored."""

    outcome: EpisodeOutcome
    metrics: dict[str, Any]
    notes: str
    elapsed: float
    overshoot: float
    actions: int
    usage: Usage = Usage()  # of a model that plays
    lags: dict[str, Lags] = {}
    by_agent: bool = False  # the environment or the evaluator was lost after the agent had begun
    seed: int | None = None  # each attempt has its own
    interrupted: bool = False  # by the end of the run
    held: str = ""  # where the agent ran: trusted, isolated at a level, or remote
    turns: list[Turn] = []  # of a model that plays


class Attempts:
    """Decides whether an episode is retried.

    An episode is played once. It is retried only if it failed before the agent had begun, up to `most` attempts, or
    if the run was interrupted. A retry has another seed if the agent may have seen anything: otherwise a losing
    agent could have its attempt repeated.
    """

    def __init__(self, most: int) -> None:
        self._left = most

    def should_retry(self, outcome: EpisodeOutcome, by_agent: bool, interrupted: bool = False) -> bool:
        if interrupted:
            return True
        self._left -= 1
        return outcome in LOSSES and not by_agent and self._left > 0


def another_seed(seed: int, epoch: int, number: int) -> int:
    """The seed of an attempt; attempts count from 0."""
    return seed if number == 0 else mix(seed, epoch, number, RETRY) >> 33


def interrupted(events: Path, seed: int | None, held: str) -> Attempt | None:
    """The attempt that had begun when the run was interrupted, if its log says so."""
    if not has_begun(events):
        return None
    return Attempt(EpisodeOutcome.STOPPED, {}, INTERRUPTED, 0.0, 0.0, 0, seed=seed, interrupted=True, held=held)
