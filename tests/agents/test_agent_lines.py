"""Faults of either server of an evaluation, and of the line between them: real processes, real HTTP."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import msgspec
import pytest

from conftest import StartSide
from helpers import faulty_agents as fa
from helpers.agent_sides import LOCAL, TOKEN, LocalSide, StartLocalSide, ask, evaluate, task, until
from proctor.agents import EpisodeOutcome, run_evaluation_client
from proctor.agents.constants import TIMEOUTS
from proctor.agents.runtime.agent_client import AgentStartError
from proctor.agents.server.connection import UnreachableError
from proctor.agents.server.remote import AgentServerClient, RemoteServer

SHORT = 2.0  # seconds for what ends when time is up
HANGING = 0.4  # for what never does anything


@pytest.fixture
def start_here() -> Iterator[StartLocalSide]:
    """Starts a server in a thread: `start_here("agent", Class)` or `start_here("evaluator", Class)`."""
    with ExitStack() as stack:
        yield lambda side, cls, port=0: stack.enter_context(LocalSide(side, cls, port))


class Line:
    """A line between the two sides that can be cut: passes bytes on, until it does not."""

    def __init__(self, port: int) -> None:
        self._far = port
        self._loop = asyncio.new_event_loop()
        self._whole = True
        self.delay = 0.0  # seconds on the way there
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()
        self.url = f"http://{LOCAL}:{self.port}"

    def _run(self, ready: threading.Event) -> None:
        async def main() -> None:
            self._ended = asyncio.Event()
            server = await asyncio.start_server(self._pass_on, LOCAL, 0)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            await self._ended.wait()
            server.close()
            passing = [one for one in asyncio.all_tasks() if one is not asyncio.current_task()]
            for one in passing:
                one.cancel()
            await asyncio.gather(*passing, return_exceptions=True)

        self._loop.run_until_complete(main())
        self._loop.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(LOCAL, self._far)

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter, delay: float = 0.0) -> None:
            try:
                while data := await source.read(65536):
                    await asyncio.sleep(delay)
                    if self._whole:  # else it is swallowed: nobody is told that the line is cut
                        sink.write(data)
            except ConnectionError:
                pass
            finally:
                sink.close()

        await asyncio.gather(pump(reader, far_writer, self.delay), pump(far_reader, writer))

    def cut(self) -> None:
        self._whole = False

    def mend(self) -> None:
        self._whole = True

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()


@pytest.mark.slow
def test_an_agents_server_that_is_killed(start_side: StartSide, start_here: StartLocalSide) -> None:
    agent, evaluator = start_side("agent", fa.Good), start_here("evaluator", fa.Watching)
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(evaluate, agent, evaluator, 600)
        until(f"{agent.url}/agent", "RUNNING")
        agent.kill()
        result = future.result()
    assert result.outcome is EpisodeOutcome.AGENT_CRASH, result.notes
    assert result.metrics == {}
    again = start_here("agent", fa.Finishing, port=agent.port)
    assert evaluate(again, evaluator).outcome is EpisodeOutcome.COMPLETED


def test_an_evaluators_server_that_is_killed(start_side: StartSide, start_here: StartLocalSide) -> None:
    agent, evaluator = start_here("agent", fa.Good), start_side("evaluator", fa.Watching)
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(evaluate, agent, evaluator, 600)
        until(f"{agent.url}/agent", "RUNNING")
        evaluator.kill()
        result = future.result()
    assert result.outcome is EpisodeOutcome.JUDGE_ERROR
    until(f"{agent.url}/agent", "READY")  # it has noticed that it plays for nobody
    again = start_here("evaluator", fa.Watching, port=evaluator.port)
    assert evaluate(agent, again, SHORT).outcome is EpisodeOutcome.TIMEOUT


def test_connection_that_is_lost_and_restored(start_here: StartLocalSide) -> None:
    agent, evaluator = start_here("agent", fa.Good), start_here("evaluator", fa.Watching)
    to_agent, to_evaluator = Line(agent.port), Line(evaluator.port)
    try:
        ask("POST", f"{agent.url}/agent/register_evaluator", {"evaluator_url": to_evaluator.url})
        ask("POST", f"{evaluator.url}/evaluator/register_agent", {"agent_url": to_agent.url})
        assert ask("POST", f"{evaluator.url}/evaluator/evaluation/start", task(600).model_dump())[0] == 200
        until(f"{agent.url}/agent", "RUNNING")
        to_agent.cut()
        to_evaluator.cut()
        until(f"{evaluator.url}/evaluator", "READY")
        until(f"{agent.url}/agent", "READY")
        result = ask("GET", f"{evaluator.url}/evaluator/evaluation/results")[1]
        assert result["outcome"] == "agent_crash"
        assert "cannot be reached" in result["notes"] or "did not start" in result["notes"]
        to_agent.mend()
        to_evaluator.mend()
        assert ask("POST", f"{evaluator.url}/evaluator/evaluation/start", task(SHORT).model_dump())[0] == 200
        until(f"{evaluator.url}/evaluator", "READY")
        assert ask("GET", f"{evaluator.url}/evaluator/evaluation/results")[1]["outcome"] == "timeout"
    finally:
        to_agent.close()
        to_evaluator.close()


class CutOff(RemoteServer):
    """Nobody answers its requests for the status; it waits for the answer to any other."""

    def __init__(self) -> None:
        super().__init__("http://nowhere", TOKEN)
        self.posted: list[str] = []

    async def get(self, path: str, kind: type[Any], seconds: float | None = None) -> Any:
        raise UnreachableError(path)

    async def post(self, path: str, kind: type[Any], body: Any = None, seconds: float | None = None) -> Any:
        self.posted.append(path)
        await asyncio.get_running_loop().create_future()


def test_start_and_stop_give_up_a_side_that_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.agents.server.remote.TIMEOUTS", msgspec.structs.replace(TIMEOUTS, UNREACHABLE=0.0))

    async def play() -> None:
        remote = CutOff()
        player = AgentServerClient(remote)
        with pytest.raises(AgentStartError, match="did not start: /agent/status"):
            await player.start(task())
        assert (await player.stop()).error == "the agent cannot be reached: /agent/status"
        assert remote.posted == ["/agent/task/start", "/agent/task/stop"]
        ending = await player.ending()
        assert (ending.outcome, ending.error) == (
            EpisodeOutcome.AGENT_CRASH,
            "the agent cannot be reached: /agent/status",
        )
        assert await player.stop() == ending
        assert len(remote.posted) == 2, "a side that is known to be lost is not asked to stop"

    asyncio.run(play())


@pytest.mark.slow
def test_slow_connection_is_not_a_crash(start_here: StartLocalSide) -> None:
    agent, evaluator = start_here("agent", fa.Thinking), start_here("evaluator", fa.Watching)
    to_agent = Line(agent.port)
    to_agent.delay = 0.4
    try:
        result = run_evaluation_client(to_agent.url, evaluator.url, task(SHORT), token=TOKEN)
        assert result.outcome is EpisodeOutcome.TIMEOUT, result.notes
    finally:
        to_agent.close()


@pytest.mark.slow
def test_a_client_that_dies_leaves_an_evaluation_that_ends(start_here: StartLocalSide) -> None:
    agent, evaluator = start_here("agent", fa.Good), start_here("evaluator", fa.Watching)
    script = f"""
