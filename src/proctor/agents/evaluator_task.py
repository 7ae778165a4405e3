"""An evaluator as a task: each sample is an episode, each output an attempt at it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar
from uuid import UUID

import msgspec
from msgspec import Meta, Struct, field

from proctor.agents.candidate import AgentCandidate
from proctor.agents.constants import DEFAULT_EPISODES
from proctor.agents.human import HumanCandidate, check_display, find_display, is_human
from proctor.agents.metrics import EpisodeTally, Facts
from proctor.agents.outcome import PLAYED, EpisodeOutcome
from proctor.agents.remote.address import RemoteAddress, describe_isolation
from proctor.agents.runtime.attempt import Attempt, Attempts, another_seed, interrupted
from proctor.agents.runtime.hosting.isolation import open_isolation
from proctor.agents.runtime.hosting.recipe import Recipe, recipe_of
from proctor.agents.runtime.limits import EpisodeLimits, Seconds
from proctor.agents.runtime.recording import EVENTS
from proctor.agents.success import SuccessError, read_success
from proctor.core.candidate import Candidate
from proctor.core.config import RunConfig
from proctor.core.errors import MissingExtraError, ProctorError, UsageError
from proctor.core.random import mix
from proctor.core.task import Task
from proctor.core.types import Output, Sample, Score
from proctor.metrics.summary import Tally
from proctor.models.base import Model

if TYPE_CHECKING:
    from proctor.agents.evaluator import Evaluator
    from proctor.agents.runtime.session import Candidates, EpisodeSession
    from proctor.agents.types import Task as AgentTask

logger = logging.getLogger("proctor.agents")

NON_TASK_SETTINGS = frozenset(EpisodeLimits.__struct_fields__) - {"timeout"}


class EpisodeSettings(EpisodeLimits, frozen=True):
    """Settings of an evaluator task: the fields of each episode's task, and the limits."""

    env_name: str = ""
    window_name: str = ""
    task_description: str = ""
    check_env_interval_seconds: Seconds = 1.0
    success_criteria: dict[str, Any] = field(default_factory=dict)
    num_frames: Annotated[int, Meta(ge=1, le=10_000)] = 3


