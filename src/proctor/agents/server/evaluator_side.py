"""The evaluator's server: one evaluation at a time, and the latest results."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI, HTTPException, Response

from proctor.agents.runtime.agent_client import AgentStartError
from proctor.agents.runtime.evaluator_client import EvaluatorClient, EvaluatorError
from proctor.agents.runtime.hosting.recipe import Recipe
from proctor.agents.runtime.limits import EpisodeLimits
from proctor.agents.runtime.referee import Referee
from proctor.agents.server.access import checked_url
from proctor.agents.server.remote import AgentServerClient, RemoteServer
from proctor.agents.server.side import REFUSALS, Side, StartupError
from proctor.agents.types import (
    AgentRegistration,
    Done,
    EvaluationResult,
    EvaluatorState,
    EvaluatorStatus,
    Finished,
    Task,
)

KEPT_RESULTS = 100


class EvaluatorSide(Side):
    title = "proctor evaluator"

    def __init__(
        self, recipe: Recipe, token: str, allowed_hosts: Collection[str], limits: EpisodeLimits | None = None
    ) -> None:
        super().__init__(token, allowed_hosts)
        self._recipe, self._limits = recipe, limits
        self._agent: AgentServerClient | None = None
        self._state = EvaluatorState.INIT
        self._task: Task | None = None
        self._referee: Referee | None = None
        self._evaluation: asyncio.Task[None] | None = None
        self._results: dict[str, EvaluationResult] = {}  # by task, the latest last
        self._latest = ""  # the task that was started last

    def add_routes(self, app: FastAPI) -> None:
        none_yet: dict[int | str, dict[str, Any]] = {204: {"description": "None yet"}}
        app.get("/evaluator/status")(self.status)
        app.post("/evaluator/register_agent", responses=REFUSALS)(self.register_agent)
        app.post("/evaluator/evaluation/start", responses=REFUSALS)(self.start)
        app.post("/evaluator/agent_finished", responses=REFUSALS)(self.agent_finished)
        app.get("/evaluator/evaluation/results", responses=none_yet, response_model=EvaluationResult)(self.results)

    async def open(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="proctor-evaluator-")
        log = Path(self._folder.name) / "output.log"
        self._evaluator = EvaluatorClient(self._recipe, log, self.environment, limits=self._limits)
        try:
            await self._evaluator.prepare()
        except EvaluatorError as error:
            raise StartupError(str(error)) from error

    async def close(self) -> None:
        if self._evaluation is not None:
            self._evaluation.cancel()
            await asyncio.gather(self._evaluation, return_exceptions=True)
        await self._evaluator.end()
        if self._agent is not None:
            await self._agent.close()
        self._folder.cleanup()

    async def status(self) -> EvaluatorStatus:
        return EvaluatorStatus(state=self._state, current_task=self._task)

    async def register_agent(self, registration: AgentRegistration) -> Done:
        if self._state not in (EvaluatorState.INIT, EvaluatorState.READY):
            raise HTTPException(400, f"the evaluator is {self._state}: not while it evaluates")
        try:
            url = checked_url(registration.agent_url, self.allowed_hosts)
        except ValueError as error:
            raise HTTPException(400, str(error)) from error
        # Before the first await, in which a task may be started.
        former, self._agent = self._agent, AgentServerClient(RemoteServer(url, self.token))
        self._state = EvaluatorState.READY
        if former is not None:
            await former.close()
        return Done(message=f"registered the agent at {url}")

    async def start(self, task: Task) -> Done:
        agent = self._agent
        if self._state is not EvaluatorState.READY or agent is None:
            raise HTTPException(400, f"the evaluator is {self._state}, not READY")
        # Before the first await: of two concurrent starts one wins.
        self._state, self._task, self._latest = EvaluatorState.EVALUATING, task, task.task_id
        self._results.pop(task.task_id, None)
        try:
            await agent.is_ready()
        except BaseException as error:
            self._state, self._task = EvaluatorState.READY, None
            if isinstance(error, AgentStartError):
                raise HTTPException(400, str(error)) from error
            raise
        self._referee = Referee(self._evaluator, agent, self._now_scoring)
        self._evaluation = asyncio.create_task(self._evaluate(self._referee, task))
        return Done(message=f"evaluating {task.task_id}")

    async def agent_finished(self, ending: Annotated[Finished | None, Body()] = None) -> Done:
        if self._state is not EvaluatorState.EVALUATING or self._agent is None or self._task is None:
            raise HTTPException(400, f"the evaluator is {self._state}, not EVALUATING")
        ending = ending or Finished()
        if ending.task_id not in (None, self._task.task_id):
            raise HTTPException(400, "another task is under way")
        self._agent.finished(ending)
        return Done(message="noted")

    async def results(self, task_id: str | None = None) -> Any:
        """Of the task that is named, or else of the one that was started last."""
        return self._results.get(self._latest if task_id is None else task_id) or Response(status_code=204)

    def stop_task(self) -> None:
        if self._referee is not None:
            self._referee.stop()

    def _now_scoring(self) -> None:
        self._state = EvaluatorState.SCORING

    async def _evaluate(self, referee: Referee, task: Task) -> None:
        try:
            self._results[task.task_id] = await referee.evaluate(task)
            while len(self._results) > KEPT_RESULTS:
                del self._results[next(iter(self._results))]
        finally:
            self._referee = None
            self._state, self._task = EvaluatorState.READY, None
