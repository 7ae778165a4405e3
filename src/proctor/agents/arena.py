"""The referee of episodes in worlds: keeps the time, ends what hangs, and says whose fault it was."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from proctor.agents.channel import IN_AGENT, IN_WORLD
from proctor.agents.constants import TIMEOUTS
from proctor.agents.episode import About, Clock, Episode, View, success
from proctor.agents.events import Ending, close_log, read_events
from proctor.agents.outcome import Outcome
from proctor.agents.process import HostDiedError, HostedFaultError, HostProcess
from proctor.agents.recipe import Recipe
from proctor.errors import UsageError
from proctor.types import Usage

WORLD = "proctor.agents.hosted_world:HostedWorld"
ENVIRONMENT = {"PYGAME_HIDE_SUPPORT_PROMPT": "1"}


class Mind(Protocol):
    """An agent in this process."""

    usage: Usage
    unreadable: int  # answers that were no action

    def begin(self, about: About) -> None: ...

    async def move(self, view: View) -> Any:
        """The next action; None if it has none."""


class EpisodeFault(Exception):  # noqa: N818 - an outcome, to be told and not to be mended
    """Why an episode ended before its end."""

    def __init__(self, outcome: Outcome, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome


class Table:
    """Where one episode after the other is played: a world in its process, made anew when it had to be ended."""

    def __init__(self, world: Recipe, agent: Recipe | None, clock: Clock, log: Path) -> None:
        self._world, self._agent, self._clock, self._log = world, agent, clock, log
        self._process: HostProcess | None = None
        self._about: About | None = None

    async def prepare(self) -> About:
        """The world as it is known, once it is there; raises EpisodeFault if it cannot be made."""
        if self._process is not None and self._process.is_alive and self._about is not None:
            return self._about
        await self.close()
        self._log.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._process = await HostProcess.start(WORLD, self._world, self._log, ENVIRONMENT)
            self._about = msgspec.convert(await self._process.call("about"), About)
        except (HostedFaultError, HostDiedError) as error:
            raise EpisodeFault(Outcome.ENV_CRASH, f"the world could not be made: {error}") from error
        if self._agent is not None:
            await self._seat(self._process, self._agent)
        return self._about

    async def _seat(self, process: HostProcess, agent: Recipe) -> None:
        try:
            async with asyncio.timeout(TIMEOUTS.CREATION):
                await process.call("take_agent", msgspec.msgpack.encode(agent))
        except TimeoutError:
            raise EpisodeFault(Outcome.AGENT_CRASH, f"was not ready after {TIMEOUTS.CREATION:g} s") from None
        except (HostedFaultError, HostDiedError) as error:
            raise EpisodeFault(Outcome.AGENT_CRASH, f"{agent.name} could not be made: {error}") from error

    async def play(self, episode: Episode, mind: Mind | None = None) -> Ending:
        """Always comes to an ending, and writes it into the log."""
        kept = False
        try:
            ending = await self._played(episode, mind)
            kept = ending.outcome.is_play
        except EpisodeFault as fault:
            ending = self._pieced_together(episode, fault.outcome, str(fault))
        finally:
            if not kept:  # what failed or was left in the middle is not trusted with another episode
                await self.close()
        events = str(Path(*Path(episode.log).parts[-2:]))
        ending = msgspec.structs.replace(ending, events=events)
        if mind is not None:
            ending = msgspec.structs.replace(ending, usage=mind.usage, unreadable=mind.unreadable)
        close_log(Path(episode.log), ending)
        return ending

    async def _played(self, episode: Episode, mind: Mind | None) -> Ending:
        about = await self.prepare()
        if mind is not None:
            mind.begin(about)
        process = self._process
        assert process is not None
        failed = await self._within(TIMEOUTS.SETUP, process.call("begin", episode), "reset")
        if failed is not None:
            return msgspec.convert(failed, Ending)
        playing = process.call("play") if mind is None else _by_turns(process, mind)
        return msgspec.convert(await self._refereed(playing, process, episode), Ending)

    async def _within(self, seconds: float, calling: Awaitable[Any], what: str) -> Any:
        try:
            async with asyncio.timeout(seconds):
                return await calling
        except TimeoutError:
            raise EpisodeFault(Outcome.ENV_CRASH, f"{what} did not return within {seconds:g} s") from None
        except HostDiedError as error:
            raise EpisodeFault(Outcome.ENV_CRASH, f"the world died in {what}: {error}") from error
        except HostedFaultError as error:
            raise EpisodeFault(Outcome.JUDGE_ERROR, str(error)) from error

    async def _refereed(self, playing: Awaitable[Any], process: HostProcess, episode: Episode) -> Any:
        try:
            async with asyncio.timeout(episode.timeout + TIMEOUTS.STOPPING) as limit:
                return await playing
        except TimeoutError:
            if not limit.expired():
                raise
            raise _found_at_the_end(process, episode) from None
        except HostDiedError as error:
            in_world = process.pulse.whose == IN_WORLD
            raise EpisodeFault(Outcome.ENV_CRASH if in_world else Outcome.AGENT_CRASH, str(error)) from error
        except HostedFaultError as error:
            raise EpisodeFault(Outcome.JUDGE_ERROR, str(error)) from error

    def _pieced_together(self, episode: Episode, outcome: Outcome, why: str) -> Ending:
        """From what is in the log, when nobody is left to tell."""
        try:
            seen = read_events(Path(episode.log))
        except UsageError:
            return Ending(outcome, why=why, clock=episode.clock)
        threshold = self._about.threshold if self._about else None
        succeeded = success(seen.success, seen.reward, episode.success_reward, threshold) if outcome.is_play else None
        seconds = (seen.lines[-1].ns - seen.lines[0].ns) / 1e9 if seen.lines else 0.0
        return Ending(outcome, seen.reward, seen.length, succeeded, why, seen.trace, seconds, episode.clock)

    async def close(self) -> None:
        if self._process is not None:
            await self._process.end()
            self._process = None


async def _by_turns(process: HostProcess, mind: Mind) -> Any:
    """The world waits for a mind in this process."""
    told = await process.call("look")
    while "outcome" not in told:
        view = msgspec.convert(told, View)
        if view.over:
            return await process.call("end", Outcome.COMPLETED, "")
        told = await process.call("step", await mind.move(view))
    return told


def _found_at_the_end(process: HostProcess, episode: Episode) -> EpisodeFault:
    """What it was at when time was up."""
    busy, hang = process.pulse.busy_seconds, min(TIMEOUTS.HANG, episode.timeout / 2)
    if busy >= hang and process.pulse.whose == IN_AGENT:
        return EpisodeFault(Outcome.AGENT_HANG, f"in one call of the agent for {busy:.1f} s")
    if busy >= hang:
        return EpisodeFault(Outcome.ENV_CRASH, f"in one step of the world for {busy:.1f} s")
    return EpisodeFault(Outcome.TIMEOUT, "time was up")
