"""How an evaluation can end."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
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
        return self in (Outcome.COMPLETED, Outcome.TIMEOUT)


# Faults that say nothing about the agent: the episode is tried again.
NOT_THE_AGENTS = (Outcome.ENV_CRASH, Outcome.JUDGE_ERROR)


class EnvironmentCrashedError(Exception):
    """Raised by an evaluator that finds the environment gone: no play, and no score."""