from proctor.agents import Task, run_evaluation_client
run_evaluation_client({agent.url!r}, {evaluator.url!r}, Task(env_name="none", timeout=2), token={TOKEN!r})
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", script], env=environment) as client:
        until(f"{agent.url}/agent", "RUNNING")
        client.kill()
    until(f"{evaluator.url}/evaluator", "READY")
    assert ask("GET", f"{evaluator.url}/evaluator/evaluation/results")[1]["outcome"] == "timeout"
    assert evaluate(agent, evaluator, SHORT).outcome is EpisodeOutcome.TIMEOUT


@pytest.mark.parametrize(
    ("agent", "evaluator", "seconds", "outcome"),
    [
        (fa.Killed, fa.Watching, 60, EpisodeOutcome.AGENT_CRASH),
        *(
            pytest.param(*row, marks=pytest.mark.slow)
            for row in [
                (fa.Sleeping, fa.Watching, HANGING, EpisodeOutcome.AGENT_HANG),
                (fa.KillingItsGuardian, fa.Watching, 60, EpisodeOutcome.AGENT_CRASH),
                (fa.StoppingItsGuardian, fa.Watching, 60, EpisodeOutcome.AGENT_CRASH),
                (fa.SpeakingInTongues, fa.Watching, 60, EpisodeOutcome.AGENT_CRASH),
                (fa.RaisingBefore, fa.Watching, 60, EpisodeOutcome.AGENT_CRASH),
                (fa.Good, fa.ScoreRaises, 60, EpisodeOutcome.JUDGE_ERROR),
                (fa.Good, fa.CheckDies, 60, EpisodeOutcome.JUDGE_ERROR),
                (fa.Good, fa.SetupRaises, 60, EpisodeOutcome.ENV_CRASH),
                (fa.Forking, fa.Watching, SHORT, EpisodeOutcome.TIMEOUT),
            ]
        ),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_faults_over_http(
    start_here: StartLocalSide, agent: type, evaluator: type, seconds: float, outcome: EpisodeOutcome
) -> None:
    sides = start_here("agent", agent), start_here("evaluator", evaluator)
    for _ in range(2):
        result = evaluate(*sides, seconds)
        assert result.outcome is outcome, result.notes
        assert bool(result.metrics) == outcome.is_play
