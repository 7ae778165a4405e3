"""Agents that play in real time, and evaluators that judge them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    "EvaluationResult",
    "Evaluator",
    "EpisodeOutcome",
    "RemoteAgent",
    "Task",
    "env_lock",
    "run_evaluation_client",
    "run_evaluation_client_with_server",
    "run_evaluation_client_with_server_parallel",
    "thinking",
]

_HOMES = {
    "NETWORK": "constants",
    "TIMEOUTS": "constants",
    "TIMES": "constants",
    "Agent": "agent",
    "EnvironmentCrashedError": "outcome",
    "EvaluationResult": "protocol",
    "Evaluator": "evaluator",
    "EpisodeOutcome": "outcome",
    "RemoteAgent": "remote_agent",
    "Task": "protocol",
    "env_lock": "locking",
    "run_evaluation_client": "servers.client",
    "run_evaluation_client_with_server": "servers.client",
    "run_evaluation_client_with_server_parallel": "servers.client",
    "thinking": "waiting",
}


def __getattr__(name: str) -> Any:
    # Loaded on first use: the list of exams needs none of them, and what they need is an extra.
    if name not in _HOMES:
        raise AttributeError(f"module 'proctor.agents' has no attribute {name!r}")
    try:
        return getattr(import_module(f"proctor.agents.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("pydantic", "fastapi", "uvicorn", "starlette"):
            from proctor.core.errors import MissingExtraError

            raise MissingExtraError(f"proctor.agents.{name}", "agents") from None
        raise
