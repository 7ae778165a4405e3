"""AgentClient, through which the referee controls an agent, and its implementation for a local process."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec
from pydantic import ValidationError

from proctor.agents.constants import TIMEOUTS
from proctor.agents.outcome import EpisodeOutcome
from proctor.agents.runtime.clock import Clock
from proctor.agents.runtime.hosting.channel import Fault
from proctor.agents.runtime.hosting.host import LONGEST_TEXT
from proctor.agents.runtime.hosting.isolation import AgentSandbox
from proctor.agents.runtime.hosting.process import HostDiedError, HostedFaultError, HostProcess
from proctor.agents.runtime.hosting.recipe import Recipe
from proctor.agents.runtime.limits import RuntimeLimits
from proctor.agents.runtime.reported_events import ReportedEvents
from proctor.agents.types import BEGUN, RAISED, AgentEnding, Task
from proctor.core.types import Usage

ROLE = "proctor.agents.agent:HostedAgent"
MOST_TURNS = 16  # that an isolated agent may have asked for at once
SETTLING = 5.0  # seconds in which an agent may come to the end of its thought, once the score is there


class AgentClient(Protocol):
    """Controls an agent, local or remote."""

    @property
    def ended_at(self) -> float | None:
        """When the agent ended by itself, in time.monotonic(), if known."""

    @property
    def has_acted(self) -> bool:
        """False only if the agent certainly has not acted in the current task."""

    async def prepare(self) -> Any:
        """Returns when the agent can start, before the environment is set up; raises AgentStartError if it cannot."""

    async def start(self, task: Task) -> None:
        """Returns when the agent has started; raises AgentStartError if it cannot."""

    async def ending(self) -> AgentEnding:
        """Returns when the agent has ended by itself."""

    async def stop(self) -> AgentEnding:
        """Stops the agent within a fraction of a second; it does not act afterwards."""

    async def settle(self) -> None:
        """Called after scoring: ends what still runs and prepares the agent for the next task."""

    async def close(self) -> None:
        """Called once at the end."""


def checked_ending(ending: AgentEnding) -> AgentEnding:
    """Returns the ending that an untrusted agent reports, with what it may not claim replaced.

    An agent may not report `stopped`: such an episode has no score, so a losing agent could report it.
    """
    if ending.outcome is not EpisodeOutcome.STOPPED:
        return ending.model_copy(update={"error": ending.error[:LONGEST_TEXT]})
    error = "; ".join(filter(None, ["the agent says that it was stopped by hand", ending.error[:LONGEST_TEXT]]))
    return ending.model_copy(update={"outcome": EpisodeOutcome.COMPLETED, "error": error})


class AgentStartError(Exception):
    """The agent could not begin."""


class LocalAgentClient:
    """Runs an agent in its own process; starts it on first use and restarts it after it was killed."""

    has_acted = True  # the process is not observed

    def __init__(
        self,
        recipe: Recipe,
        log: Path,
        environment: dict[str, str] | None = None,
        limits: RuntimeLimits | None = None,
        sandbox: AgentSandbox | None = None,
    ) -> None:
        """With a room the agent is isolated in it, and what it does is written down by us."""
        self.recipe = recipe
        self._limits = limits or RuntimeLimits()
        self._sandbox = sandbox
        self._reported_events = ReportedEvents()
        self._raised: asyncio.Future[Fault] | None = None  # by the agent, in the current task
        self._raised_at: float | None = None
        self.folder: Path | None = None  # for files of the current episode
        self.usage = Usage()  # unknown
        self.clock = Clock()  # of the current episode
        self._turns: set[asyncio.Task[None]] = set()
        self._log, self._environment = log, environment
        self._process: HostProcess | None = None
        self._changing = asyncio.Lock()  # held while the process is ended or made
        self._playing: asyncio.Task[AgentEnding] | None = None
        self._started = asyncio.Event()
        self._hang_seconds = TIMEOUTS.HANG
        self._done_at: float | None = None  # when its process has answered
        self._deadline = 0.0  # when the time of the task is up, if the environment is never paused

    async def prepare(self) -> None:
        """Starts the process and freezes it until `start`.

        A running agent could watch the set-up and sabotage an episode that it does not like, which would be set up
        again with another seed.
        """
        process = await self._live_process()
        if not process.is_frozen:
            await process.freeze()

    async def _live_process(self) -> HostProcess:
        """Returns the process; starts a new one if it is dead."""
        async with self._changing:
            if self._process is None or not self._process.is_alive:
                if self._process is not None:
                    await self._process.end()
                    self._process = None
                try:
                    self._process = await HostProcess.start(
                        ROLE, self.recipe, self._log, self._environment, self._limits, sandbox=self._sandbox
                    )
                except (HostedFaultError, HostDiedError) as error:
                    raise AgentStartError(f"{self.recipe.name} could not be created: {error}") from error
                self._process.on_notification = partial(self._on_notification, self._process)
            return self._process

    def _on_notification(self, process: HostProcess, message: Any) -> None:
        if message == BEGUN:
            self._started.set()
            return
        if isinstance(message, dict):
            if RAISED in message:
                self._note_fault(message)
            elif self._sandbox is not None:
                self._reported_events.take(message)
            return
        if self._sandbox is not None and len(self._turns) >= MOST_TURNS:
            return
        turn = asyncio.create_task(self._turn(process, message is True))
        self._turns.add(turn)
        turn.add_done_callback(self._turns.discard)

    def _note_fault(self, message: dict[str, Any]) -> None:
        """Notes what the agent raised, without waiting for its process to finish."""
        raised = self._raised
        with suppress(msgspec.ValidationError):  # the message is untrusted
            fault = msgspec.convert(message.get(RAISED), Fault)
            if raised is not None and not raised.done():
                self._raised_at = time.monotonic()
                raised.set_result(fault)

    @property
    def ended_at(self) -> float | None:
        closed_at = None if self._process is None else self._process.closed_at
        return min((at for at in (self._raised_at, closed_at, self._done_at) if at is not None), default=None)

    async def _turn(self, process: HostProcess, still: bool) -> None:
        """Pauses or resumes the environment at the agent's request, and answers when it is done."""
        await (self.clock.pause() if still else self.clock.resume())
        with suppress(HostDiedError, HostedFaultError):
            await process.call("clock_turned")

    async def start(self, task: Task) -> None:
        process = await self._live_process()
        process.thaw()
        self._hang_seconds = min(TIMEOUTS.HANG, task.timeout / 2)
        process.pulse.clear()
        self._started.clear()
        self._raised = asyncio.get_running_loop().create_future()
        self._raised_at = self._done_at = None
        if self._sandbox is not None:
            self._reported_events.begin(str(self.folder or ""))
        self._playing = asyncio.create_task(self._play(process, task))
        await self._await_begin(self._playing)
        self._deadline = time.monotonic() + task.timeout

    async def _await_begin(self, playing: asyncio.Task[AgentEnding]) -> None:
        """Waits until the agent has the task: the time that a busy machine needs for that is not the agent's."""
        begun = asyncio.create_task(self._started.wait())
        try:
            await asyncio.wait([begun, playing], timeout=TIMEOUTS.STARTING, return_when=asyncio.FIRST_COMPLETED)
        finally:
            begun.cancel()
        if not self._started.is_set() and not playing.done():
            await self.kill()
            raise AgentStartError(f"the agent did not begin within {TIMEOUTS.STARTING:g} s")

    async def _play(self, process: HostProcess, task: Task) -> AgentEnding:
        try:
            folder = str(self.folder or "") if self._sandbox is None else ""  # unreachable from a sandbox
            message = await process.call("play", task.model_dump(mode="json"), folder, self.clock.can_pause)
            ending = AgentEnding.model_validate(message)
            # The lags are computed from the log, and the steps counted by the pulse.
            ending = ending.model_copy(update={"lags": {}, "actions": process.pulse.calls})
            return ending if self._sandbox is None else checked_ending(ending)
        except HostedFaultError as error:
            return _crash(error.fault, process)
        except HostDiedError as error:
            return AgentEnding(outcome=EpisodeOutcome.AGENT_CRASH, error=str(error), actions=process.pulse.calls)
        except ValidationError as error:
            await self.kill()  # it may still be acting
            return AgentEnding(outcome=EpisodeOutcome.AGENT_CRASH, error=f"it sent an invalid ending: {error}")
        finally:
            self._done_at = time.monotonic()

    async def ending(self) -> AgentEnding:
        assert self._playing is not None
        assert self._raised is not None
        assert self._process is not None
        either: list[asyncio.Future[Any]] = [self._playing, self._raised]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return self._playing.result() if self._playing.done() else _crash(self._raised.result(), self._process)

    async def stop(self) -> AgentEnding:
        playing, process = self._playing, self._process
        assert playing is not None
        assert process is not None
        if not playing.done():
            asking = asyncio.create_task(process.call("stop"))
            await asyncio.wait([playing], timeout=TIMEOUTS.STOPPING)
            asking.cancel()
            with suppress(asyncio.CancelledError, HostDiedError, HostedFaultError):
                await asking
        if process.closed_at is not None:
            await asyncio.wait([playing])  # it is dead: the guardian reports how it died
        if playing.done():
            return playing.result()
        calls, busy = process.pulse.calls, process.pulse.busy_seconds
        await process.freeze()
        if self._raised is not None and self._raised.done():
            return _crash(self._raised.result(), process)
        if busy >= self._hang_seconds or (calls == 0 and self._is_time_up):
            why = f"in one call of _play_env for {busy:.1f} s" if calls else "it never finished its first step"
            return AgentEnding(outcome=EpisodeOutcome.AGENT_HANG, error=why, actions=calls)
        return AgentEnding(actions=calls)

    @property
    def _is_time_up(self) -> bool:
        """An agent in its first step hangs only if its time is up: it may have begun just before the end."""
        return self.clock.can_pause or time.monotonic() >= self._deadline

    async def settle(self) -> None:
        playing, process = self._playing, self._process
        if playing is None or process is None:
            return
        process.thaw()  # it may have finished just before it was frozen
        if not playing.done():
            await asyncio.wait([playing], timeout=SETTLING if process.pulse.busy_seconds < self._hang_seconds else 0)
        if not playing.done():
            await self.kill()
            await playing
        self._playing = self._raised = None
        self._reported_events.begin("")  # the log of the episode is complete
        with suppress(AgentStartError):  # raised again by the next task
            await self.prepare()

    async def stop_by_hand(self) -> None:
        """Sets the agent's stop event."""
        if self._process is not None:
            with suppress(HostDiedError, HostedFaultError):
                await self._process.call("stop_by_hand")

    async def kill(self) -> None:
        """Kills the process. The ending of a task that it was playing becomes a crash."""
        async with self._changing:
            if self._process is not None:
                await self._process.end()

    async def close(self) -> None:
        await self.kill()
        if self._playing is not None:
            await self._playing
        self._reported_events.begin("")
        if self._sandbox is not None:
            self._sandbox.close()


def _crash(fault: Fault, process: HostProcess) -> AgentEnding:
    """The ending of an agent that raised. The referee verifies a claim that the environment is gone."""
    outcome = EpisodeOutcome.ENV_CRASH if fault.environment_gone else EpisodeOutcome.AGENT_CRASH
    return AgentEnding(outcome=outcome, error=fault.text[:LONGEST_TEXT], actions=process.pulse.calls)
