"""Tasks in stepped environments, played by an agent or a model with one of three clocks."""

from __future__ import annotations

import asyncio
import logging
import platform
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, field

from proctor import __version__
from proctor.agents.candidate import AgentCandidate
from proctor.agents.constants import DEFAULT_EPISODES
from proctor.agents.envs.agents import RANDOM, is_playable
from proctor.agents.envs.event_log import NAME, EpisodeEnding, Header, ending_of, read_events
from proctor.agents.envs.model_agent import ModelPolicy
from proctor.agents.envs.referee import AsyncPolicy, EnvSession
from proctor.agents.envs.types import Clock, Episode, EpisodeFault, Idle
from proctor.agents.human import HumanCandidate
from proctor.agents.metrics import EpisodeTally, Facts
from proctor.agents.outcome import PLAYED, EpisodeOutcome
from proctor.agents.remote.address import describe_isolation
from proctor.agents.runtime.attempt import INTERRUPTED, Attempts, another_seed
from proctor.agents.runtime.hosting.isolation import open_isolation
from proctor.agents.runtime.hosting.recipe import Recipe, recipe_of
from proctor.agents.runtime.limits import RuntimeLimits, Seconds
from proctor.core.candidate import Candidate
from proctor.core.config import RunConfig
from proctor.core.errors import UsageError
from proctor.core.random import mix
from proctor.core.task import Task
from proctor.core.types import Output, Sample, Score
from proctor.metrics.summary import Tally
from proctor.models.base import Model

if TYPE_CHECKING:
    from proctor.agents.envs.video import Videos
    from proctor.agents.remote.client import RemoteAgentConnection

logger = logging.getLogger("proctor.agents")

AGENT = 1  # mixed into the seed of an episode, for the agent that plays it
COUNTS = ("idle", "unreadable", "late", "dropped", "late_ticks", "slow_ticks")


class EnvSettings(RuntimeLimits, frozen=True):
    clock: Clock = "step"
    fps: Annotated[float, Meta(gt=0, le=1_000)] = 30.0  # of the clocks realtime and paused
    max_steps: Annotated[int, Meta(ge=1)] | None = None  # besides the environment's own limit
    timeout: Seconds = 300.0  # of an episode
    success_reward: float | None = None  # the reward that makes an episode a success
    idle: Idle = "noop"  # what is done in a tick without an action
    attempts: Annotated[int, Meta(ge=1, le=10)] = 2  # at an episode that fails before the agent has begun
    history: Annotated[int, Meta(ge=0, le=1_000)] = 4  # moves that a language model is shown again
    env_kwargs: dict[str, Any] = field(default_factory=dict)
    filmed: Annotated[int, Meta(ge=0)] = 3  # recorded episodes, from the first, if the environment can be rendered


