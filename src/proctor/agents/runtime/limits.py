"""What an agent and its environment may take of time and memory: settings of every task for agents."""

from __future__ import annotations

from typing import Annotated, Self

from msgspec import Meta, Struct, structs

from proctor.agents.constants import LONGEST_TASK, LONGEST_THOUGHT, TIMEOUTS
from proctor.agents.runtime.clock import ClockName
from proctor.core import machine

Seconds = Annotated[float, Meta(gt=0, le=LONGEST_TASK)]
GiB = Annotated[float, Meta(gt=0, le=1_000_000)]

SHARE = 0.8  # of the machine's memory that all episodes may have together, unless told otherwise


class RuntimeLimits(Struct, frozen=True):
    """What holds for each of the two sides, whatever is played."""

    startup_timeout: Seconds = TIMEOUTS.CREATION  # for the constructor: models are loaded in it
    setup_timeout: Seconds = TIMEOUTS.SETUP  # for _setup_environment, or for reset
    memory: GiB | None = None  # that each side may have; else a share of what the machine has

    def memory_bytes(self) -> int:
        """What one side may have: its process and all that it has started."""
        if self.memory is None:
            return int(machine.memory_limit_mib() * 2**20 * SHARE)
        return int(self.memory * 2**30)

    def shared_by(self, parallel: int) -> Self:
        """The same where so many episodes run at once on the machine."""
        return self if self.memory else structs.replace(self, memory=self.memory_bytes() / parallel / 2**30)


class EpisodeLimits(RuntimeLimits, frozen=True):
    """What holds for an episode that an evaluator judges."""

    clock: ClockName = "realtime"  # paused: the environment waits while the agent thinks
    longest_thought: Seconds = LONGEST_THOUGHT
    timeout: Seconds = 60.0
    scoring_timeout: Seconds = TIMEOUTS.SCORING  # for _score_task
    # What fails before the agent has begun is tried again, with another seed.
    attempts: Annotated[int, Meta(ge=1, le=100)] = 2
