"""Where episodes are played, one after the other: a display, a judge and a player with processes of their own."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from proctor.agents.attempt import Attempt
from proctor.agents.clock import Clock, ClockName
from proctor.agents.desktop.display import VIRTUAL, VirtualDisplay, parse_size
from proctor.agents.hosting.recipe import Recipe
from proctor.agents.human import HumanCandidate
from proctor.agents.human_player import HumanPlayer
from proctor.agents.journal import Journal
from proctor.agents.judge import Judge
from proctor.agents.lags import Lags
from proctor.agents.locking import VARIABLE
from proctor.agents.player import LocalPlayer
from proctor.agents.protocol import Task
from proctor.agents.recording import EVENTS
from proctor.agents.requirements import require_desktop
from proctor.agents.shielding import completed
from proctor.agents.supervisor import Supervisor
from proctor.agents.vision_player import VisionPlayer
from proctor.models.model import Model, Sampling
from proctor.types import Sample

if TYPE_CHECKING:
    from proctor.agents.desktop.episode_recording import EpisodeRecording
    from proctor.agents.desktop.stop_key import StopKey

NO_DISPLAY = "none"
Candidates = Recipe | tuple[Model, Sampling] | HumanCandidate


class Booth:
    """Made for an agent and an evaluator; what dies in it is made anew for the next episode."""

    def __init__(
        self,
        agent: Candidates,
        evaluator: Recipe,
        display: str,
        film: bool,
        folder: Path,
        longest_thought: float | None = None,
        owamcap: bool = False,
    ) -> None:
        """With a longest thought, in seconds, the environment waits while the agent thinks."""
        self._agent, self._evaluator, self._display_wanted, self._film = agent, evaluator, display, film
        self._folder, self._longest_thought, self._owamcap = folder, longest_thought, owamcap
        self._display: VirtualDisplay | None = None
        self._stop_key: StopKey | None = None
        self._judge: Judge | None = None
        self._player: LocalPlayer | VisionPlayer | HumanPlayer | None = None

    async def play(self, task: Task, folder: Path, sample: Sample) -> Attempt:
        """One attempt; its files go to the folder."""
        os.makedirs(folder, exist_ok=True)
        judge, player = await self._prepare()
        journal = Journal(folder / EVENTS)
        judge.folder = player.folder = folder
        if isinstance(player, VisionPlayer | HumanPlayer):
            player.sample = sample
        clock = player.clock = Clock() if self._longest_thought is None else Clock(judge, self._longest_thought)
        starting = asyncio.create_task(asyncio.to_thread(self._start_recording, folder))
        try:
            await asyncio.shield(starting)
            supervisor = Supervisor(judge, player, journal=journal, display=self._display, clock=clock)
            if self._stop_key is not None:
                loop = asyncio.get_running_loop()
                self._stop_key.pressed = partial(loop.call_soon_threadsafe, supervisor.stop)
            result = await supervisor.evaluate(task)
        finally:
            try:
                trouble = await completed(asyncio.create_task(_close_recording(starting)))
                if trouble:
                    journal.note("film", trouble=trouble)
            finally:
                journal.close()
        return Attempt(
            result.outcome,
            result.metrics,
            "; ".join(filter(None, [result.notes, trouble])),
            supervisor.elapsed,
            supervisor.overshoot,
            supervisor.actions,
            player.usage,
            msgspec.convert(supervisor.lags, dict[str, Lags], strict=False),
        )

    async def _prepare(self) -> tuple[Judge, LocalPlayer | VisionPlayer | HumanPlayer]:
        if self._display is not None and not self._display.is_alive:
            await self.close()
        if self._judge is None or self._player is None:
            self._check_requirements()
            os.makedirs(self._folder, exist_ok=True)
            shown_on = await asyncio.to_thread(self._open_display)
            if shown_on:
                from proctor.agents.desktop.stop_key import StopKey

                self._stop_key = await asyncio.to_thread(StopKey, shown_on)
            environment = {VARIABLE: str(self._folder / "env.lock"), "DISPLAY": shown_on}
            self._judge = Judge(self._evaluator, self._folder / "evaluator.log", environment, self._clock_name)
            if isinstance(self._agent, Recipe):
                self._player = LocalPlayer(self._agent, self._folder / "agent.log", environment)
            elif isinstance(self._agent, HumanCandidate):
                self._player = HumanPlayer(shown_on)
            else:
                self._player = VisionPlayer(*self._agent, shown_on)
        return self._judge, self._player

    def _check_requirements(self) -> None:
        if self._display_wanted != NO_DISPLAY:
            require_desktop(self._display_wanted.startswith(VIRTUAL), self._film)
            if self._owamcap:
                from proctor.agents.desktop.owamcap import require_mcap

                require_mcap()
        self._evaluator.found().check_requirements(self._clock_name)

    @property
    def _clock_name(self) -> ClockName:
        return "realtime" if self._longest_thought is None else "paused"

    def _open_display(self) -> str:
        """The name of the display; none is an empty one."""
        if self._display_wanted == NO_DISPLAY:
            return ""
        if not self._display_wanted.startswith(VIRTUAL):
            return self._display_wanted
        self._display = VirtualDisplay(parse_size(self._display_wanted), self._folder / "display.log")
        self._display.start()
        return self._display.name

    def _start_recording(self, folder: Path) -> EpisodeRecording | None:
        if self._stop_key is None or not (self._film or self._owamcap):
            return None
        from proctor.agents.desktop.episode_recording import EpisodeRecording

        # Of the display in use, also if it is not ours.
        return EpisodeRecording(self._stop_key.desktop, folder, self._film, self._owamcap)

    async def close(self) -> None:
        if self._player is not None:
            await self._player.close()
        if self._judge is not None:
            await self._judge.close()
        if self._stop_key is not None:
            self._stop_key.close()
        if self._display is not None:
            self._display.close()
        self._player = self._judge = self._stop_key = self._display = None


async def _close_recording(starting: asyncio.Task[EpisodeRecording | None]) -> str:
    """What went wrong with the recording. A start that the caller has given up is awaited: ffmpeg would run on."""
    await asyncio.wait([starting])
    recording = starting.result() if starting.exception() is None else None
    return "" if recording is None else await asyncio.to_thread(recording.close)
