"""Runs episodes in windows one after the other, on one display, with one agent and one evaluator."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from proctor.agents.desktop.display import VIRTUAL, VirtualDisplay, parse_size
from proctor.agents.human import HumanCandidate
from proctor.agents.remote.address import TRUSTED, RemoteAddress
from proctor.agents.remote.window_client import RemoteWindowClient
from proctor.agents.runtime.agent_client import LocalAgentClient
from proctor.agents.runtime.attempt import Attempt
from proctor.agents.runtime.clock import Clock
from proctor.agents.runtime.evaluator_client import EvaluatorClient
from proctor.agents.runtime.event_log import EventLog
from proctor.agents.runtime.hosting.isolation import Isolation
from proctor.agents.runtime.hosting.recipe import Recipe
from proctor.agents.runtime.human_client import HumanClient
from proctor.agents.runtime.isolated_client import open_isolated_client
from proctor.agents.runtime.lags import Lags
from proctor.agents.runtime.limits import EpisodeLimits
from proctor.agents.runtime.locking import VARIABLE
from proctor.agents.runtime.log_summary import EpisodeLog
from proctor.agents.runtime.recording import EVENTS
from proctor.agents.runtime.referee import Referee
from proctor.agents.runtime.shielding import run_to_completion
from proctor.agents.types import Task
from proctor.agents.vision.client import VisionClient
from proctor.agents.windows.home import PREFIX as HOME
from proctor.agents.windows.home import remove_home
from proctor.agents.windows.requirements import require_desktop
from proctor.core.types import Sample
from proctor.models.base import Model, Sampling

if TYPE_CHECKING:
    from proctor.agents.desktop.episode_recording import EpisodeRecording
    from proctor.agents.desktop.frames import FrameWatch
    from proctor.agents.desktop.stop_key import StopKey
    from proctor.agents.display_filter.display import FilteredDisplay

NO_DISPLAY = "none"
Candidates = Recipe | tuple[Model, Sampling] | RemoteAddress | HumanCandidate
AgentClients = LocalAgentClient | VisionClient | RemoteWindowClient | HumanClient


class RecordingOptions(Struct, frozen=True):
    """What is recorded of the display, besides the event log."""

    video: bool = True
    owamcap: bool = False

    @property
    def anything(self) -> bool:
        return self.video or self.owamcap


class EpisodeSession:
    """Holds the processes of an agent and an evaluator; restarts a dead one before the next episode."""

    def __init__(
        self,
        agent: Candidates,
        evaluator: Recipe,
        display: str,
        recorded: RecordingOptions,
        folder: Path,
        limits: EpisodeLimits | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        self._agent, self._evaluator, self._display_option, self._recorded = agent, evaluator, display, recorded
        self._folder, self._limits = folder, limits or EpisodeLimits()
        self._isolation = isolation
        self._filtered: FilteredDisplay | None = None
        self._display: VirtualDisplay | None = None
        self._stop_key: StopKey | None = None
        self._evaluator_client: EvaluatorClient | None = None
        self._agent_client: AgentClients | None = None
        self._episode_folders: list[Path] = []
        self._referee: Referee | None = None

    @property
    def has_begun(self) -> bool:
        """Whether the agent began in the last attempt."""
        return self._referee is not None and self._referee.began

    async def play(self, task: Task, folder: Path, sample: Sample, about: dict[str, Any] | None = None) -> Attempt:
        """Runs one attempt and writes its files to `folder`; `about` becomes the first event of its log."""
        self._referee = None
        os.makedirs(folder, exist_ok=True)
        self._episode_folders.append(folder)
        evaluator_client, agent_client = await self._prepare()
        event_log = EventLog(folder / EVENTS)
        if about is not None:
            event_log.note("episode", **about)
        evaluator_client.folder = agent_client.folder = folder
        if isinstance(agent_client, VisionClient | HumanClient):
            agent_client.sample = sample
        waits = self._limits.clock == "paused"
        clock = agent_client.clock = Clock(evaluator_client, self._limits.longest_thought) if waits else Clock()
        starting = asyncio.create_task(asyncio.to_thread(self._start_recording, folder))
        watching = asyncio.create_task(asyncio.to_thread(self._watch_frames))
        try:
            await asyncio.shield(starting)
            await asyncio.shield(watching)
            referee = self._referee = Referee(
                evaluator_client, agent_client, event_log=event_log, display=self._display, clock=clock
            )
            if self._stop_key is not None:
                loop = asyncio.get_running_loop()
                self._stop_key.pressed = partial(loop.call_soon_threadsafe, referee.stop)
            result = await referee.evaluate(task)
        finally:
            try:
                trouble, changes = await run_to_completion(asyncio.create_task(_close_both(starting, watching)))
                if trouble:
                    event_log.note("film", trouble=trouble)
            finally:
                event_log.close()
        refused = await asyncio.to_thread(self._filtered.refused) if self._filtered is not None else ""
        if refused:
            refused = f"the display refused what the agent asked of it: {refused}"
        lags = msgspec.convert(referee.lags, dict[str, Lags], strict=False)
        log = await asyncio.to_thread(EpisodeLog, folder / EVENTS)
        if "reaction" not in lags and (reactions := log.reactions()).n:
            lags["reaction"] = reactions  # of an agent that was stopped in the middle of a step
        return Attempt(
            result.outcome,
            _frames(log, changes) | result.metrics if result.outcome.is_play else result.metrics,
            "; ".join(filter(None, [result.notes, trouble, refused])),
            referee.elapsed,
            referee.overshoot,
            referee.actions,
            agent_client.usage,
            lags,
            by_agent=referee.by_agent,
            seed=task.seed,
            held=self._isolation_text,
            turns=agent_client.turns if isinstance(agent_client, VisionClient) else [],
        )

    @property
    def _isolation_text(self) -> str:
        """Where the agent ran, for the record; empty for a model and a person."""
        if isinstance(self._agent, RemoteAddress):
            return str(self._agent)
        if not isinstance(self._agent, Recipe):
            return ""
        return TRUSTED if self._isolation is None else str(self._isolation)

    async def _prepare(self) -> tuple[EvaluatorClient, AgentClients]:
        parts = (self._display, self._filtered)
        has_died = any(part is not None and not part.is_alive for part in parts)
        if has_died or (self._stop_key is not None and not await asyncio.to_thread(self._stop_key.is_listening)):
            await self.close()
        if self._evaluator_client is None or self._agent_client is None:
            self._check_requirements()
            os.makedirs(self._folder, exist_ok=True)
            display_name = await asyncio.to_thread(self._open_display)
            if display_name:
                from proctor.agents.desktop.stop_key import StopKey

                self._stop_key = await asyncio.to_thread(StopKey, display_name, self._authority)
            environment = {VARIABLE: str(self._folder / "env.lock"), "DISPLAY": display_name}
            if self._display is not None:
                environment |= self._display.environment
            log, clock = self._folder / "evaluator.log", self._limits.clock
            self._evaluator_client = EvaluatorClient(self._evaluator, log, environment, clock, self._limits)
            if isinstance(self._agent, Recipe):
                self._agent_client = await asyncio.to_thread(self._open_local_client, self._agent, environment)
            elif isinstance(self._agent, RemoteAddress):
                self._agent_client = RemoteWindowClient(self._agent, display_name, self._authority)
            elif isinstance(self._agent, HumanCandidate):
                self._agent_client = HumanClient(display_name, self._authority)
            else:
                self._agent_client = VisionClient(*self._agent, display_name, self._authority)
        return self._evaluator_client, self._agent_client

    def _open_local_client(self, agent: Recipe, environment: dict[str, str]) -> LocalAgentClient:
        if self._isolation is None:
            return LocalAgentClient(agent, self._folder / "agent.log", environment, self._limits)
        agent_client, self._filtered = open_isolated_client(
            agent, self._isolation, self._folder, environment, Path(environment[VARIABLE]), self._limits
        )
        return agent_client

    def _check_requirements(self) -> None:
        if self._display_option != NO_DISPLAY:
            require_desktop(self._display_option.startswith(VIRTUAL), self._recorded.video)
            if self._recorded.owamcap:
                from proctor.agents.desktop.owamcap import require_mcap

                require_mcap()
        self._evaluator.load().check_requirements(self._limits.clock)

    @property
    def _authority(self) -> Path | None:
        """The Xauthority file of our virtual display."""
        return self._display.authority if self._display is not None else None

    def _open_display(self) -> str:
        """Returns the name of the display, empty without one."""
        if self._display_option == NO_DISPLAY:
            return ""
        if not self._display_option.startswith(VIRTUAL):
            return self._display_option
        self._display = VirtualDisplay(parse_size(self._display_option), self._folder / "display.log")
        self._display.start()
        return self._display.name

    def _watch_frames(self) -> FrameWatch | None:
        """Counts frames on a virtual display only: on a user's own display other programs draw, too."""
        if self._display is None:
            return None
        from proctor.agents.desktop.frames import watch_frames

        return watch_frames(self._display.name, self._display.authority)

    def _start_recording(self, folder: Path) -> EpisodeRecording | None:
        if self._stop_key is None or not self._recorded.anything:
            return None
        from proctor.agents.desktop.episode_recording import EpisodeRecording

        return EpisodeRecording(self._stop_key.desktop, folder, self._recorded.video, self._recorded.owamcap)

    async def close(self) -> None:
        if self._agent_client is not None:
            await self._agent_client.close()
        if self._evaluator_client is not None:
            await self._evaluator_client.close()
            await asyncio.to_thread(_remove_leftovers, self._episode_folders)
            self._episode_folders = []
        if self._stop_key is not None:
            self._stop_key.close()
        if self._filtered is not None:
            await asyncio.to_thread(self._filtered.close)
        if self._display is not None:
            self._display.close()
        self._agent_client = self._evaluator_client = self._stop_key = self._filtered = self._display = None


