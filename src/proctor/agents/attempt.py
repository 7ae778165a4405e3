"""An attempt at an episode: the output of an exam of evaluators."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from proctor.agents.lags import Lags
from proctor.agents.outcome import Outcome
from proctor.agents.turns import Turn
from proctor.types import Usage


class Attempt(Struct, frozen=True):
    """One attempt at an episode, as it is kept."""

    outcome: Outcome
    metrics: dict[str, Any]
    notes: str
    elapsed: float
    overshoot: float
    actions: int
    usage: Usage = Usage()  # of a model that plays
    lags: dict[str, Lags] = {}
    turns: list[Turn] = []  # of a model that plays
