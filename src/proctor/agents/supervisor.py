"""The referee of one evaluation: sets up, starts the agent, keeps the clock, stops it, has it judged.

Nothing that an agent or an evaluator does can keep it waiting: each lives in a process that can be ended, and every
wait has a deadline.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Protocol

from proctor.agents.clock import Clock
from proctor.agents.journal import Journal
from proctor.agents.judge import EnvironmentGoneError, Judge, JudgeError
from proctor.agents.outcome import Outcome
from proctor.agents.player import Player, PlayerError
from proctor.agents.protocol import Ending, EvaluationResult, Task
from proctor.errors import ProctorError

logger = logging.getLogger("proctor.agents")

DYING = 2.0  # seconds in which the end of a display is seen here, after an agent has felt it


class Display(Protocol):
    """What the environment is shown on."""

    @property
    def is_alive(self) -> bool: ...

    async def died(self) -> None: ...


class Supervisor:
    """One evaluation of one task."""

    def __init__(
        self,
        judge: Judge,
        player: Player,
        scoring: Callable[[], None] = lambda: None,
        journal: Journal | None = None,
        display: Display | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._display, self._clock = display, clock or Clock()
        self._judge, self._player = judge, player
        self._journal = journal or Journal()
        self._scoring = scoring  # told when the play is over
        self._stopped = asyncio.Event()
        self._errors: list[str] = []  # what went wrong without ending the play
        self.elapsed = 0.0  # seconds of play
        self.overshoot = 0.0  # seconds that the agent could act after the end of its time
        self.actions = 0
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
            result = self._result(task, Outcome.JUDGE_ERROR, f"{type(error).__name__}: {error}")
        self._journal.note("result", **result.model_dump(mode="json"))
        return result

    async def _evaluate(self, task: Task) -> EvaluationResult:
        self._judge.stopped = self.stop
        self._journal.note("task", **task.model_dump(mode="json"))
        try:
            await self._judge.prepare()
            await self._player.prepare()  # first: it may take its time, and nothing waits for it yet
            await self._judge.setup(task)
            self._journal.note("set_up")
            outcome, why = await self._play(task)
            if not outcome.is_play:
                return self._result(task, outcome, why)
            await self._clock.stop()
            self._scoring()
            return await self._score(task, outcome, why)
        except JudgeError as error:
            return self._result(task, Outcome.JUDGE_ERROR, str(error))
        except EnvironmentGoneError as error:
            return self._result(task, Outcome.ENV_CRASH, str(error))
        except PlayerError as error:
            return self._result(task, Outcome.AGENT_CRASH, str(error))
        finally:
            await asyncio.gather(self._player.settle(), self._judge.settle())

    async def _play(self, task: Task) -> tuple[Outcome, str]:
        if self._stopped.is_set():
            return Outcome.STOPPED, "stopped by hand"
        await self._player.start(_as_the_agent_hears_it(task))
        self._clock.start()
        self._journal.note("started", timeout=task.timeout)
        ends: dict[str, asyncio.Task[Any]] = {
            "agent": asyncio.create_task(self._player.ending()),
            "judge": asyncio.create_task(self._judge.see_the_end(task, self._errors)),
            "hand": asyncio.create_task(self._stopped.wait()),
            "clock": asyncio.create_task(self._clock.run_out(task.timeout)),
        }
        if self._display is not None:
            ends["display"] = asyncio.create_task(self._display.died())
        try:
            await asyncio.wait(ends.values(), return_when=asyncio.FIRST_COMPLETED)
            self.elapsed = min(self._clock.elapsed, task.timeout)
            by = {name: end.done() for name, end in ends.items()}
            self._journal.note("over", elapsed=self.elapsed, by=[name for name, done in by.items() if done])
            ending = await self._player.stop()
            self._journal.note("agent_stopped", **ending.model_dump(mode="json"))
            self.overshoot = max(0.0, self._clock.elapsed - task.timeout)
            self.actions, self.lags = ending.actions, ending.lags
            if self._display is not None and await self._has_died(self._display, ending):
                raise EnvironmentGoneError("the display died")
            if by["judge"]:
                ends["judge"].result()  # raises what kept the evaluator from watching
            elif by["clock"] and (why := ends["clock"].result()):  # or from stopping the world
                return Outcome.AGENT_HANG, why
            elif ending.outcome is Outcome.ENV_CRASH and await self._judge.is_over(task):
                ending, by["judge"] = Ending(actions=ending.actions), True  # a game may close its window at the end
            return self._outcome(ending, by["agent"], by["judge"], by["hand"])
        finally:
            for end in ends.values():
                end.cancel()
            await asyncio.gather(*ends.values(), return_exceptions=True)

    async def _has_died(self, display: Display, ending: Ending) -> bool:
        """An agent may feel the end of its display a moment before we see it."""
        if ending.outcome is not Outcome.COMPLETED:
            with suppress(TimeoutError):
                await asyncio.wait_for(display.died(), DYING)
        return not display.is_alive

    def _outcome(self, ending: Ending, agent: bool, judge: bool, hand: bool) -> tuple[Outcome, str]:
        """Of the play, from how the agent was found at its end, and from who ended it."""
        # Who was in the middle of a thought has only missed the end if it was the clock that ran out.
        thinking = ending.outcome is Outcome.AGENT_HANG and (hand or (judge and ending.actions > 0))
        if ending.outcome in getattr(self._player, "not_its_to_say", ()):
            return Outcome.AGENT_CRASH, ending.error or f"the agent said {ending.outcome}, which is not its to say"
        if ending.outcome is not Outcome.COMPLETED and not thinking:
            return ending.outcome, ending.error
        if ending.error and not thinking:
            self._errors.append(ending.error)
        if hand:
            return Outcome.STOPPED, "stopped by hand"
        if judge:
            return Outcome.COMPLETED, "the evaluator saw the end"
        if agent:
            return Outcome.COMPLETED, "the agent finished"
        return Outcome.TIMEOUT, "time was up"

    async def _score(self, task: Task, outcome: Outcome, note: str) -> EvaluationResult:
        result = await self._judge.score(task, self.elapsed, note)
        notes = [result.notes or note, *self._errors]
        return result.model_copy(
            update={"task_id": task.task_id, "outcome": outcome, "notes": "; ".join(filter(None, notes))}
        )

    def _result(self, task: Task, outcome: Outcome, why: str) -> EvaluationResult:
        return EvaluationResult(task_id=task.task_id, outcome=outcome, notes="; ".join([why, *self._errors]))


def _as_the_agent_hears_it(task: Task) -> Task:
    """With a seed of its own: by that of the world it could foresee what comes."""
    if task.seed is None:
        return task
    digest = blake2b(str(task.seed).encode(), digest_size=4, person=b"proctor agent").digest()
    return task.model_copy(update={"seed": int.from_bytes(digest) >> 1})
