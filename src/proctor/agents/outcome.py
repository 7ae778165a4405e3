"""How an evaluation can end."""

from __future__ import annotations

from enum import StrEnum


class EpisodeOutcome(StrEnum):
    """How an evaluation ended. Only the first two are play, and have a score."""

    COMPLETED = "completed"  # the agent or the evaluator said that it is over
    TIMEOUT = "timeout"
    AGENT_CRASH = "agent_crash"  # it raised, its process died, or it cannot be reached any more
    AGENT_HANG = "agent_hang"  # it was deep in one call when time was up
    ENV_CRASH = "env_crash"
    JUDGE_ERROR = "judge_error"
    STOPPED = "stopped"  # by hand

    @property
    def is_play(self) -> bool:
        return self in (EpisodeOutcome.COMPLETED, EpisodeOutcome.TIMEOUT)


# Faults of the environment or the evaluator. Before the agent has begun they are tried again, with another seed;
# once it has, it may have caused them itself: then there is no other attempt.
LOSSES = (EpisodeOutcome.ENV_CRASH, EpisodeOutcome.JUDGE_ERROR)
PLAYED = "played"  # the outcome of an episode of which nobody says what success is


class EnvironmentCrashedError(Exception):
    """Raised by an evaluator that finds the environment gone: no play, and no score.

    Raised by an agent it is a crash of the agent, unless the evaluator or the referee finds the same.
    """
