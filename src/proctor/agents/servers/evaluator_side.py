"""The evaluator's server: one supervisor at a time, and the results of the last."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

from fastapi import Body, FastAPI, HTTPException, Response

from proctor.agents.hosting.recipe import Recipe
from proctor.agents.judge import Judge, JudgeError
from proctor.agents.player import PlayerError
from proctor.agents.protocol import (
    AgentRegistration,
    Done,
    Ending,
    EvaluationResult,
    EvaluatorState,
    EvaluatorStatus,
    Task,
)
from proctor.agents.servers.access import checked_url
from proctor.agents.servers.remote import Remote, RemotePlayer
from proctor.agents.servers.side import REFUSALS, Side, StartupError
from proctor.agents.supervisor import Supervisor


class EvaluatorSide(Side):
    title = "proctor evaluator"

    def __init__(self, recipe: Recipe, token: str, allowed_hosts: Collection[str]) -> None:
        super().__init__(token, allowed_hosts)
        self._recipe = recipe
        self._player: RemotePlayer | None = None
        self._state = EvaluatorState.INIT
        self._task: Task | None = None
        self._supervisor: Supervisor | None = None
        self._evaluation: asyncio.Task[None] | None = None
        self._result: EvaluationResult | None = None

    def add_routes(self, app: FastAPI) -> None:
        none_yet: dict[int | str, dict[str, Any]] = {204: {"description": "None yet"}}
        app.get("/evaluator/status")(self.status)
        app.post("/evaluator/register_agent", responses=REFUSALS)(self.register_agent)
        app.post("/evaluator/evaluation/start", responses=REFUSALS)(self.start)
        app.post("/evaluator/agent_finished", responses=REFUSALS)(self.agent_finished)
        app.get("/evaluator/evaluation/results", responses=none_yet, response_model=EvaluationResult)(self.results)

    async def open(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="proctor-evaluator-")
        self._judge = Judge(self._recipe, Path(self._folder.name) / "output.log")
        try:
            await self._judge.prepare()
        except JudgeError as error:
            raise StartupError(str(error)) from error

    async def close(self) -> None:
        if self._evaluation is not None:
            self._evaluation.cancel()
            await asyncio.gather(self._evaluation, return_exceptions=True)
        await self._judge.end()
        if self._player is not None:
            await self._player.close()
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
        if self._player is not None:
            await self._player.close()
        self._player = RemotePlayer(Remote(url, self.token))
        self._state = EvaluatorState.READY
        return Done(message=f"registered the agent at {url}")

    async def start(self, task: Task) -> Done:
        if self._state is not EvaluatorState.READY or self._player is None:
            raise HTTPException(400, f"the evaluator is {self._state}, not READY")
        # Before the first wait: of two starts at once one wins.
        self._state, self._task, self._result = EvaluatorState.EVALUATING, task, None
        try:
            await self._player.check_ready()
        except PlayerError as error:
            self._state, self._task = EvaluatorState.READY, None
            raise HTTPException(400, str(error)) from error
        self._supervisor = Supervisor(self._judge, self._player, self._now_scoring)
        self._evaluation = asyncio.create_task(self._evaluate(self._supervisor, task))
        return Done(message=f"evaluating {task.task_id}")

    async def agent_finished(self, ending: Annotated[Ending | None, Body()] = None) -> Done:
        if self._state is not EvaluatorState.EVALUATING or self._player is None:
            raise HTTPException(400, f"the evaluator is {self._state}, not EVALUATING")
        self._player.finished(ending or Ending())
        return Done(message="noted")

    async def results(self) -> Any:
        return Response(status_code=204) if self._result is None else self._result

    def stop_task(self) -> None:
        if self._supervisor is not None:
            self._supervisor.stop()

    def _now_scoring(self) -> None:
        self._state = EvaluatorState.SCORING

    async def _evaluate(self, supervisor: Supervisor, task: Task) -> None:
        try:
            self._result = await supervisor.evaluate(task)
        finally:
            self._supervisor = None
            self._state, self._task = EvaluatorState.READY, None
