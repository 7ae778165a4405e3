"""The client of an evaluation: registers both servers with each other, starts it, and waits for the result."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlencode

from pydantic import BaseModel

from proctor.agents.agent import Agent
from proctor.agents.constants import NETWORK, TIMEOUTS, TIMES
from proctor.agents.evaluator import Evaluator
from proctor.agents.outcome import EpisodeOutcome
from proctor.agents.participant import Participant
from proctor.agents.runtime.hosting.recipe import Recipe, recipe_of
from proctor.agents.server.access import new_token, own_token
from proctor.agents.server.connection import UnreachableError
from proctor.agents.server.remote import (
    START_REQUEST,
    STOP_REQUEST,
    Contact,
    RefusedError,
    RemoteServer,
)
from proctor.agents.types import (
    AgentRegistration,
    AgentStatus,
    Done,
    EvaluationResult,
    EvaluatorRegistration,
    EvaluatorStatus,
    Task,
)
from proctor.core import machine
from proctor.core.errors import ProctorError, UsageError

VIRTUAL = "virtual"
NOTICE_INTERVAL = 1.0  # seconds between two notices of what the client waits for
TOLD_EVERY = 10.0

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
    wait: float = TIMEOUTS.SERVER_STARTUP,
) -> EvaluationResult:
    """Evaluates the agent at one address with the evaluator at the other. Prints the result and adds it to the report.

    Servers that are still starting are waited for: `wait` seconds for one that does not listen yet, and as long as the
    constructor of an agent or an evaluator may take for one that does.
    """
    token = own_token(NETWORK.DEFAULT_HOST, token)
    result = asyncio.run(_evaluate(agent_url.rstrip("/"), evaluator_url.rstrip("/"), task, token, wait))
    _print(task, result)
    if report is not None:
        with _writing, Path(report).open("a", encoding="utf-8") as file:
            file.write(result.model_dump_json() + "\n")
    return result


def _print(task: Task, result: EvaluationResult) -> None:
    lines = [f"{task.env_name or 'task'} {result.task_id}: {result.outcome}"]
    lines += [f"  {name:<20} {value}" for name, value in result.metrics.items()]
    if result.notes:
        lines.append(f"  {'notes':<20} {result.notes}")
    print("\n".join(lines), flush=True)  # in one write: several evaluations may end at once


async def _evaluate(agent_url: str, evaluator_url: str, task: Task, token: str, wait: float) -> EvaluationResult:
    agent, evaluator = RemoteServer(agent_url, token), RemoteServer(evaluator_url, token)
    timeout = TIMEOUTS.REQUEST + TIMEOUTS.READY  # one side may be finishing another task
    try:
        try:
            await asyncio.gather(
                _wait_for_server(agent, "agent", "/agent/status", AgentStatus, wait),
                _wait_for_server(evaluator, "evaluator", "/evaluator/status", EvaluatorStatus, wait),
            )
            its_evaluator = EvaluatorRegistration(evaluator_url=evaluator_url)
            its_agent = AgentRegistration(agent_url=agent_url)
            await agent.post("/agent/register_evaluator", Done, its_evaluator, timeout)
            await evaluator.post("/evaluator/register_agent", Done, its_agent, timeout)
            await evaluator.post("/evaluator/evaluation/start", Done, task, timeout)
        except (UnreachableError, RefusedError) as error:
            raise EvaluationError(f"The evaluation could not be started: {error}") from error
        return await _result(evaluator, task)
    finally:
        await agent.close()
        await evaluator.close()


async def _wait_for_server(side: RemoteServer, role: str, path: str, kind: type[BaseModel], wait: float) -> None:
    """Returns when it answers; raises when it has not for too long, or refuses us."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    print_after = started + NOTICE_INTERVAL
    while True:
        try:
            await side.get(path, kind, TIMEOUTS.STATUS)
            return
        except UnreachableError as error:
            listens = isinstance(error.__cause__, TimeoutError)  # it has taken the connection, and is not ready yet
            seconds = TIMEOUTS.CREATION if listens else wait
            waited = loop.time() - started
            if waited > seconds:
                raise UnreachableError(
                    f"the {role} at {side.url} did not answer within {waited:.0f} s: {error}"
                ) from error
            if loop.time() >= print_after:
                what = "to be ready" if listens else "to be started"
                print(f"waiting for the {role} at {side.url} {what} (up to {seconds:g} s)", file=sys.stderr, flush=True)
                print_after = loop.time() + TOLD_EVERY
        await asyncio.sleep(TIMEOUTS.SERVER_STARTUP_RETRY_INTERVAL)


async def _result(evaluator: RemoteServer, task: Task) -> EvaluationResult:
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
                return EvaluationResult(task_id=task.task_id, outcome=EpisodeOutcome.JUDGE_ERROR, notes=why)
        if loop.time() > deadline:
            why = f"no result after {seconds:g} s"
            return EvaluationResult(task_id=task.task_id, outcome=EpisodeOutcome.JUDGE_ERROR, notes=why)
        await asyncio.sleep(TIMES.RESULT_POLL_INTERVAL)