def _remove_leftovers(folders: list[Path]) -> None:
    """Removes the home folders of programs whose evaluator was killed."""
    for folder in folders:
        for left in folder.glob(f"{HOME}*"):
            remove_home(left)


async def _close_watch(watching: asyncio.Task[FrameWatch | None]) -> list[int] | None:
    """Returns the times of changes on the display; None if they are unknown."""
    await asyncio.wait([watching])
    frames = watching.result() if watching.exception() is None else None
    return None if frames is None else await asyncio.to_thread(frames.close)


def _frames(log: EpisodeLog, changes: list[int] | None) -> dict[str, Any]:
    """Counts the frames that the window showed. Metrics of the evaluator override these."""
    played = log.played_ms()
    if changes is None or played is None:
        return {}
    from proctor.agents.desktop.frames import count_frames

    count = count_frames(changes, *played, log.still_ms())
    return {"frames": count.shown} | ({} if count.late is None else {"late_frames": count.late})


async def _close_both(
    starting: asyncio.Task[EpisodeRecording | None], watching: asyncio.Task[FrameWatch | None]
) -> tuple[str, list[int] | None]:
    """Closes both, even if one fails."""
    return await asyncio.gather(_close_recording(starting), _close_watch(watching))


async def _close_recording(starting: asyncio.Task[EpisodeRecording | None]) -> str:
    """Returns what went wrong with the recording. Awaits a start that was cancelled: ffmpeg would run on."""
    await asyncio.wait([starting])
    recording = starting.result() if starting.exception() is None else None
    return "" if recording is None else await asyncio.to_thread(recording.close)