class EnvTask(Task):
    """A sample is an episode; an output is an attempt at it. Subclasses set `World`, the class of their environment."""

    Settings = EnvSettings
    settings: EnvSettings
    metric = "success"
    version = "2"  # since an episode is played once
    World: ClassVar[type]  # anything with reset(seed=…), step(action) and action_space, as Gymnasium has them
    packages: ClassVar[tuple[str, ...]] = ("numpy",)  # whose versions stand in the logs

    def env_recipe(self, in_words: bool) -> Recipe:
        """How the environment is created in its process; `in_words`: observations are text for a language model."""
        return recipe_of(self.World, (), self.settings.env_kwargs)

    def rendered_env_recipe(self) -> Recipe | None:
        """The same environment with a `render` method that returns an image; None if it has none."""
        return None

    def count(self, config: RunConfig) -> int:
        return config.limit or DEFAULT_EPISODES

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        for index in range(config.limit_start, config.limit_start + self.count(config)):
            seed = mix(config.seed, index) >> 33  # in 31 bits, which every environment takes
            yield Sample(f"{config.seed}-{index}", index, f"An episode of {self.name}, seed {seed}.", seed=seed)

    def samples_at_once(self, candidate: Candidate, config: RunConfig) -> int:
        return config.parallel

    async def open(self, config: RunConfig) -> None:
        if config.owamcap:
            raise UsageError(f"{self.name} is stepped, without a display: --owamcap has nothing to record.")
        # A run that was killed may have left complete episodes. Later folders are not its.
        self._left = {path.parent for path in self.artifacts.glob(f"*/{NAME}")}
        self._limits = self.settings.shared_by(config.parallel)
        self._isolation = await asyncio.to_thread(open_isolation, config, window=False)
        self.agent_held = describe_isolation(config, self._isolation)
        self._connections: list[RemoteAgentConnection] = []
        self._free_connections: list[RemoteAgentConnection] = []
        self._sessions: list[EnvSession] = []
        self._free: list[EnvSession] = []
        self._preparing = asyncio.Lock()
        self._in_words = not config.agent  # a language model reads
        self._videos: Videos | None = None
        self._logged_notes: set[str] = set()  # warnings, each logged once

    async def close(self) -> None:
        for session in self._sessions:
            await session.close()
        for connection in self._connections:
            await connection.close()
        if self._videos is not None:
            await self._videos.close()

    async def ask(
        self, sample: Sample, epoch: int, candidate: Candidate, config: RunConfig, done: Sequence[Output]
    ) -> AsyncGenerator[Output]:
        agent = self._agent(candidate)
        attempts = Attempts(self.settings.attempts)
        for number in count():
            log = self.artifacts / f"{sample.index:06}-{epoch}-{number + 1}" / NAME
            episode = self._episode(sample, epoch, number, candidate, log)
            if number < len(done):  # played before the run was cut short
                ending = msgspec.json.decode(done[number].text, type=EpisodeEnding)
            else:
                left = _unfinished_ending(log, episode) if log.parent in self._left else None
                if left is None:
                    await self._prepare(agent, config)
                    left = await self._played(episode, agent, sample, epoch, candidate, config)
                    await self._record_video(sample, log, config)
                ending = left
                text = msgspec.json.encode(ending).decode()
                yield Output(text, ending.usage, ending.outcome, ending.seconds)
            if not attempts.should_retry(ending.outcome, ending.by_agent, ending.interrupted):
                return

    def _agent(self, candidate: Candidate) -> Recipe | None:
        """None for a language model, and for an agent on another machine."""
        if isinstance(candidate, Model) or (isinstance(candidate, AgentCandidate) and candidate.url):
            return None
        if isinstance(candidate, HumanCandidate):
            raise UsageError(
                f"{self.name} is stepped, without a window: --agent human plays in windows, as of agents/window."
            )
        if not isinstance(candidate, AgentCandidate):
            raise UsageError(f"{self.name} is played by an agent or a model; {candidate.name} is neither.")
        agent = candidate.recipe or RANDOM
        if not is_playable(agent.load()):
            raise UsageError(
                f"{self.name} is played by a class with a method act(observation), or by a function "
                f"policy(observation); {candidate.name} is neither."
            )
        return agent

    def _episode(self, sample: Sample, epoch: int, number: int, candidate: Candidate, log: Path) -> Episode:
        settings, seed = self.settings, another_seed(sample.seed, epoch, number)
        header = Header(
            self.name,
            msgspec.to_builtins(settings),
            candidate.name,
            seed,
            time.time(),
            {"proctor": __version__, "python": platform.python_version()} | _versions(self.packages),
        )
        return Episode(
            header,
            str(log.absolute()),  # the agent may change the working directory
            mix(seed, epoch, AGENT) >> 33,
            settings.timeout,
            settings.clock,
            settings.max_steps,
            settings.success_reward,
            settings.fps,
            settings.idle,
            in_words=isinstance(candidate, Model),
        )

    async def _played(
        self,
        episode: Episode,
        agent: Recipe | None,
        sample: Sample,
        epoch: int,
        candidate: Candidate,
        config: RunConfig,
    ) -> EpisodeEnding:
        if isinstance(candidate, AgentCandidate) and candidate.url:
            return await self._remote_attempt(episode, candidate.url)
        policy = ModelPolicy(self, sample, epoch, candidate, config) if isinstance(candidate, Model) else None
        return await self._attempt(episode, agent, policy)

    async def _attempt(self, episode: Episode, agent: Recipe | None, policy: AsyncPolicy | None) -> EpisodeEnding:
        session = self._free.pop() if self._free else self._new_session(agent)
        try:
            ending = await session.play(episode, policy, self.agent_held)
        finally:
            self._free.append(session)
        return ending

    async def _remote_attempt(self, episode: Episode, url: str) -> EpisodeEnding:
        from proctor.agents.remote.client import RemoteAgentConnection
        from proctor.agents.remote.env_policy import RemotePolicy

        if not self._free_connections:
            self._connections.append(RemoteAgentConnection(url))
            self._free_connections.append(self._connections[-1])
        connection = self._free_connections.pop()
        policy = RemotePolicy(connection, episode)
        try:
            return await self._attempt(episode, None, policy)
        finally:
            await policy.end()
            self._free_connections.append(connection)

    async def _record_video(self, sample: Sample, log: Path, config: RunConfig) -> None:
        """Records a video of one of the first episodes, if wanted and if the environment can be rendered."""
        if not config.film or sample.index - config.limit_start >= self.settings.filmed:
            return None
        env = self.rendered_env_recipe()
        if env is None:
            return None
        from proctor.agents.envs.video import VideoError, Videos

        if self.settings.clock != "step" and config.parallel > 1:
            return self._tell("no videos: to make them would take time from the episodes beside; leave out --parallel")
        self._videos = self._videos or Videos(env, self.artifacts / "film.log", self._limits)
        try:
            await self._videos.make(log)
        except VideoError as error:
            self._tell(str(error))

    def _tell(self, note: str) -> None:
        """Logs a warning once."""
        if note not in self._logged_notes:
            self._logged_notes.add(note)
            logger.warning("%s: %s", self.name, note)

    def _new_session(self, agent: Recipe | None) -> EnvSession:
        log = self.artifacts / f"process-{len(self._sessions) + 1}.log"
        env = self.env_recipe(in_words=self._in_words)
        self._sessions.append(EnvSession(env, agent, self.settings.clock, log, self._limits, self._isolation))
        return self._sessions[-1]

    async def _prepare(self, agent: Recipe | None, config: RunConfig) -> None:
        """Starts the sessions before the first episode. An environment that cannot be created is a usage error.

        With a timed clock all sessions start here: starting one later would delay running episodes.
        """
        async with self._preparing:
            if self._sessions:
                return
            sessions = 1 if self.settings.clock == "step" else min(config.parallel, self.count(config))
            self._free = [self._new_session(agent) for _ in range(sessions)]
            for session in self._free:
                try:
                    await session.prepare()
                except EpisodeFault as fault:
                    if fault.outcome is EpisodeOutcome.ENV_CRASH:
                        raise UsageError(f"{self.name}: {fault}") from fault

    async def judge(self, sample: Sample, outputs: Sequence[Output]) -> Score:
        """Scores the last attempt."""
        try:
            ending = msgspec.json.decode(outputs[-1].text, type=EpisodeEnding)
        except msgspec.DecodeError as error:
            return Score(None, EpisodeOutcome.JUDGE_ERROR, why=f"no episode: {error}")
        answer = {"reward": ending.reward, "length": ending.length, "success": ending.success}
        if not ending.outcome.is_play:
            return Score(None, ending.outcome, answer, ending.why)
        if ending.success is None:
            return Score(
                None, PLAYED if ending.outcome is EpisodeOutcome.COMPLETED else ending.outcome, answer, ending.why
            )
        return Score(float(ending.success), ending.outcome, answer, ending.why)

    def tally(self) -> Tally:
        return EpisodeTally(self.metric, _facts)


