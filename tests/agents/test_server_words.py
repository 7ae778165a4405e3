"""What an agent's server is believed, and what a client does with servers that are still starting."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from helpers import faulty_agents as fa
from helpers.agent_sides import LOCAL, TOKEN, LocalSide, StartLocalSide, ask, evaluate, task, until
from proctor.agents import EpisodeOutcome, run_evaluation_client
from proctor.agents.server.client import EvaluationError


@pytest.fixture
def start_here() -> Iterator[StartLocalSide]:
    with ExitStack() as stack:
        yield lambda side, cls, port=0: stack.enter_context(LocalSide(side, cls, port))


@pytest.mark.parametrize(
    ("said", "outcome", "why"),
    [
        ("judge_error", EpisodeOutcome.AGENT_CRASH, "the dog ate it"),
        pytest.param("env_crash", EpisodeOutcome.AGENT_CRASH, "the dog ate it", marks=pytest.mark.slow),
        ("stopped", EpisodeOutcome.COMPLETED, "the agent says that it was stopped by hand; the dog ate it"),
    ],
)
def test_word_of_an_agent_does_not_void_its_task(
    start_here: StartLocalSide, said: str, outcome: EpisodeOutcome, why: str
) -> None:
    agent, evaluator = start_here("agent", fa.Good), start_here("evaluator", fa.Watching)
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(evaluate, agent, evaluator)
        until(f"{agent.url}/agent", "RUNNING")
        told = {"outcome": said, "error": "the dog ate it"}
        while ask("POST", f"{evaluator.url}/evaluator/agent_finished", told)[0] != 200:
            time.sleep(0.01)
        result = asked.result()
    assert result.outcome is outcome
    assert why in result.notes


@pytest.mark.slow
def test_agent_that_stops_by_hand_on_its_server_is_scored(start_here: StartLocalSide) -> None:
    result = evaluate(start_here("agent", fa.Stopping), start_here("evaluator", fa.Watching))
    assert result.outcome is EpisodeOutcome.COMPLETED
    assert result.metrics["success"] is True
    assert "the agent says that it was stopped by hand" in result.notes


def test_client_waits_for_servers_that_are_starting(
    start_here: StartLocalSide, capfd: pytest.CaptureFixture[str]
) -> None:
    with ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(2)]
        for place in held:  # nobody else is given these ports, and nothing listens at them
            place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            place.bind((LOCAL, 0))
        ports = [place.getsockname()[1] for place in held]
        urls = [f"http://{LOCAL}:{port}" for port in ports]
        with ThreadPoolExecutor(1) as thread:
            asked = thread.submit(run_evaluation_client, urls[0], urls[1], task(), token=TOKEN)
            told = ""
            while f"waiting for the agent at {urls[0]} to be started" not in told:
                told += capfd.readouterr().err
                assert not asked.done(), asked.result()
            start_here("agent", fa.Finishing, ports[0])
            start_here("evaluator", fa.Watching, ports[1])
            result = asked.result()
    assert result.outcome is EpisodeOutcome.COMPLETED
    printed = capfd.readouterr().out
    assert f"none {result.task_id}: completed" in printed
    assert "  success              True" in printed


def test_client_does_not_wait_for_ever() -> None:
    with socket.socket() as place:
        place.bind((LOCAL, 0))
        url = f"http://{LOCAL}:{place.getsockname()[1]}"
        with pytest.raises(EvaluationError, match=f"the (agent|evaluator) at {url} did not answer within 0 s"):
            run_evaluation_client(url, url, task(), token=TOKEN, wait=0.0)


def test_client_that_is_refused_does_not_wait(start_here: StartLocalSide) -> None:
    agent = start_here("agent", fa.Finishing)
    begun = time.monotonic()
    with pytest.raises(EvaluationError, match="401"):
        run_evaluation_client(agent.url, agent.url, task(), token="another-token-altogether")
    assert time.monotonic() - begun < 60.0


SCRIPT = """
import os
from proctor.agents import Agent, EvaluationResult, Evaluator, Task, run_evaluation_client_with_server_parallel


class Player(Agent):
    def _play_env(self, task: Task) -> bool:
        return False


class Judge(Evaluator):
    def _score_task(self, task: Task, task_elapsed_time: float, note: str = "") -> EvaluationResult:
        metrics = {"success": True, "display": os.environ["XAUTHORITY"]}  # a number is taken again, a cookie is not
        return EvaluationResult(task_id=task.task_id, metrics=metrics, notes=note)


tasks = [Task(env_name="one", timeout=20), Task(env_name="two", timeout=20)]

if __name__ == "__main__":
    results = run_evaluation_client_with_server_parallel()
    print("ENDED", [str(result.outcome) for result in results], len({r.metrics["display"] for r in results}))
"""


def test_parallel_evaluations_with_the_defaults_have_displays_of_their_own(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {key: value for key, value in os.environ.items() if key != "DISPLAY"}
    done = subprocess.run(
        [sys.executable, str(script)], check=False, capture_output=True, text=True, timeout=300, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "ENDED ['completed', 'completed'] 2"
    assert done.stdout.count(": completed") == 2
