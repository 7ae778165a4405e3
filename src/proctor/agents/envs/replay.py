"""Replays a logged episode with the actions of its log."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from proctor.agents.envs.event_log import NAME, EpisodeEnding, RecordedEpisode, StepState, read_events
from proctor.agents.envs.referee import EnvSession
from proctor.agents.envs.task import EnvTask
from proctor.agents.envs.types import EnvDescription, Episode
from proctor.agents.runtime.hosting.recipe import with_arguments
from proctor.core import registry
from proctor.core.errors import UsageError
from proctor.core.task import create_task

LONGEST = 24 * 3600.0  # seconds


class ReplayAgent:
    """Takes the actions of the log."""

    def __init__(self, path: str) -> None:
        self._path = path

    def reset(self, seed: int, world_info: EnvDescription) -> None:
        self._actions = iter([state.action for state in read_events(Path(self._path)).states[1:]])

    def act(self, observation: Any) -> Any:
        return next(self._actions)


class ReplayResult(Struct, frozen=True):
    """A replayed episode and its first difference from the log."""

    recording: RecordedEpisode
    ending: EpisodeEnding
    difference: str

    @property
    def same(self) -> bool:
        return not self.difference


def replay(path: Path) -> ReplayResult:
    """Replays in step mode, whatever the clock was: the trace does not contain times."""
    recording = read_events(path)
    if not recording.lines:
        raise UsageError(f"{path} has no steps to play again: the environment was never begun.")
    header = recording.header
    known = {name: header.settings[name] for name in header.settings if name != "clock"}
    task = create_task(registry.load_task_class(header.task), header.task, known)
    if not isinstance(task, EnvTask):
        raise UsageError(f"{path}: {header.task} is not a task in a stepped environment.")
    again = asyncio.run(_play(path.absolute(), recording, task))
    return ReplayResult(recording, again[0], _difference(recording.states, again[1]))


async def _play(path: Path, recording: RecordedEpisode, task: EnvTask) -> tuple[EpisodeEnding, list[StepState]]:
    agent = with_arguments(__name__, ReplayAgent.__name__, path=str(path))
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "replay" / NAME
        session = EnvSession(task.env_recipe(in_words=False), agent, "step", Path(folder) / "process.log")
        episode = Episode(recording.header, str(log), 0, LONGEST, max_steps=recording.length)
        try:
            ending = await session.play(episode)
        finally:
            await session.close()
        if not ending.outcome.is_play:
            raise UsageError(f"{path} could not be played again: {ending.outcome}: {ending.why}")
        return ending, read_events(log).states


def _difference(first: list[StepState], second: list[StepState]) -> str:
    for step, (one, other) in enumerate(zip(first, second, strict=False)):
        for name in StepState.__struct_fields__:
            was, now = getattr(one, name), getattr(other, name)
            if msgspec.json.encode(was) != msgspec.json.encode(now):
                return f"step {step}: {name} was {was!r}, now {now!r}"
    return "" if len(first) == len(second) else f"it had {len(first) - 1} steps, now it has {len(second) - 1}"
