"""The outcomes of an episode."""

from __future__ import annotations

from enum import StrEnum


class EpisodeOutcome(StrEnum):
    """How an episode ended. Only the first two have a score."""

    COMPLETED = "completed"  # the agent or the evaluator said that it is over
    TIMEOUT = "timeout"
    AGENT_CRASH = "agent_crash"  # it raised, its process died, or it cannot be reached
    AGENT_HANG = "agent_hang"  # it had been in one call for too long when time was up
    ENV_CRASH = "env_crash"
    JUDGE_ERROR = "judge_error"
    STOPPED = "stopped"  # by hand

    @property
    def is_play(self) -> bool:
        return self in (EpisodeOutcome.COMPLETED, EpisodeOutcome.TIMEOUT)


# Faults of the environment or the evaluator. Before the agent has begun they are retried with another seed;
# afterwards they are not: the agent may have caused them.
LOSSES = (EpisodeOutcome.ENV_CRASH, EpisodeOutcome.JUDGE_ERROR)
PLAYED = "played"  # the outcome of an episode without a criterion of success


class EnvironmentCrashedError(Exception):
    """Raised by an evaluator when the environment is gone: the episode has no score.

    Raised by an agent it is a crash of the agent, unless the evaluator or the referee confirms it.
    """
