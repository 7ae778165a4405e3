"""The referee of one evaluation: sets up, starts the agent, keeps the clock, stops it, has it judged.

Nothing that an agent or an evaluator does can keep it waiting: each lives in a process that can be ended, and every
wait has a deadline.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Protocol

from proctor.agents.constants import TIMEOUTS
from proctor.agents.outcome import LOSSES, EpisodeOutcome
from proctor.agents.runtime.agent_client import AgentClient, AgentStartError
from proctor.agents.runtime.clock import Clock
from proctor.agents.runtime.evaluator_client import EnvironmentGoneError, EvaluatorClient, EvaluatorError
from proctor.agents.runtime.event_log import EventLog
from proctor.agents.types import AgentEnding, EvaluationResult, Task
from proctor.core.errors import ProctorError

logger = logging.getLogger("proctor.agents")

# What an agent, or its server, may say of its end that is no end of its play. What else it says is no word of ours.
ENDED_BY_AGENT = frozenset(EpisodeOutcome) - {
    EpisodeOutcome.COMPLETED,
    EpisodeOutcome.TIMEOUT,
    EpisodeOutcome.AGENT_HANG,
}
DYING = 2.0  # seconds in which the end of a display is seen here, after an agent has felt it


class EpisodeDisplay(Protocol):
    """What the environment is shown on."""

    @property
    def is_alive(self) -> bool: ...

    async def died(self) -> None: ...


class Referee:
    """One evaluation of one task."""

    def __init__(
        self,
        evaluator: EvaluatorClient,
        agent: AgentClient,
        scoring: Callable[[], None] = lambda: None,
        event_log: EventLog | None = None,
        display: EpisodeDisplay | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._display, self._clock = display, clock or Clock()
        self._evaluator, self._agent = evaluator, agent
        self._event_log = event_log or EventLog()
        self._scoring = scoring  # told when the play is over
        self._stopped = asyncio.Event()
        self._errors: list[str] = []  # what went wrong without ending the play
        self.elapsed = 0.0  # seconds of play
        self.overshoot = 0.0  # seconds that the agent could act after the end of its time
        self.actions = 0
        self._had_window = False  # before the agent began
        self._is_closed = False  # it was not there any more when the agent had failed
        self.began = False  # the agent was told to begin
        self._cause_known = False  # the environment was lost by no doing of the agent
        self._ended: dict[str, float] = {}  # who has ended the play -> when
        self.by_agent = False  # what was lost counts as the agent's
        self.lags: dict[str, Any] = {}

    def stop(self) -> None:
        """Ends the evaluation by hand."""
        self._stopped.set()

    async def evaluate(self, task: Task) -> EvaluationResult:
        """Always returns a result: with metrics if there was play that could be judged, else with the reason."""
        try:
            result = await self._evaluate(task)
        except ProctorError:
            raise  # concerns the whole run
        except Exception as error:
            logger.exception("the referee stumbled over %s", task.task_id)
            result = self._result(task, EpisodeOutcome.JUDGE_ERROR, f"{type(error).__name__}: {error}")
        could = self.began and self._agent.has_acted and not self._cause_known
        self.by_agent = result.outcome in LOSSES and could
        self._event_log.note("result", **result.model_dump(mode="json"), by_agent=self.by_agent)
        return result

    async def _evaluate(self, task: Task) -> EvaluationResult:
        self._evaluator.stopped = self.stop
        self._event_log.note("task", **task.model_dump(mode="json"))
        try:
            await self._evaluator.prepare()
            await self._agent.prepare()  # first: it may take its time, and nothing waits for it yet
            await self._evaluator.setup(task)
            self._event_log.note("set_up")
            self._had_window = await self._evaluator.shows_window(task.window_name) is True
            outcome, why = await self._play(task)
            if not outcome.is_play:
                return self._result(task, outcome, why)
            await self._clock.stop()
            self._scoring()
            return await self._score(task, outcome, why)
        except EvaluatorError as error:
            return self._result(task, EpisodeOutcome.JUDGE_ERROR, str(error))
        except EnvironmentGoneError as error:
            # The programs of a display end with it, and may be seen to end before it.
            died = self._display is not None and await self._has_died(self._display)
            return self._result(task, EpisodeOutcome.ENV_CRASH, "the display died" if died else str(error))
        except AgentStartError as error:
            return self._result(task, EpisodeOutcome.AGENT_CRASH, str(error))
        finally:
            await asyncio.gather(self._agent.settle(), self._evaluator.settle())

    async def _play(self, task: Task) -> tuple[EpisodeOutcome, str]:
        if self._stopped.is_set():
            return EpisodeOutcome.STOPPED, "stopped by hand"
        self.began = True
        self._event_log.note("started", timeout=task.timeout)  # first: nobody may forget that it has begun
        await self._agent.start(_task_for_agent(task))
        self._clock.start()
        waits: dict[str, Coroutine[Any, Any, Any]] = {
            "agent": self._agent.ending(),
            "judge": self._evaluator.wait_for_end(task, self._errors),
            "hand": self._stopped.wait(),
            "clock": self._clock.run_out(task.timeout),
        }
        if self._display is not None:
            waits["display"] = self._display.died()
        ends = {name: asyncio.create_task(self._timed(name, wait)) for name, wait in waits.items()}
        try:
            await asyncio.wait(ends.values(), return_when=asyncio.FIRST_COMPLETED)
            self.elapsed = min(self._clock.elapsed, task.timeout)
            self._event_log.note("over", elapsed=self.elapsed, by=[name for name, end in ends.items() if end.done()])
            before = dict(self._ended)
            if ends["agent"].done():
                await self._check_window(task, ends["agent"].result())
            ending = await self._agent.stop()
            self._event_log.note("agent_stopped", **ending.model_dump(mode="json"))
            self.overshoot = max(0.0, self._clock.elapsed - task.timeout)
            self.actions, self.lags = ending.actions, ending.lags
            self._errors += self._evaluator.hanging(min(TIMEOUTS.HANG, task.timeout / 2))
            return await self._first_cause(task, ending, before, ends)
        finally:
            for end in ends.values():
                end.cancel()
            await asyncio.gather(*ends.values(), return_exceptions=True)

    async def _check_window(self, task: Task, ending: AgentEnding) -> None:
        """At once, if the agent does not find its environment: whatever closes later is no cause of that."""
        if ending.outcome is EpisodeOutcome.ENV_CRASH and self._had_window:
            self._is_closed = await self._evaluator.shows_window(task.window_name) is False

    async def _timed(self, name: str, wait: Coroutine[Any, Any, Any]) -> Any:
        """Notes when it was over."""
        try:
            result = await wait
        except Exception:
            self._ended[name] = time.monotonic()
            raise
        self._ended[name] = time.monotonic()
        return result

    async def _first_cause(
        self, task: Task, ending: AgentEnding, before: dict[str, float], ends: dict[str, asyncio.Task[Any]]
    ) -> tuple[EpisodeOutcome, str]:
        """By its first cause. `before`: who had ended the play, and when, before the agent was stopped."""
        agents = self._agent.ended_at
        if agents is None:
            agents = before.get("agent", math.inf)
        others = [at for name, at in before.items() if name != "agent"]
        if ending.outcome in ENDED_BY_AGENT and agents <= min(others, default=math.inf):
            return await self._ended_by_agent(task, ending, ends["judge"])
        if self._display is not None and not self._display.is_alive:
            raise EnvironmentGoneError("the display died")
        if ending.outcome in ENDED_BY_AGENT:
            self._errors.append(f"after the end, the agent: {ending.error or ending.outcome}")
            ending = AgentEnding(actions=ending.actions)
        if "judge" in before:
            ends["judge"].result()  # raises what kept the evaluator from watching
        elif "clock" in before and (why := self._clock_result(ends["clock"])):
            return EpisodeOutcome.AGENT_HANG, why
        return self._outcome(ending, "agent" in before, "judge" in before, "hand" in before)

    def _clock_result(self, clock: asyncio.Task[str]) -> str:
        """Raises what kept the evaluator from stopping the environment: that is known not to be the agent's doing."""
        try:
            return clock.result()
        except EnvironmentGoneError:
            self._cause_known = True
            raise

    async def _ended_by_agent(
        self, task: Task, ending: AgentEnding, evaluator: asyncio.Task[None]
    ) -> tuple[EpisodeOutcome, str]:
        """It has raised, died, or set its stop event, before anybody else saw an end.

        That the environment is gone is for the evaluator or for us to say: an agent may be mistaken, or lie. A game
        that closes its window when it is over is a cause before the agent's, though.
        """
        if ending.outcome is EpisodeOutcome.STOPPED:
            return EpisodeOutcome.STOPPED, ending.error
        if self._display is not None and await self._has_died(self._display):
            raise EnvironmentGoneError("the display died")
        if self._is_closed:
            await asyncio.wait([evaluator], timeout=TIMEOUTS.LAST_CHECK)
            if not evaluator.done():
                raise EnvironmentGoneError(f"there is no window {task.window_name!r} any more: {ending.error}")
            evaluator.result()
            return EpisodeOutcome.COMPLETED, "the evaluator saw the end"
        return EpisodeOutcome.AGENT_CRASH, ending.error or f"the agent said {ending.outcome}, which is not its to say"

    async def _has_died(self, display: EpisodeDisplay) -> bool:
        """An agent or a program may feel the end of its display a moment before we see it."""
        with suppress(TimeoutError):
            await asyncio.wait_for(display.died(), DYING)
        return not display.is_alive

    def _outcome(self, ending: AgentEnding, agent: bool, evaluator: bool, hand: bool) -> tuple[EpisodeOutcome, str]:
        """Of the play, from how the agent was found at its end, and from who ended it."""
        # Who was in the middle of a thought has only missed the end if it was the clock that ran out.
        thinking = ending.outcome is EpisodeOutcome.AGENT_HANG and (hand or (evaluator and ending.actions > 0))
        if ending.outcome is EpisodeOutcome.AGENT_HANG and not thinking:
            return ending.outcome, ending.error
        if ending.error and not thinking:
            self._errors.append(ending.error)
        if hand:
            return EpisodeOutcome.STOPPED, "stopped by hand"
        if evaluator:
            return EpisodeOutcome.COMPLETED, "the evaluator saw the end"
        if agent:
            return EpisodeOutcome.COMPLETED, "the agent finished"
        return EpisodeOutcome.TIMEOUT, "time was up"

    async def _score(self, task: Task, outcome: EpisodeOutcome, note: str) -> EvaluationResult:
        result = await self._evaluator.score(task, self.elapsed, note)
        notes = [result.notes or note, *self._errors]
        return result.model_copy(
            update={"task_id": task.task_id, "outcome": outcome, "notes": "; ".join(filter(None, notes))}
        )

    def _result(self, task: Task, outcome: EpisodeOutcome, why: str) -> EvaluationResult:
        return EvaluationResult(task_id=task.task_id, outcome=outcome, notes="; ".join([why, *self._errors]))


def _task_for_agent(task: Task) -> Task:
    """With a seed of its own: by that of the world it could foresee what comes."""
    if task.seed is None:
        return task
    digest = blake2b(str(task.seed).encode(), digest_size=4, person=b"proctor agent").digest()
    return task.model_copy(update={"seed": int.from_bytes(digest) >> 1})
