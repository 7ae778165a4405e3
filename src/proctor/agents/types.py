"""The messages between agent server, evaluator server and their client, as JSON."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Self
from uuid import uuid4

import msgspec
from pydantic import BaseModel, ConfigDict, Field, model_validator

from proctor.agents.constants import LONGEST_TASK
from proctor.agents.outcome import EpisodeOutcome

Seconds = Annotated[float, Field(gt=0, le=LONGEST_TASK, allow_inf_nan=False)]

BEGUN = "begun"  # sent by an agent's process when it has received a task: its time starts
RAISED = "raised"  # key of the fault that an agent's process sends when a method of the agent raised
ISOLATED = "PROCTOR_ISOLATED"  # set in the environment of an isolated agent, which sends its inputs to the referee
DEEPEST = 50  # nested values


class Carried(BaseModel):
    """A message that is passed on to the process of an agent or an evaluator; not all JSON can be."""

    @model_validator(mode="after")
    def _can_be_carried(self) -> Self:
        for field in type(self).model_fields:
            _check_depth(getattr(self, field), DEEPEST)
        try:
            msgspec.msgpack.encode(self.model_dump(mode="json"))
        except OverflowError:
            raise ValueError("a whole number has at most 64 bits") from None
        return self


def _check_depth(value: Any, left: int) -> None:
    if not left:
        raise ValueError(f"at most {DEEPEST} values within each other")
    if isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            _check_depth(inner, left - 1)


class Task(Carried):
    """A task in an environment, with its time limit."""

    task_id: str = Field(default_factory=lambda: str(uuid4()), min_length=1, max_length=200)
    env_name: str
    window_name: str = ""  # the first window whose title contains it
    task_description: str = ""
    timeout: Seconds
    check_env_interval_seconds: Seconds = 1.0  # between two calls of _check_env_continue_timer
    success_criteria: dict[str, Any] = {}
    num_frames: Annotated[int, Field(ge=1, le=10_000)] = 3
    seed: int | None = None  # for environments that can be seeded


class EvaluationResult(BaseModel):
    """The result of a task. Without a score there are no metrics: the notes say what went wrong."""

    task_id: str
    metrics: dict[str, Any] = {}
    notes: str = ""
    outcome: EpisodeOutcome = EpisodeOutcome.COMPLETED  # set by the referee; an evaluator's value is ignored


class AgentState(StrEnum):
    INIT = "INIT"
    READY = "READY"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"


class EvaluatorState(StrEnum):
    INIT = "INIT"
    READY = "READY"
    EVALUATING = "EVALUATING"
    SCORING = "SCORING"


class AgentStatus(BaseModel):
    state: AgentState
    current_task: Task | None = None


class EvaluatorStatus(BaseModel):
    state: EvaluatorState
    current_task: Task | None = None


class EvaluatorRegistration(BaseModel):
    evaluator_url: Annotated[str, Field(max_length=2_000)]


class AgentRegistration(BaseModel):
    agent_url: Annotated[str, Field(max_length=2_000)]


class AgentEnding(Carried):
    """How the agent ended in a task."""

    model_config = ConfigDict(frozen=True)

    outcome: EpisodeOutcome = EpisodeOutcome.COMPLETED
    error: str = ""
    actions: int = 0  # calls of _play_env that returned
    lags: dict[str, Any] = {}  # kind of delay -> Lags


class Finished(AgentEnding):
    """The ending that an agent's server reports."""

    task_id: str | None = None  # of the task that has ended; None means the current one


class Done(BaseModel):
    success: bool = True
    message: str


class Stopped(Done):
    ending: AgentEnding


class Refusal(BaseModel):
    success: bool = False
    error: str
