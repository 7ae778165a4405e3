"""The referee runs one episode: set-up, start of the agent, clock, stop, score.

Agent and evaluator run in processes that can be killed, and every wait has a deadline: neither can block the referee.
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

# Outcomes by which an agent, or its server, ends an episode before its regular end.
ENDED_BY_AGENT = frozenset(EpisodeOutcome) - {
    EpisodeOutcome.COMPLETED,
    EpisodeOutcome.TIMEOUT,
    EpisodeOutcome.AGENT_HANG,
}
DYING = 2.0  # seconds until the referee notices the end of a display that an agent has noticed


class EpisodeDisplay(Protocol):
    """The display of the environment."""

    @property
    def is_alive(self) -> bool: ...

    async def died(self) -> None: ...


class Referee:
    """Runs one task."""

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
        self._scoring = scoring  # called before scoring
        self._stopped = asyncio.Event()
        self._errors: list[str] = []  # errors that did not end the episode
        self.elapsed = 0.0  # seconds of the episode
        self.overshoot = 0.0  # seconds that the agent could act after its time was up
        self.actions = 0
        self._had_window = False  # the window existed before the agent began
        self._is_closed = False  # the window was gone when the agent failed
        self.began = False  # the agent was started
        self._cause_known = False  # the agent did not cause the loss of the environment
        self._ended: dict[str, float] = {}  # what ended the episode -> when
        self.by_agent = False  # the agent may have caused the loss
        self.lags: dict[str, Any] = {}

    def stop(self) -> None:
        """Ends the evaluation by hand."""
        self._stopped.set()

    async def evaluate(self, task: Task) -> EvaluationResult:
        """Always returns a result: with metrics if the episode was scored, else with the reason."""
        try:
            result = await self._evaluate(task)
        except ProctorError:
            raise  # concerns the whole run
        except Exception as error:
            logger.exception("the referee failed in task %s", task.task_id)
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
            await self._agent.prepare()  # before the set-up: it may be slow, and no environment runs yet
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
            # Programs end with their display, and may be noticed before it.
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
        self._event_log.note("started", timeout=task.timeout)  # before the start: a killed run must find it
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
        """Looks at once whether the window is gone if the agent says so: a later close is not the cause."""
        if ending.outcome is EpisodeOutcome.ENV_CRASH and self._had_window:
            self._is_closed = await self._evaluator.shows_window(task.window_name) is False

    async def _timed(self, name: str, wait: Coroutine[Any, Any, Any]) -> Any:
        """Notes when the wait ended."""
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
        """Returns the outcome by the first cause. `before`: what ended the episode before the agent was stopped."""
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
        """Raises the evaluator's error in pausing the environment, which is not the agent's fault."""
        try:
            return clock.result()
        except EnvironmentGoneError:
            self._cause_known = True
            raise

    async def _ended_by_agent(
        self, task: Task, ending: AgentEnding, evaluator: asyncio.Task[None]
    ) -> tuple[EpisodeOutcome, str]:
        """The outcome of an agent that raised, died or set its stop event first.

        The referee verifies a claim that the environment is gone: an agent may be mistaken, or lie. A game that
        closes its window at its end completes the episode.
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
        return EpisodeOutcome.AGENT_CRASH, ending.error or f"the agent reported {ending.outcome}, which it may not"

    async def _has_died(self, display: EpisodeDisplay) -> bool:
        """Waits a moment: an agent or a program may notice the end of its display first."""
        with suppress(TimeoutError):
            await asyncio.wait_for(display.died(), DYING)
        return not display.is_alive

    def _outcome(self, ending: AgentEnding, agent: bool, evaluator: bool, hand: bool) -> tuple[EpisodeOutcome, str]:
        """The outcome by the agent's ending and by what ended the episode."""
        # An agent that is thinking hangs only if the clock ran out.
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
    """Replaces the seed: with the environment's seed the agent could predict it."""
    if task.seed is None:
        return task
    digest = blake2b(str(task.seed).encode(), digest_size=4, person=b"proctor agent").digest()
    return task.model_copy(update={"seed": int.from_bytes(digest) >> 1})
