"""The agent's server: plays the tasks that it receives, in a process that it can kill."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI, HTTPException

from proctor.agents.constants import TIMEOUTS, TIMES
from proctor.agents.desktop.interface import DesktopError
from proctor.agents.runtime.agent_client import AgentStartError, LocalAgentClient
from proctor.agents.runtime.hosting.isolation import Isolation
from proctor.agents.runtime.hosting.recipe import Recipe
from proctor.agents.runtime.isolated_client import open_isolated_client
from proctor.agents.runtime.limits import EpisodeLimits
from proctor.agents.runtime.locking import lock_path
from proctor.agents.server.access import checked_url
from proctor.agents.server.connection import UnreachableError
from proctor.agents.server.remote import Contact, RefusedError, RemoteServer
from proctor.agents.server.side import REFUSALS, Side, StartupError
from proctor.agents.types import (
    AgentEnding,
    AgentState,
    AgentStatus,
    Done,
    EvaluatorRegistration,
    EvaluatorStatus,
    Finished,
    Stopped,
    Task,
)

if TYPE_CHECKING:
    from proctor.agents.display_filter.display import FilteredDisplay

logger = logging.getLogger("proctor.agents")

OVERTIME = 30.0  # seconds after its timeout at which an agent stops without a request


class AgentSide(Side):
    title = "proctor agent"

    def __init__(
        self,
        recipe: Recipe,
        token: str,
        allowed_hosts: Collection[str],
        limits: EpisodeLimits | None = None,
        isolation: Isolation | None = None,
    ) -> None:
        super().__init__(token, allowed_hosts)
        self._recipe, self._limits, self._isolation = recipe, limits, isolation
        self._filtered: FilteredDisplay | None = None
        self._evaluator: RemoteServer | None = None
        self._state = AgentState.INIT
        self._task: Task | None = None
        self._watching: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[AgentEnding] | None = None
        self._stop_requested = asyncio.Event()

    def add_routes(self, app: FastAPI) -> None:
        app.get("/agent/status")(self.status)
        app.post("/agent/register_evaluator", responses=REFUSALS)(self.register_evaluator)
        app.post("/agent/task/start", responses=REFUSALS)(self.start)
        app.post("/agent/task/stop", responses=REFUSALS)(self.stop)
        app.post("/agent/kill", responses=REFUSALS)(self.kill)

    async def open(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="proctor-agent-")
        try:
            self._agent = await asyncio.to_thread(self._new_client, Path(self._folder.name))
            await self._agent.prepare()
        except (AgentStartError, DesktopError) as error:
            raise StartupError(str(error)) from error

    def _new_client(self, folder: Path) -> LocalAgentClient:
        log = "output.log"
        if self._isolation is None:
            return LocalAgentClient(self._recipe, folder / log, self.environment, self._limits)
        around = {**os.environ, **self.environment}
        agent, self._filtered = open_isolated_client(
            self._recipe, self._isolation, folder, around, lock_path(around), self._limits, log
        )
        return agent

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await self._agent.close()
        if self._filtered is not None:
            await asyncio.to_thread(self._filtered.close)
        if self._evaluator is not None:
            await self._evaluator.close()
        self._folder.cleanup()

    async def status(self) -> AgentStatus:
        return AgentStatus(state=self._state, current_task=self._task)

    async def register_evaluator(self, registration: EvaluatorRegistration) -> Done:
        try:
            url = checked_url(registration.evaluator_url, self.allowed_hosts)
        except ValueError as error:
            raise HTTPException(400, str(error)) from error
        done = Done(message=f"registered the evaluator at {url}")
        if self._state is AgentState.STOPPING and self._watching is not None:
            if self._evaluator is not None and self._evaluator.url == url:
                return done  # the evaluator waits until the agent is ready
            await asyncio.wait([self._watching], timeout=TIMEOUTS.READY)
        if self._state in (AgentState.RUNNING, AgentState.STOPPING):
            raise HTTPException(400, f"the agent is {self._state}: not while it plays")
        # Before the first await, in which a task may be started.
        former, self._evaluator = self._evaluator, RemoteServer(url, self.token)
        self._state = AgentState.READY
        if former is not None:
            await former.close()
        return done

    async def start(self, task: Task) -> Done:
        if self._state is not AgentState.READY:
            raise HTTPException(400, f"the agent is {self._state}, not READY")
        self._state, self._task = AgentState.RUNNING, task  # before the first await: of two concurrent starts one wins
        self._watching = self._stopping = None
        self._stop_requested.clear()
        try:
            await self._agent.start(task)
        except BaseException as error:
            self._state, self._task = AgentState.READY, None
            if isinstance(error, AgentStartError):
                raise HTTPException(400, str(error)) from error
            raise
        self._watching = asyncio.create_task(self._watch(task))
        return Done(message=f"playing {task.task_id}")

    async def stop(self) -> Stopped:
        if self._state is not AgentState.RUNNING or self._watching is None:
            raise HTTPException(400, f"the agent is {self._state}, not RUNNING")
        self._state = AgentState.STOPPING
        self._stop_requested.set()
        ending = await self._stop()
        return Stopped(message="stopped", ending=ending)

    async def kill(self) -> Done:
        """Kills the agent's process and starts a new one."""
        if self._state is AgentState.INIT:
            raise HTTPException(400, "the agent is INIT: nothing is running")
        await self._agent.kill()
        if self._state is AgentState.READY:  # otherwise `_watch` does it
            try:
                await self._agent.prepare()
            except AgentStartError as error:
                raise HTTPException(400, str(error)) from error
        return Done(message="killed; a new process takes its place")

    def stop_task(self) -> None:
        if self._state is AgentState.RUNNING:
            self._by_hand = asyncio.create_task(self._agent.stop_by_hand())

    async def _stop(self) -> AgentEnding:
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._agent.stop())
        return await asyncio.shield(self._stopping)

    async def _watch(self, task: Task) -> None:
        """Runs from the start of a task until the agent is ready for the next."""
        try:
            await self._run_to_end(task)
            self._state = AgentState.STOPPING
            await self._agent.settle()
        except Exception:
            logger.exception("the agent is killed after an error in task %s", task.task_id)
            await self._agent.kill()
        finally:
            self._state, self._task = AgentState.READY, None

    async def _run_to_end(self, task: Task) -> None:
        """Waits until the agent has ended and the evaluator knows it."""
        ended = asyncio.create_task(self._agent.ending())
        deserted = asyncio.create_task(self._deserted(task))
        stop_requested = asyncio.create_task(self._stop_requested.wait())
        try:
            await asyncio.wait(
                [ended, deserted, stop_requested], timeout=task.timeout, return_when=asyncio.FIRST_COMPLETED
            )
            by_itself = ended.done() and not self._stop_requested.is_set()
            ending = await self._stop()  # on time, even if the evaluator's request is late
            if by_itself:
                await self._report(task, ending)
                return
            await asyncio.wait([deserted, stop_requested], timeout=OVERTIME, return_when=asyncio.FIRST_COMPLETED)
            if not stop_requested.done():
                logger.warning("the agent has stopped: its evaluator does not answer")
            elif not ended.done():
                # Frozen until it is scored: it must not change anything.
                await asyncio.wait([deserted, ended], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiting in (ended, deserted, stop_requested):
                waiting.cancel()
            await asyncio.gather(ended, deserted, stop_requested, return_exceptions=True)

    async def _report(self, task: Task, ending: AgentEnding) -> None:
        assert self._evaluator is not None
        finished = Finished(task_id=task.task_id, **ending.model_dump())
        with suppress(UnreachableError, RefusedError):  # it polls our state
            await self._evaluator.post("/evaluator/agent_finished", Done, finished)

    async def _deserted(self, task: Task) -> None:
        """Returns when the evaluator is gone, or busy with something else."""
        assert self._evaluator is not None
        contact = Contact()
        while not contact.is_lost:
            await asyncio.sleep(TIMES.STATUS_INTERVAL)
            with suppress(UnreachableError, RefusedError), contact.attempt():
                status = await self._evaluator.get("/evaluator/status", EvaluatorStatus, TIMEOUTS.STATUS)
                current = status.current_task if status else None
                if current is None or current.task_id != task.task_id:
                    raise RefusedError("it is busy with something else")
