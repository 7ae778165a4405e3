"""An evaluator as an exam of the core: each sample is an episode, each attempt at it an output."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar
from uuid import UUID

import msgspec
from msgspec import Meta, Struct

from proctor.agents.agent import Agent
from proctor.agents.candidate import AgentCandidate
from proctor.agents.journal import Journal
from proctor.agents.judge import Judge
from proctor.agents.locking import VARIABLE
from proctor.agents.outcome import Outcome
from proctor.agents.player import LocalPlayer, Player
from proctor.agents.protocol import LONGEST_TASK
from proctor.agents.protocol import Task as AgentTask
from proctor.agents.recipe import Recipe, recipe_of
from proctor.agents.supervisor import Supervisor
from proctor.candidate import Candidate
from proctor.config import RunConfig
from proctor.errors import UsageError
from proctor.metrics.statistics import mean
from proctor.metrics.summary import MeanScore, Tally
from proctor.randomness import mix
from proctor.task import Task
from proctor.types import Metric, Output, Record, Sample, Score

if TYPE_CHECKING:
    from proctor.agents.evaluator import Evaluator

DEFAULT_EPISODES = 10
Seconds = Annotated[float, Meta(gt=0, le=LONGEST_TASK)]


class EpisodeSettings(Struct, frozen=True):
    """The task that every episode sets, and how often an episode is tried that the agent could not help losing."""

    env_name: str = ""
    window_name: str = ""
    task_description: str = ""
    timeout: Seconds = 60.0
    check_env_interval_seconds: Seconds = 1.0
    success_criteria: dict[str, Any] = {}
    num_frames: Annotated[int, Meta(ge=1, le=10_000)] = 3
    attempts: Annotated[int, Meta(ge=1, le=100)] = 2


# Faults that say nothing about the agent: the episode is tried again.
NOT_THE_AGENTS = (Outcome.ENV_CRASH, Outcome.JUDGE_ERROR)


class Episode(Struct, frozen=True):
    """One attempt, as it is kept."""

    outcome: Outcome
    metrics: dict[str, Any]
    notes: str
    elapsed: float
    overshoot: float
    actions: int


class Booth:
    """A judge and a player with processes of their own, for one episode after the other."""

    def __init__(self, judge: Judge, player: Player) -> None:
        self._judge, self._player = judge, player

    async def play(self, task: AgentTask, events: Path) -> Episode:
        journal = Journal(events)
        try:
            supervisor = Supervisor(self._judge, self._player, journal=journal)
            result = await supervisor.evaluate(task)
        finally:
            journal.close()
        return Episode(
            result.outcome,
            result.metrics,
            result.notes,
            supervisor.elapsed,
            supervisor.overshoot,
            supervisor.actions,
        )

    async def close(self) -> None:
        await self._player.close()
        await self._judge.end()


class EpisodeTally:
    """The share of successes, with every fault of the agent left out or counted as a failure; the mean of the rest."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._played, self._with_faults = MeanScore(name), MeanScore(f"{name}_if_faults_fail")
        self._others: dict[str, list[float]] = {}

    def add(self, record: Record) -> None:
        score = record.score
        if score is None:
            return
        self._played.add(record)
        failed = score.outcome in (Outcome.AGENT_CRASH, Outcome.AGENT_HANG)
        self._with_faults.add(msgspec.structs.replace(record, score=Score(0, score.outcome)) if failed else record)
        for key, value in (score.answer or {}).items():
            if key != self._name and isinstance(value, int | float) and not isinstance(value, bool):
                self._others.setdefault(key, []).append(value)

    def metrics(self) -> dict[str, Metric]:
        means = {key: mean(values) for key, values in self._others.items()}
        return self._played.metrics() | self._with_faults.metrics() | means


class EvaluatorExam(Task):
    """Made from an evaluator's class by `exam_of`."""

    evaluator: ClassVar[type[Evaluator]]
    Settings = EpisodeSettings
    metric = "success"

    def count(self, config: RunConfig) -> int:
        return config.limit or DEFAULT_EPISODES

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        told = msgspec.to_builtins(self.settings)
        del told["attempts"]
        for index in range(config.limit_start, config.limit_start + self.count(config)):
            drawn = mix(config.seed, index)
            identifier = UUID(int=drawn << 64 | mix(drawn), version=4)  # the same whenever the run is resumed
            task = AgentTask(**told, task_id=str(identifier), seed=drawn >> 33)
            yield Sample(
                id=f"{config.seed}-{index}",
                index=index,
                input=task.task_description or task.env_name,
                seed=drawn >> 33,
                metadata={"task": task.model_dump(mode="json")},
            )

    def samples_at_once(self, candidate: Candidate, config: RunConfig) -> int:
        return config.parallel

    async def open(self, config: RunConfig) -> None:
        self._booths: list[Booth] = []
        self._numbers = count(1)

    async def close(self) -> None:
        for booth in self._booths:
            await booth.close()

    async def ask(
        self, sample: Sample, epoch: int, candidate: Candidate, config: RunConfig, done: int
    ) -> AsyncGenerator[Output]:
        if not isinstance(candidate, AgentCandidate) or candidate.recipe is None:
            raise UsageError(f"{self.name} is an exam for agents: give one with --agent module:Class.")
        if not issubclass(candidate.recipe.found(), Agent):
            raise UsageError(f"{candidate.name} is no Agent: it must be a class that extends proctor.agents.Agent.")
        task = AgentTask(**sample.metadata["task"])
        for attempt in range(done, self.settings.attempts):
            events = self.artifacts / f"{sample.index:06}-{epoch}-{attempt + 1}" / "events.jsonl"
            booth = self._booths.pop() if self._booths else self._new_booth(candidate.recipe)
            try:
                episode = await booth.play(task, events)
            finally:
                self._booths.append(booth)
            yield Output(msgspec.json.encode(episode).decode(), finish=episode.outcome, seconds=episode.elapsed)
            if episode.outcome not in NOT_THE_AGENTS:
                return

    def _new_booth(self, agent: Recipe) -> Booth:
        folder = self.artifacts / f"booth-{next(self._numbers)}"
        folder.mkdir(parents=True, exist_ok=True)
        environment = {VARIABLE: str(folder / "env.lock")}
        return Booth(
            Judge(recipe_of(self.evaluator), folder / "evaluator.log", environment),
            LocalPlayer(agent, folder / "agent.log", environment),
        )

    async def judge(self, sample: Sample, outputs: Sequence[Output]) -> Score:
        """Of the last attempt."""
        episode = msgspec.json.decode(outputs[-1].text, type=Episode)
        success = episode.metrics.get("success")
        value = float(success) if isinstance(success, bool | int | float) and 0 <= success <= 1 else None
        return Score(value if episode.outcome.is_play else None, episode.outcome, episode.metrics, episode.notes)

    def tally(self) -> Tally:
        return EpisodeTally(self.metric)


@cache
def exam_of(evaluator: type[Evaluator]) -> type[EvaluatorExam]:
    summary = (evaluator.__doc__ or "").strip().partition("\n")[0]
    members = {"__module__": evaluator.__module__, "evaluator": evaluator, "summary": summary}
    return type(evaluator.__name__, (EvaluatorExam,), members)