class EvaluatorTask(Task):
    """Created from an evaluator's class by `task_of`."""

    version = "2"  # since an episode is played once
    evaluator: ClassVar[Recipe]
    uses_desktop: ClassVar[bool] = True
    needs_window: ClassVar[bool] = False
    can_pause: ClassVar[bool] = True
    has_success: ClassVar[bool] = True
    Settings: ClassVar[type[Struct]] = EpisodeSettings
    metric = "success"
    max_tokens = 1024  # of a reply: a sentence or JSON around the keys; a chat model that may reason first gets more

    def count(self, config: RunConfig) -> int:
        return config.limit or DEFAULT_EPISODES

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        fields = self.task_fields()
        for index in range(config.limit_start, config.limit_start + self.count(config)):
            drawn = mix(config.seed, index)
            identifier = UUID(int=drawn << 64 | mix(drawn), version=4)  # the same whenever the run is resumed
            task = fields | {"task_id": str(identifier), "seed": drawn >> 33}
            description = fields.get("task_description") or fields.get("env_name", "")
            yield Sample(f"{config.seed}-{index}", index, description, seed=drawn >> 33, metadata={"task": task})

    def task_fields(self) -> dict[str, Any]:
        """The fields that the tasks of all episodes share."""
        fields: dict[str, Any] = msgspec.to_builtins(self.settings)
        return {key: value for key, value in fields.items() if key not in NON_TASK_SETTINGS}

    def evaluator_recipe(self) -> Recipe:
        """How the evaluator is created in its process."""
        return self.evaluator

    def samples_at_once(self, candidate: Candidate, config: RunConfig) -> int:
        return config.parallel

    async def open(self, config: RunConfig) -> None:
        if self.needs_window and config.display == "none":
            raise UsageError(f"{self.name} is played in a window: --display none leaves none to play in.")
        if is_human(config.agent):
            if not self.uses_desktop:
                raise UsageError(f"{self.name} has no window: --agent human plays in windows.")
            check_display(find_display(config, self.name))
        elif self.uses_desktop and config.parallel > 1 and not config.display.startswith(("virtual", "none")):
            raise UsageError(
                f"--display {config.display} has one keyboard: leave out --parallel, or play on virtual displays."
            )
        if config.owamcap and (not self.uses_desktop or config.display == "none"):
            raise UsageError(f"{self.name} is played without a display: --owamcap has nothing to record.")
        if self.settings.clock == "paused" and not self.can_pause:
            raise UsageError(
                f"{self.name}: its evaluator cannot stop the environment, as clock=paused would need: "
                "it has no _pause_environment and _resume_environment."
            )
        # Left by an interrupted run. An agent may write folders later.
        self._left = {path.parent for path in self.artifacts.glob(f"*/{EVENTS}")}
        self._isolation = await asyncio.to_thread(open_isolation, config, window=self._has_display(config))
        self.agent_held = describe_isolation(config, self._isolation)
        self._sessions: list[EpisodeSession] = []
        self._numbers = count(1)

    def _has_display(self, config: RunConfig) -> bool:
        return self.uses_desktop and config.display != "none"

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()

    async def ask(
        self, sample: Sample, epoch: int, candidate: Candidate, config: RunConfig, done: Sequence[Output]
    ) -> AsyncGenerator[Output]:
        agent = self._session_agent(candidate, sample, config)
        first = _agent_task(sample)
        attempts = Attempts(self.settings.attempts)
        for number in count():
            task = first.model_copy(update={"seed": another_seed(sample.seed, epoch, number)})
            folder = self.artifacts / f"{sample.index:06}-{epoch}-{number + 1}"
            if number < len(done):  # played before the run was cut short
                played = msgspec.json.decode(done[number].text, type=Attempt)
            else:
                left = interrupted(folder / EVENTS, task.seed, self.agent_held) if folder in self._left else None
                played = left or await self._play(agent, task, folder, sample, config)
                yield Output(msgspec.json.encode(played).decode(), played.usage, played.outcome, played.elapsed)
            if not attempts.should_retry(played.outcome, played.by_agent, played.interrupted):
                return

    async def _play(
        self,
        agent: Candidates,
        task: AgentTask,
        folder: Path,
        sample: Sample,
        config: RunConfig,
    ) -> Attempt:
        # Together with the task in the log it suffices to replay the episode.
        about = {"exam": self.name, "settings": msgspec.to_builtins(self.settings), "display": config.display}
        session = self._sessions.pop() if self._sessions else self._new_session(agent, config)
        try:
            return await session.play(task, folder, sample, about)
        except ProctorError:
            raise  # concerns the whole run
        except Exception as error:
            # Otherwise an agent that causes an error in the referee would have its episode dropped.
            logger.exception("the referee failed in %s", task.task_id)
            await session.close()
            why = f"the referee failed: {type(error).__name__}: {error}"
            facts: dict[str, Any] = {"by_agent": session.has_begun, "seed": task.seed, "held": self.agent_held}
            return Attempt(EpisodeOutcome.JUDGE_ERROR, {}, why, 0.0, 0.0, 0, **facts)
        finally:
            self._sessions.append(session)

    def _session_agent(self, candidate: Candidate, sample: Sample, config: RunConfig) -> Candidates:
        if isinstance(candidate, Model):
            if not self.uses_desktop:
                raise UsageError(
                    f"{self.name} is a task for agents: it has no display that a model could see. "
                    "Give an agent with --agent module:Class."
                )
            return candidate, self.request(sample, 0, config).sampling
        if isinstance(candidate, AgentCandidate) and candidate.url:
            if not self._has_display(config):
                raise UsageError(f"{self.name} shows nothing that could be sent to an agent on another machine.")
            return RemoteAddress(candidate.url, config.agent_frames)
        if isinstance(candidate, HumanCandidate):
            return candidate
        return self._agent(candidate)

    def _agent(self, candidate: Candidate) -> Recipe:
        from proctor.agents.agent import Agent

        if not isinstance(candidate, AgentCandidate) or candidate.recipe is None:
            raise UsageError(f"{self.name} is a task for agents: give one with --agent module:Class.")
        cls = candidate.recipe.load()
        if not (isinstance(cls, type) and issubclass(cls, Agent)):
            raise UsageError(f"{candidate.name} is not an Agent: it must be a class that extends proctor.agents.Agent.")
        return candidate.recipe

    def _new_session(self, agent: Candidates, config: RunConfig) -> EpisodeSession:
        from proctor.agents.runtime.session import NO_DISPLAY, EpisodeSession, RecordingOptions

        display = config.display if self.uses_desktop else NO_DISPLAY
        if isinstance(agent, HumanCandidate):
            display = find_display(config, self.name)
        folder = self.artifacts / f"session-{next(self._numbers)}"
        recording_options = RecordingOptions(config.film, config.owamcap)
        limits = self.settings.shared_by(config.parallel)
        return EpisodeSession(
            agent, self.evaluator_recipe(), display, recording_options, folder, limits, self._isolation
        )

    async def judge(self, sample: Sample, outputs: Sequence[Output]) -> Score:
        """Scores the last attempt."""
        played = msgspec.json.decode(outputs[-1].text, type=Attempt)
        if not played.outcome.is_play:
            return Score(None, played.outcome, played.metrics, played.notes)
        try:
            value = read_success(played.metrics, self.has_success)
        except SuccessError as error:
            return Score(
                None, EpisodeOutcome.JUDGE_ERROR, played.metrics, "; ".join(filter(None, [str(error), played.notes]))
            )
        undecided = value is None and played.outcome is EpisodeOutcome.COMPLETED
        return Score(value, PLAYED if undecided else played.outcome, played.metrics, played.notes)

    def tally(self) -> Tally:
        return EpisodeTally(self.metric, self._facts)

    def _facts(self, output: Output) -> Facts | None:
        played = msgspec.json.decode(output.text, type=Attempt)
        if not played.outcome.is_play:
            return None
        numbers = {
            key: float(value)
            for key, value in played.metrics.items()
            if key != self.metric and isinstance(value, int | float) and not isinstance(value, bool)
        }
        replies = [turn for turn in played.turns if turn.reply is not None]
        unreadable = sum(not turn.readable for turn in replies)
        return Facts(numbers, {"replies": len(replies), "unreadable": unreadable} if replies else {}, played.lags)


def _agent_task(sample: Sample) -> AgentTask:
    try:
        from proctor.agents.types import Task as AgentTask
    except ModuleNotFoundError:
        raise MissingExtraError("an agent task", "agents") from None
    return AgentTask(**sample.metadata["task"])


@cache
def task_of(evaluator: type[Evaluator]) -> type[EvaluatorTask]:
    members = {
        "__module__": evaluator.__module__,
        "evaluator": recipe_of(evaluator),
        "uses_desktop": evaluator.uses_desktop,
        "can_pause": evaluator.can_pause(),
        "has_success": evaluator.has_success,
        "summary": (evaluator.__doc__ or "").strip().partition("\n")[0],
    }
    return type(evaluator.__name__, (EvaluatorTask,), members)
