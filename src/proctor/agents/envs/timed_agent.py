"""The agent of a timed episode: polls the environment for observations and posts actions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import msgspec

from proctor.agents.constants import TIMEOUTS
from proctor.agents.envs import observations
from proctor.agents.envs.agents import Policy
from proctor.agents.envs.observation_server import CONTENT
from proctor.agents.envs.pending_actions import POLL, EnvGoneError, Frame, PendingAction
from proctor.agents.envs.spaces import IllegalActionError, plain
from proctor.agents.envs.types import EnvDescription
from proctor.agents.runtime.hosting.channel import IN_AGENT
from proctor.agents.runtime.hosting.host import Host
from proctor.agents.runtime.hosting.recipe import Recipe

_decode_frame = msgspec.msgpack.Decoder(Frame).decode


async def play_by_clock(url: str, token: str, decide: Callable[[Frame], Awaitable[Any]]) -> None:
    """Until the environment says that it is over."""
    limits = aiohttp.ClientTimeout(total=POLL + TIMEOUTS.REQUEST)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": CONTENT}
    tick, move = -1, b""
    try:
        async with aiohttp.ClientSession(url, headers=headers, timeout=limits) as session:
            while True:
                asked = session.post("/action", data=move) if move else session.get(f"/observation?after={tick}")
                move = b""
                try:
                    async with asked as reply:
                        if reply.status == 400:
                            raise IllegalActionError(await reply.text())
                        if reply.status == 410:
                            return
                        reply.raise_for_status()
                        if reply.status == 204:  # nothing new yet
                            continue
                        frame = _decode_frame(await reply.read())
                except TimeoutError:
                    continue  # the environment is busy; how long it may be is for the referee to say
                if frame.over:
                    return
                tick, seen = frame.tick, time.monotonic_ns()
                action = plain(await decide(frame))
                move = msgspec.msgpack.encode(PendingAction(tick, action, seen, time.monotonic_ns()))
    except aiohttp.ClientError as error:
        raise EnvGoneError(f"{type(error).__name__}: {error}") from error


class TimedAgent:
    """The role: an agent in its process."""

    def __init__(self, recipe: Recipe, host: Host) -> None:
        self._policy, self._pulse = Policy(recipe), host.pulse

    def begin(self, seed: int, info: dict[str, Any]) -> None:
        self._pulse.clear()
        self._pulse.begin(IN_AGENT)
        self._policy.begin(seed, msgspec.convert(info, EnvDescription))
        self._pulse.clear()

    def play(self, url: str, token: str) -> None:
        asyncio.run(play_by_clock(url, token, self._decide))

    async def _decide(self, frame: Frame) -> Any:
        observation = observations.unpack(frame.observation)
        self._pulse.begin(IN_AGENT)
        action = self._policy.decide(observation)
        self._pulse.end()
        return action
