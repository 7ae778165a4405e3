"""The other side, reached over HTTP: every request has a deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

from proctor.agents.constants import TIMEOUTS, TIMES
from proctor.agents.outcome import EpisodeOutcome
from proctor.agents.runtime.agent_client import AgentStartError, checked_ending
from proctor.agents.runtime.hosting.guarded import ANSWERING
from proctor.agents.server.connection import JSON, Connection, UnreachableError
from proctor.agents.types import AgentEnding, AgentState, AgentStatus, Done, Stopped, Task

M = TypeVar("M", bound=BaseModel)
LARGEST_ANSWER = 16 * 1024 * 1024
# Longer than what the agent's server itself allows for each: its own error arrives before these run out.
START_REQUEST = TIMEOUTS.STARTING + TIMEOUTS.REQUEST
STOP_REQUEST = TIMEOUTS.STOPPING + ANSWERING + TIMEOUTS.REQUEST


class RefusedError(Exception):
    """The other side said no."""


class Contact:
    """Whether a side that is asked again and again still answers.

    A busy machine answers late: that is an answer. Counted is the time from the first request that failed.
    """

    def __init__(self) -> None:
        self._failing_since: float | None = None

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Around one request."""
        asked = time.monotonic()
        try:
            yield
        except (UnreachableError, RefusedError):
            if self._failing_since is None:
                self._failing_since = asked
            raise
        self._failing_since = None

    @property
    def is_lost(self) -> bool:
        since = self._failing_since
        return since is not None and time.monotonic() - since > TIMEOUTS.UNREACHABLE