def _unfinished_ending(log: Path, episode: Episode) -> EpisodeEnding | None:
    """The ending that an interrupted run left in the log, or an interrupted one if the episode had begun."""
    if (ending := ending_of(log, episode.header)) is not None:
        return ending
    with suppress(UsageError):
        seen = read_events(log)
        if seen.lines and seen.header.episode == episode.header.episode:
            return EpisodeEnding(
                EpisodeOutcome.STOPPED,
                why=INTERRUPTED,
                clock=episode.clock,
                seed=episode.header.seed,
                interrupted=True,
            )
    return None


def _facts(output: Output) -> Facts | None:
    ending = msgspec.json.decode(output.text, type=EpisodeEnding)
    if not ending.outcome.is_play:
        return None
    # Timed clocks show zero counts, too: nothing was late.
    counts = {name: getattr(ending, name) for name in COUNTS}
    timed = ending.clock != "step"
    result = {name: n for name, n in counts.items() if n or (timed and name != "unreadable")}
    return Facts({"reward": ending.reward, "length": ending.length}, result, ending.lags)


def _versions(packages: Iterable[str]) -> dict[str, str]:
    cls = {}
    for package in packages:
        with suppress(metadata.PackageNotFoundError):
            cls[package] = metadata.version(package)
    return cls
