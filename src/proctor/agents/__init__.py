"""Agents that play in real time, and evaluators that score them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.core.lazy import lazy_exports

if TYPE_CHECKING:
    from proctor.agents.agent import Agent
    from proctor.agents.constants import NETWORK, TIMEOUTS, TIMES
    from proctor.agents.evaluator import Evaluator
    from proctor.agents.outcome import EnvironmentCrashedError, EpisodeOutcome
    from proctor.agents.remote.agent import RemoteAgent
    from proctor.agents.runtime.locking import env_lock
    from proctor.agents.runtime.waiting import thinking
    from proctor.agents.server.client import (
        run_evaluation_client,
        run_evaluation_client_with_server,
        run_evaluation_client_with_server_parallel,
    )
    from proctor.agents.types import EvaluationResult, Task

__all__ = [
    "NETWORK",
    "TIMEOUTS",
    "TIMES",
    "Agent",
    "EnvironmentCrashedError",
    "EpisodeOutcome",
    "EvaluationResult",
    "Evaluator",
    "RemoteAgent",
    "Task",
    "env_lock",
    "run_evaluation_client",
    "run_evaluation_client_with_server",
    "run_evaluation_client_with_server_parallel",
    "thinking",
]


def _explain_missing(name: str, error: ModuleNotFoundError) -> Exception:
    from proctor.core.extras import missing_extra

    return missing_extra(f"proctor.agents.{name}", error) or error


__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "NETWORK": "constants",
        "TIMEOUTS": "constants",
        "TIMES": "constants",
        "Agent": "agent",
        "EnvironmentCrashedError": "outcome",
        "EvaluationResult": "types",
        "Evaluator": "evaluator",
        "EpisodeOutcome": "outcome",
        "RemoteAgent": "remote.agent",
        "Task": "types",
        "env_lock": "runtime.locking",
        "run_evaluation_client": "server.client",
        "run_evaluation_client_with_server": "server.client",
        "run_evaluation_client_with_server_parallel": "server.client",
        "thinking": "runtime.waiting",
    },
    _explain_missing,
)