class RemoteServer:
    """A server of the protocol."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self._connection = Connection(url, token, LARGEST_ANSWER)

    async def get(self, path: str, kind: type[M], seconds: float | None = None) -> M | None:
        """None where there is nothing yet."""
        return await self._ask("GET", path, kind, None, seconds)

    async def post(self, path: str, kind: type[M], body: BaseModel | None = None, seconds: float | None = None) -> M:
        answer = await self._ask("POST", path, kind, body, seconds)
        if answer is None:
            raise UnreachableError(f"{self.url}{path}: an empty answer")
        return answer

    async def _ask(
        self, method: str, path: str, kind: type[M], body: BaseModel | None, seconds: float | None
    ) -> M | None:
        content = b"" if body is None else body.model_dump_json().encode()
        headers = JSON if content else {}
        limit = TIMEOUTS.REQUEST if seconds is None else seconds
        status, text = await self._connection.ask(method, path, content, headers, answer_within=limit)
        if status == 204:
            return None
        if status >= 300:
            raise RefusedError(f"{self.url}{path}: {status} {_error(text)}")
        try:
            return kind.model_validate_json(text)
        except ValidationError as error:
            raise UnreachableError(f"{self.url}{path}: not an answer of this protocol: {error}") from error

    async def close(self) -> None:
        await self._connection.close()


def _error(text: bytes) -> str:
    return text[:2_000].decode(errors="replace")


class AgentServerClient:
    """AgentClient for an agent behind its server."""

    ended_at: float | None = None  # in time.monotonic(), when it reported its ending
    has_acted = True

    def __init__(self, remote: RemoteServer) -> None:
        self._remote = remote
        self._task: Task | None = None
        self._ending: asyncio.Future[AgentEnding] | None = None

    async def is_ready(self) -> bool:
        """False while the agent finishes another task; raises AgentStartError if it cannot start one."""
        try:
            status = await self._remote.get("/agent/status", AgentStatus)
        except (UnreachableError, RefusedError) as error:
            raise AgentStartError(f"the agent cannot be asked: {error}") from error
        state = status.state if status else AgentState.INIT
        if state not in (AgentState.READY, AgentState.STOPPING):
            raise AgentStartError(f"the agent is {state}, not READY")
        return state is AgentState.READY

    async def prepare(self) -> None:
        deadline = asyncio.get_running_loop().time() + TIMEOUTS.CREATION  # its process may have to be restarted
        while not await self.is_ready():
            if asyncio.get_running_loop().time() > deadline:
                raise AgentStartError(f"the agent was not READY after {TIMEOUTS.CREATION:g} s")
            await asyncio.sleep(TIMES.READY_INTERVAL)

    async def start(self, task: Task) -> None:
        self._task, self._ending = task, asyncio.get_running_loop().create_future()
        self.ended_at = None
        try:
            await self._post("/agent/task/start", Done, START_REQUEST, task)
        except (UnreachableError, RefusedError) as error:
            raise AgentStartError(f"the agent did not start: {error}") from error

    def finished(self, ending: AgentEnding) -> None:
        """Called when the agent's server reports the ending."""
        if self._ending is not None and not self._ending.done():
            self.ended_at = time.monotonic()
            self._ending.set_result(checked_ending(ending))

    async def ending(self) -> AgentEnding:
        """Returns the ending that the agent's server reports, or a crash when the server is lost."""
        assert self._ending is not None
        lost = asyncio.create_task(self._lost())
        try:
            await asyncio.wait([self._ending, lost], return_when=asyncio.FIRST_COMPLETED)
            if not self._ending.done():
                self.finished(lost.result())  # `stop` does not ask a side that is lost
            return self._ending.result()
        finally:
            lost.cancel()
            await asyncio.gather(lost, return_exceptions=True)

    async def _lost(self) -> AgentEnding:
        contact = Contact()
        while True:
            try:
                status = await self._look(contact)
            except (UnreachableError, RefusedError) as error:
                return AgentEnding(outcome=EpisodeOutcome.AGENT_CRASH, error=f"the agent cannot be reached: {error}")
            if status is None:
                continue
            current = status.current_task
            if current is None or self._task is None or current.task_id != self._task.task_id:
                # It may have ended just now, and report it in a moment.
                assert self._ending is not None
                await asyncio.wait([self._ending], timeout=TIMEOUTS.REQUEST)
                if not self._ending.done():
                    return AgentEnding(outcome=EpisodeOutcome.AGENT_CRASH, error="the agent's server was restarted")

    async def _look(self, contact: Contact) -> AgentStatus | None:
        """The status after an interval; None if the request failed; raises the error once the contact is lost."""
        await asyncio.sleep(TIMES.STATUS_INTERVAL)
        try:
            with contact.attempt():
                status = await self._remote.get("/agent/status", AgentStatus, TIMEOUTS.STATUS)
                if status is None:
                    raise UnreachableError(f"{self._remote.url}/agent/status: an empty answer")
                return status
        except (UnreachableError, RefusedError):
            if contact.is_lost:
                raise
            return None

    async def _post(self, path: str, kind: type[M], seconds: float, body: BaseModel | None = None) -> M:
        """Waits long for the answer, but not for a server that does not answer status requests."""
        answer = asyncio.create_task(self._remote.post(path, kind, body, seconds))
        lost = asyncio.create_task(self._contact_lost())
        try:
            await asyncio.wait([answer, lost], return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else lost.result()
        finally:
            for request in (answer, lost):
                request.cancel()
            await asyncio.gather(answer, lost, return_exceptions=True)

    async def _contact_lost(self) -> NoReturn:
        """Raises UnreachableError or RefusedError when the agent's server does not answer."""
        contact = Contact()
        while True:
            await self._look(contact)

    async def stop(self) -> AgentEnding:
        assert self._ending is not None
        if not self._ending.done():
            try:
                # The connection may be slow: the agent's server has stopped the agent at its timeout by itself.
                return checked_ending((await self._post("/agent/task/stop", Stopped, STOP_REQUEST)).ending)
            except RefusedError:
                # It had ended before: its report has arrived or is under way.
                await asyncio.wait([self._ending], timeout=TIMEOUTS.REQUEST)
            except UnreachableError as error:
                self.ended_at = 0.0  # the time is unknown
                return AgentEnding(outcome=EpisodeOutcome.AGENT_CRASH, error=f"the agent cannot be reached: {error}")
        if self._ending.done():
            return self._ending.result()
        self.ended_at = 0.0
        return AgentEnding(
            outcome=EpisodeOutcome.AGENT_CRASH, error="the agent was not playing any more, and did not say why"
        )

    async def settle(self) -> None:
        """Nothing to do: the agent's server prepares the next task."""
        self._task = None

    async def close(self) -> None:
        await self._remote.close()
