"""An evaluator as an exam of the core: each sample is an episode, each attempt at it an output."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any, ClassVar
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from proctor.agents.attempt import Attempt
from proctor.agents.candidate import AgentCandidate
from proctor.agents.clock import ClockName
from proctor.agents.constants import DEFAULT_EPISODES, LONGEST_TASK, LONGEST_THOUGHT
from proctor.agents.hosting.recipe import Recipe, recipe_of
from proctor.agents.human import HumanCandidate, check_display, find_display, is_human
from proctor.agents.journal import outcome_of
from proctor.agents.outcome import NOT_THE_AGENTS
from proctor.agents.recording import EVENTS
from proctor.agents.tally import EpisodeTally, Facts
from proctor.candidate import Candidate
from proctor.config import RunConfig
from proctor.errors import MissingExtraError, UsageError
from proctor.metrics.summary import Tally
from proctor.models.model import Model
from proctor.randomness import mix
from proctor.task import Task
from proctor.types import Output, Sample, Score

if TYPE_CHECKING:
    from proctor.agents.booth import Booth, Candidates
    from proctor.agents.evaluator import Evaluator
    from proctor.agents.protocol import Task as AgentTask

Seconds = Annotated[float, Meta(gt=0, le=LONGEST_TASK)]


class EpisodeSettings(Struct, frozen=True):
    """The task that every episode sets, and how often an episode is tried that the agent could not help losing."""

    clock: ClockName = "realtime"  # paused: the environment waits while the agent thinks
    longest_thought: Seconds = LONGEST_THOUGHT
    env_name: str = ""
    window_name: str = ""
    task_description: str = ""
    timeout: Seconds = 60.0
    check_env_interval_seconds: Seconds = 1.0
    success_criteria: dict[str, Any] = {}
    num_frames: Annotated[int, Meta(ge=1, le=10_000)] = 3
    attempts: Annotated[int, Meta(ge=1, le=100)] = 2


class EvaluatorExam(Task):
    """Made from an evaluator's class by `exam_of`."""

    evaluator: ClassVar[Recipe]
    uses_desktop: ClassVar[bool] = True
    needs_window: ClassVar[bool] = False
    can_pause: ClassVar[bool] = True
    Settings: ClassVar[type[Struct]] = EpisodeSettings
    metric = "success"

    def count(self, config: RunConfig) -> int:
        return config.limit or DEFAULT_EPISODES

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        told = self.task_fields()
        for index in range(config.limit_start, config.limit_start + self.count(config)):
            drawn = mix(config.seed, index)
            identifier = UUID(int=drawn << 64 | mix(drawn), version=4)  # the same whenever the run is resumed
            task = told | {"task_id": str(identifier), "seed": drawn >> 33}
            description = told.get("task_description") or told.get("env_name", "")
            yield Sample(f"{config.seed}-{index}", index, description, seed=drawn >> 33, metadata={"task": task})

    def task_fields(self) -> dict[str, Any]:
        """Those of the task that every episode sets."""
        told: dict[str, Any] = msgspec.to_builtins(self.settings)
        del told["attempts"], told["clock"], told["longest_thought"]
        return told

    def evaluator_recipe(self) -> Recipe:
        """How the evaluator is made, in its process."""
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
        self._booths: list[Booth] = []
        self._numbers = count(1)

    async def close(self) -> None:
        for booth in self._booths:
            await booth.close()

    async def ask(
        self, sample: Sample, epoch: int, candidate: Candidate, config: RunConfig, done: int
    ) -> AsyncGenerator[Output]:
        agent = self._player(candidate, sample, config)
        task = _agent_task(sample)
        for attempt in range(self.settings.attempts):
            folder = self.artifacts / f"{sample.index:06}-{epoch}-{attempt + 1}"
            if attempt < done:  # played in a sitting that was cut short before it was judged
                if outcome_of(folder / EVENTS) not in NOT_THE_AGENTS:
                    return
                continue
            booth = self._booths.pop() if self._booths else self._new_booth(agent, config)
            try:
                played = await booth.play(task, folder, sample)
            finally:
                self._booths.append(booth)
            yield Output(msgspec.json.encode(played).decode(), played.usage, played.outcome, played.elapsed)
            if played.outcome not in NOT_THE_AGENTS:
                return

    def _player(self, candidate: Candidate, sample: Sample, config: RunConfig) -> Candidates:
        if isinstance(candidate, Model):
            if not self.uses_desktop:
                raise UsageError(
                    f"{self.name} is an exam for agents, and shows a model nothing: give one with --agent module:Class."
                )
            return candidate, self.request(sample, 0, config).sampling
        if isinstance(candidate, HumanCandidate):
            return candidate
        return self._agent(candidate)

    def _agent(self, candidate: Candidate) -> Recipe:
        from proctor.agents.agent import Agent

        if not isinstance(candidate, AgentCandidate) or candidate.recipe is None:
            raise UsageError(f"{self.name} is an exam for agents: give one with --agent module:Class.")
        found = candidate.recipe.found()
        if not (isinstance(found, type) and issubclass(found, Agent)):
            raise UsageError(f"{candidate.name} is no Agent: it must be a class that extends proctor.agents.Agent.")
        return candidate.recipe

    def _new_booth(self, agent: Candidates, config: RunConfig) -> Booth:
        from proctor.agents.booth import NO_DISPLAY, Booth

        display = config.display if self.uses_desktop else NO_DISPLAY
        if isinstance(agent, HumanCandidate):
            display = find_display(config, self.name)
        folder = self.artifacts / f"booth-{next(self._numbers)}"
        longest_thought = self.settings.longest_thought if self.settings.clock == "paused" else None
        return Booth(agent, self.evaluator_recipe(), display, config.film, folder, longest_thought, config.owamcap)

    async def judge(self, sample: Sample, outputs: Sequence[Output]) -> Score:
        """Of the last attempt."""
        played = msgspec.json.decode(outputs[-1].text, type=Attempt)
        success = played.metrics.get("success")
        value = float(success) if isinstance(success, bool | int | float) and 0 <= success <= 1 else None
        return Score(value if played.outcome.is_play else None, played.outcome, played.metrics, played.notes)

    def tally(self) -> Tally:
        return EpisodeTally(self.metric, self._facts, within_reach=True)

    def _facts(self, output: Output) -> Facts | None:
        played = msgspec.json.decode(output.text, type=Attempt)
        if not played.outcome.is_play:
            return None
        numbers = {
            key: float(value)
            for key, value in played.metrics.items()
            if key != self.metric and isinstance(value, int | float) and not isinstance(value, bool)
        }
        return Facts(numbers, lags=played.lags)


def _agent_task(sample: Sample) -> AgentTask:
    try:
        from proctor.agents.protocol import Task as AgentTask
    except ModuleNotFoundError:
        raise MissingExtraError("an exam of agents", "agents") from None
    return AgentTask(**sample.metadata["task"])


@cache
def exam_of(evaluator: type[Evaluator]) -> type[EvaluatorExam]:
    members = {
        "__module__": evaluator.__module__,
        "evaluator": recipe_of(evaluator),
        "uses_desktop": evaluator.uses_desktop,
        "can_pause": evaluator.can_pause(),
        "summary": (evaluator.__doc__ or "").strip().partition("\n")[0],
    }
    return type(evaluator.__name__, (EvaluatorExam,), members)