def _longest_evaluation(task: Task) -> float:
    """Seconds after which the evaluator has reported any timeout of its own."""
    before = 2 * TIMEOUTS.CREATION + TIMEOUTS.SETUP + START_REQUEST  # both processes may have to be restarted
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
    display: str | None = None,
) -> EvaluationResult:
    """Starts both sides, runs the evaluation, and ends them again.

    Without `agent` or `evaluator`, the one class of that kind that the program has defined is meant. Both act on the
    user's display, unless another is named by `display`: `virtual` or `virtual:WIDTHxHEIGHT` for one of their own.
    """
    from proctor.agents.server.server import new_server

    token = new_token()
    hosts = {agent_host, evaluator_host, socket.gethostname()}  # under which the sides may register each other
    with ExitStack() as stack:
        environment = _display(display, stack)
        urls: list[str] = []
        for side, host, port in (
            (_participant(agent, Agent), agent_host, agent_port),
            (_participant(evaluator, Evaluator), evaluator_host, evaluator_port),
        ):
            server = new_server(*side, host, port, token=token, allow_hosts=hosts, environment=environment)
            stack.callback(server.close)
            url = server.run_background()
            if url is None:
                raise EvaluationError(f"The {side[0]}'s server could not be started: {server.failure}")
            urls.append(url)
        return run_evaluation_client(urls[0], urls[1], task, report=report, token=token)


def _display(name: str | None, stack: ExitStack) -> dict[str, str]:
    """What tells a process where windows are."""
    if name is None:
        return {}
    if not name.startswith(VIRTUAL):
        return {"DISPLAY": name}
    from proctor.agents.desktop.display import VirtualDisplay, parse_size  # what it needs is an extra

    shown_on = VirtualDisplay(parse_size(name))
    shown_on.start()
    stack.callback(shown_on.close)
    return shown_on.environment


def run_evaluation_client_with_server_parallel(
    tasks: Iterable[Task] | None = None,
    *,
    agent: AgentLike = None,
    evaluator: EvaluatorLike = None,
    parallel: int | None = None,
    report: str | PathLike[str] | None = None,
    display: str | None = VIRTUAL,
) -> list[EvaluationResult]:
    """Several at once, each with an agent and an evaluator of its own; the results in the order of the tasks.

    Without `tasks`, those are meant that the calling module has defined: each `Task`, and each list or tuple of them.
    Every task has a display of its own, unless its evaluator needs none, or `display` is another.
    """
    tasks = _defined_tasks(sys._getframe(1).f_globals) if tasks is None else list(tasks)
    agent_class, evaluator_class = _chosen(agent, Agent), _chosen(evaluator, Evaluator)
    shown_on = display if evaluator_class.uses_desktop else None
    host = NETWORK.DEFAULT_HOST

    def run(task: Task) -> EvaluationResult:
        return run_evaluation_client_with_server(
            task,
            host,
            0,
            host,
            0,
            agent=agent_class,
            evaluator=evaluator_class,
            report=report,
            display=shown_on,
        )

    with ThreadPoolExecutor(parallel or machine.cores()) as threads:
        return list(threads.map(run, tasks))


def _chosen(given: Participant | type[Participant] | None, kind: type[Participant]) -> Any:
    """The object or the class itself."""
    if given is not None:
        return given
    found = _defined(kind)
    if len(found) != 1:
        names = ", ".join(sorted(cls.__qualname__ for cls in found)) or "none"
        raise UsageError(f"Which {kind.role}? Give {kind.role}=YourClass. Defined: {names}.")
    return found[0]


def _participant(given: Participant | type[Participant] | None, kind: type[Participant]) -> tuple[str, Recipe]:
    given = _chosen(given, kind)
    recipe = recipe_of(given) if isinstance(given, type) else given.recipe
    return kind.role, recipe


def _defined_tasks(names: Mapping[str, Any]) -> list[Task]:
    found: list[Task] = []
    for name, value in names.items():
        values = value if isinstance(value, list | tuple) else [value]
        if not name.startswith("_") and values and all(isinstance(each, Task) for each in values):
            found += [each for each in values if each not in found]
    if not found:
        raise UsageError("Which tasks? Give a list of them, or define them in the module that calls this.")
    return found


def _defined(kind: type[Participant]) -> Sequence[type[Participant]]:
    """All subclasses that could be used, of the program's own."""
    found: list[type[Participant]] = []
    for cls in kind.__subclasses__():
        found += _defined(cls)
        if not cls.__abstractmethods__ and not cls.__module__.startswith("proctor."):  # type: ignore[attr-defined]
            found.append(cls)
    return found
