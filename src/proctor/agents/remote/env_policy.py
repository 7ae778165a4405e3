"""AsyncPolicy for a remote agent in a stepped environment of this machine."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any
from uuid import uuid4

import msgspec

from proctor.agents.envs.types import EnvDescription, EnvInfo, Episode, EpisodeFault, PromptView
from proctor.agents.outcome import EpisodeOutcome
from proctor.agents.remote import messages
from proctor.agents.remote.client import RemoteAgentConnection, RemoteAgentError
from proctor.core.types import Usage

ENDING = 2.0  # seconds for the message that the episode is over


class RemotePolicy:
    """Plays one episode."""

    def __init__(self, client: RemoteAgentConnection, episode: Episode) -> None:
        self.usage = Usage()  # unknown
        self.unreadable = 0
        self._client, self._episode = client, episode
        self._name = str(uuid4())
        self._begun = False
        self._info: EnvDescription
        client.forget()

    @property
    def busy_seconds(self) -> float:
        return self._client.busy_seconds

    def begin(self, about: EnvInfo) -> None:
        header = self._episode.header
        self._info = EnvDescription(header.task, about.actions, self._episode.clock, self._episode.fps)

    async def move(self, view: PromptView) -> Any:
        try:
            if not self._begun:
                self._begun = True
                info = msgspec.to_builtins(self._info)
                await self._client.begin(messages.Begin(self._name, "world", None, self._episode.agent_seed, info))
            headers = {"Content-Type": messages.OBSERVATION}
            answer = await self._client.step(self._name, view.step, view.observation, headers, messages.world_answer)
        except RemoteAgentError as error:
            raise EpisodeFault(EpisodeOutcome.AGENT_CRASH, str(error)) from error
        if answer.action is None:
            raise EpisodeFault(EpisodeOutcome.AGENT_CRASH, "it gave null, which is not an action")
        return answer.action

    async def end(self) -> None:
        self._client.forget()
        if self._begun:
            with suppress(RemoteAgentError, TimeoutError):  # it will notice when the next one begins
                async with asyncio.timeout(ENDING):
                    await self._client.end(self._name)
