"""Limits of time and memory for an agent and its environment: settings of every agent task."""

from __future__ import annotations

from typing import Annotated, Self

from msgspec import Meta, Struct, structs

from proctor.agents.constants import LONGEST_TASK, LONGEST_THOUGHT, TIMEOUTS
from proctor.agents.runtime.clock import ClockName
from proctor.core import machine

Seconds = Annotated[float, Meta(gt=0, le=LONGEST_TASK)]
GiB = Annotated[float, Meta(gt=0, le=1_000_000)]

SHARE = 0.8  # of the machine's memory, by default, for all episodes together


class RuntimeLimits(Struct, frozen=True):
    """Limits of each side, in windows and in stepped environments."""

    startup_timeout: Seconds = TIMEOUTS.CREATION  # for the constructor: models are loaded in it
    setup_timeout: Seconds = TIMEOUTS.SETUP  # for _setup_environment, or for reset
    memory: GiB | None = None  # that each side may have; else a share of what the machine has

    def memory_bytes(self) -> int:
        """The limit of one side: its process and all that it has started."""
        if self.memory is None:
            return int(machine.memory_limit_mib() * 2**20 * SHARE)
        return int(self.memory * 2**30)

    def shared_by(self, parallel: int) -> Self:
        """The limits when so many episodes run at once on the machine."""
        return self if self.memory else structs.replace(self, memory=self.memory_bytes() / parallel / 2**30)


class EpisodeLimits(RuntimeLimits, frozen=True):
    """Limits of an episode with an evaluator."""

    clock: ClockName = "realtime"  # paused: the environment waits while the agent thinks
    longest_thought: Seconds = LONGEST_THOUGHT
    timeout: Seconds = 60.0
    scoring_timeout: Seconds = TIMEOUTS.SCORING  # for _score_task
    # An episode that fails before the agent has begun is retried with another seed.
    attempts: Annotated[int, Meta(ge=1, le=100)] = 2
