"""Runs evaluations from outside: registers each side with the other, starts, and waits for the result."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from threading import Lock
from urllib.parse import urlencode

from proctor import machine
from proctor.agents.agent import Agent
from proctor.agents.constants import NETWORK, TIMEOUTS, TIMES
from proctor.agents.evaluator import Evaluator
from proctor.agents.hosting.recipe import Recipe, recipe_of
from proctor.agents.outcome import Outcome
from proctor.agents.participant import Participant
from proctor.agents.protocol import (
    AgentRegistration,
    Done,
    EvaluationResult,
    EvaluatorRegistration,
    Task,
)
from proctor.agents.servers.access import new_token, own_token
from proctor.agents.servers.remote import (
    START_REQUEST,
    STOP_REQUEST,
    Contact,
    RefusedError,
    Remote,
    UnreachableError,
)
from proctor.errors import ProctorError, UsageError

logger = logging.getLogger("proctor.agents")

AgentLike = Agent | type[Agent] | None
EvaluatorLike = Evaluator | type[Evaluator] | None
_writing = Lock()


class EvaluationError(ProctorError):
    """The evaluation could not be started."""


def run_evaluation_client(
    agent_url: str,
    evaluator_url: str,
    task: Task,
    *,
    report: str | PathLike[str] | None = None,
    token: str | None = None,
) -> EvaluationResult:
    """Has the evaluator at one address judge the agent at the other. The result is a line of the report, too."""
    token = own_token(NETWORK.DEFAULT_HOST, token)
    result = asyncio.run(_evaluate(agent_url.rstrip("/"), evaluator_url.rstrip("/"), task, token))
    logger.info("%s", result)
    if report is not None:
        with _writing, Path(report).open("a", encoding="utf-8") as file:
            file.write(result.model_dump_json() + "\n")
    return result


async def _evaluate(agent_url: str, evaluator_url: str, task: Task, token: str) -> EvaluationResult:
    agent, evaluator = Remote(agent_url, token), Remote(evaluator_url, token)
    patience = TIMEOUTS.REQUEST + TIMEOUTS.READY  # one of them may be busy with the end of another task
    try:
        try:
            its_evaluator = EvaluatorRegistration(evaluator_url=evaluator_url)
            its_agent = AgentRegistration(agent_url=agent_url)
            await agent.post("/agent/register_evaluator", Done, its_evaluator, patience)
            await evaluator.post("/evaluator/register_agent", Done, its_agent, patience)
            await evaluator.post("/evaluator/evaluation/start", Done, task, patience)
        except (UnreachableError, RefusedError) as error:
            raise EvaluationError(f"The evaluation could not be started: {error}") from error
        return await _result(evaluator, task)
    finally:
        await agent.close()
        await evaluator.close()


async def _result(evaluator: Remote, task: Task) -> EvaluationResult:
    path = f"/evaluator/evaluation/results?{urlencode({'task_id': task.task_id})}"
    loop = asyncio.get_running_loop()
    contact = Contact()
    seconds = _longest_evaluation(task)
    deadline = loop.time() + seconds
    while True:
        try:
            with contact.attempt():
                result = await evaluator.get(path, EvaluationResult)
            if result is not None and result.task_id == task.task_id:  # and not what another client has asked for
                return result
        except (UnreachableError, RefusedError) as error:
            if contact.is_lost:
                why = f"the evaluator cannot be reached: {error}"
                return EvaluationResult(task_id=task.task_id, outcome=Outcome.JUDGE_ERROR, notes=why)
        if loop.time() > deadline:
            why = f"no result after {seconds:g} s"
            return EvaluationResult(task_id=task.task_id, outcome=Outcome.JUDGE_ERROR, notes=why)
        await asyncio.sleep(TIMES.RESULT_POLL_INTERVAL)


def _longest_evaluation(task: Task) -> float:
    """Seconds until the evaluator itself has given up whatever takes too long, and has said so."""
    before = 2 * TIMEOUTS.CREATION + TIMEOUTS.SETUP + START_REQUEST  # both processes may have to be started anew
    after = STOP_REQUEST + 3 * TIMEOUTS.LAST_CHECK + TIMEOUTS.SCORING + TIMEOUTS.REQUEST
    return before + task.timeout + after


def run_evaluation_client_with_server(
    task: Task,
    agent_host: str = NETWORK.DEFAULT_HOST,
    agent_port: int = NETWORK.AGENT_PORT,
    evaluator_host: str = NETWORK.DEFAULT_HOST,
    evaluator_port: int = NETWORK.EVALUATOR_PORT,
    *,
    agent: AgentLike = None,
    evaluator: EvaluatorLike = None,
    report: str | PathLike[str] | None = None,
) -> EvaluationResult:
    """Starts both sides, runs the evaluation, and ends them again.

    Without `agent` or `evaluator`, the one class of that kind that the program has defined is meant.
    """
    from proctor.agents.servers.server import new_server

    token = new_token()
    hosts = {agent_host, evaluator_host, socket.gethostname()}  # under one of them each is told of the other
    with ExitStack() as stack:
        urls: list[str] = []
        for side, host, port in (
            (_participant(agent, Agent), agent_host, agent_port),
            (_participant(evaluator, Evaluator), evaluator_host, evaluator_port),
        ):
            server = new_server(*side, host, port, token=token, allow_hosts=hosts)
            stack.callback(server.close)
            url = server.run_background()
            if url is None:
                raise EvaluationError(f"The {side[0]}'s server could not be started: {server.failure}")
            urls.append(url)
        return run_evaluation_client(urls[0], urls[1], task, report=report, token=token)


def run_evaluation_client_with_server_parallel(
    tasks: Iterable[Task],
    *,
    agent: AgentLike = None,
    evaluator: EvaluatorLike = None,
    parallel: int | None = None,
    report: str | PathLike[str] | None = None,
) -> list[EvaluationResult]:
    """Several at once, each with an agent and an evaluator of its own; the results in the order of the tasks."""
    tasks = list(tasks)
    host = NETWORK.DEFAULT_HOST

    def run(task: Task) -> EvaluationResult:
        return run_evaluation_client_with_server(
            task, host, 0, host, 0, agent=agent, evaluator=evaluator, report=report
        )

    with ThreadPoolExecutor(parallel or machine.cores()) as threads:
        return list(threads.map(run, tasks))


def _participant(given: Participant | type[Participant] | None, kind: type[Participant]) -> tuple[str, Recipe]:
    if given is None:
        found = _defined(kind)
        if len(found) != 1:
            names = ", ".join(sorted(cls.__qualname__ for cls in found)) or "none"
            raise UsageError(f"Which {kind.role}? Give {kind.role}=YourClass. Defined: {names}.")
        given = found[0]
    recipe = recipe_of(given) if isinstance(given, type) else given.recipe
    return kind.role, recipe


def _defined(kind: type[Participant]) -> Sequence[type[Participant]]:
    """All subclasses that could be used, of the program's own."""
    found: list[type[Participant]] = []
    for cls in kind.__subclasses__():
        found += _defined(cls)
        if not cls.__abstractmethods__ and not cls.__module__.startswith("proctor."):  # type: ignore[attr-defined]
            found.append(cls)
    return found
