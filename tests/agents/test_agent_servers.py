"""The two servers and their client: the seed's example in all its ways, and the protocol, with real processes."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiohttp import web

from conftest import ModelServer, Serve, StartSide
from helpers import faulty_agents as fa
from helpers import super_hexagon
from helpers.agent_sides import LOCAL, TOKEN, LocalSide, StartLocalSide, ask, evaluate, task, until
from helpers.seed_classes import responses_api, the_seeds_own_classes
from proctor.agents import (
    EpisodeOutcome,
    EvaluationResult,
    Task,
    run_evaluation_client,
    run_evaluation_client_with_server,
    run_evaluation_client_with_server_parallel,
)
from proctor.agents.server.client import EvaluationError


@pytest.fixture
def start_here() -> Iterator[StartLocalSide]:
    """Starts a server in a thread: `start_here("agent", Class)` or `start_here("evaluator", Class)`."""
    with ExitStack() as stack:
        yield lambda side, cls, port=0: stack.enter_context(LocalSide(side, cls, port))


# The seed's example, all three ways


@pytest.fixture
def hexagon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Serve) -> ModelServer:
    """A game in a file, and a service that can see what is on its screen."""

    def look(body: dict[str, Any], _: int) -> web.Response:
        question, picture = body["input"][0]["content"]
        shown = json.loads(base64.b64decode(picture["image_url"].partition(",")[2]))
        wants_json = body.get("text", {}).get("format", {}).get("type") == "json_schema"
        text = json.dumps({"score": shown["score"]}) if wants_json else "yes" if shown["over"] else "No."
        assert ("LAST" in question["text"] or "score" in question["text"]) == wants_json
        return responses_api(body["model"], text)

    server = serve(look)
    screen = tmp_path / "screen"
    screen.touch()
    monkeypatch.setenv("SCRIPTED_DESKTOP", str(screen))
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return server


def hexagon_task() -> Task:
    return task(60, window_name="Super Hexagon", success_criteria={"time_survived": 3})


def assert_survived(result: EvaluationResult) -> None:
    assert result.outcome is EpisodeOutcome.COMPLETED, result.notes
    assert result.metrics["success"] is True
    assert result.metrics["score"] >= 5


@pytest.mark.parametrize("source", ["ours", pytest.param("seed", marks=pytest.mark.slow)])
def test_both_sides_and_the_client_in_one_go(
    tmp_path: Path, hexagon: ModelServer, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, evaluator = super_hexagon.MySuperHexagonAgent, super_hexagon.MySuperHexagonEvaluator
    if source == "seed":
        agent, evaluator = the_seeds_own_classes(tmp_path, monkeypatch, "helpers.scripted_desktop")
    report = tmp_path / "report.jsonl"
    asked = hexagon_task()
    result = run_evaluation_client_with_server(
        asked, LOCAL, 0, LOCAL, 0, agent=agent, evaluator=evaluator, report=report
    )
    assert_survived(result)
    assert result.task_id == asked.task_id
    lines = [EvaluationResult.model_validate_json(line) for line in report.read_text().splitlines()]
    assert lines == [result]
    screen = (tmp_path / "screen").read_text().splitlines()
    assert screen[:2] == ["active Super Hexagon", "press 32"], "focus, then the space bar"


@pytest.mark.slow
def test_two_servers_and_a_client_apart(tmp_path: Path, hexagon: ModelServer, start_side: StartSide) -> None:
    agent = start_side("agent", super_hexagon.MySuperHexagonAgent)
    evaluator = start_side("evaluator", super_hexagon.MySuperHexagonEvaluator)
    for _ in range(2):
        assert_survived(run_evaluation_client(agent.url, evaluator.url, hexagon_task(), token=TOKEN))


@pytest.mark.slow
def test_several_at_once(tmp_path: Path) -> None:
    tasks = [task(2) for _ in range(2)]
    report = tmp_path / "report.jsonl"
    results = run_evaluation_client_with_server_parallel(
        tasks, agent=fa.Good, evaluator=fa.Watching, parallel=2, report=report
    )
    assert [result.task_id for result in results] == [one.task_id for one in tasks]
    assert {result.outcome for result in results} == {EpisodeOutcome.TIMEOUT}
    assert len(report.read_text().splitlines()) == 2


def test_objects_in_the_background_as_in_the_seed(tmp_path: Path) -> None:
    """Made here, served in the background, found by the user's own token: not a word about it in the code."""
    agent, evaluator = fa.Finishing(), fa.Watching()
    agent_url, evaluator_url = agent.run_background(port=0), evaluator.run_background(port=0)
    assert agent_url
    assert evaluator_url
    try:
        result = run_evaluation_client(agent_url, evaluator_url, task())
        assert result.outcome is EpisodeOutcome.COMPLETED
    finally:
        agent.close()
        evaluator.close()


@pytest.mark.slow
def test_a_script_is_not_run_again_by_its_agents_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("""
from proctor.agents import *
class Two(Agent):
    def __init__(self, steps):
        self.steps = steps
    def _play_env(self, task):
        self.steps -= 1
        return self.steps > 0
class Judge(Evaluator):
    def _score_task(self, task, task_elapsed_time, note=""):
        return EvaluationResult(task_id=task.task_id, metrics={"success": True}, notes=note)
if __name__ == "__main__":
    agent, judge = Two(steps=2), Judge()
    urls = agent.run_background(port=0), judge.run_background(port=0)
    print(run_evaluation_client(*urls, Task(env_name="none", timeout=30)).notes)
    # The one agent and the one evaluator of the program are meant where none is named.
    try:
        run_evaluation_client_with_server(Task(env_name="none", timeout=30), "127.0.0.1", 0, "127.0.0.1", 0)
    except Exception as error:
        print(error)
""")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    *printed, last = done.stdout.splitlines()  # the client prints the result, and then the script its notes
    assert printed[-1] == "the agent finished"
    assert "missing 1 required positional argument: 'steps'" in last


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server((LOCAL, 0)) as taken:
        assert fa.Good().run_background(port=taken.getsockname()[1]) is None


def test_an_agent_that_cannot_be_made_is_told_before_anything_is_served(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EvaluationError, match="no model to be had"):
        run_evaluation_client_with_server(task(), LOCAL, 0, LOCAL, 0, agent=fa.Unmakeable, evaluator=fa.Watching)


# The protocol


def test_the_agents_states(start_here: StartLocalSide) -> None:
    agent, evaluator = start_here("agent", fa.Good), start_here("evaluator", fa.Watching)
    base = f"{agent.url}/agent"
    assert ask("GET", f"{base}/status") == (200, {"state": "INIT", "current_task": None})
    told = task(60).model_dump()
    status, answer = ask("POST", f"{base}/task/start", told)
    assert (status, answer["success"]) == (400, False)
    assert "INIT" in answer["error"]
    for _ in range(2):  # registering again works
        status, answer = ask("POST", f"{base}/register_evaluator", {"evaluator_url": evaluator.url})
        assert (status, answer["success"]) == (200, True)
        assert answer["message"]
    assert ask("POST", f"{base}/task/stop")[0] == 400
    assert ask("POST", f"{base}/task/start", told)[0] == 200
    status, answer = ask("GET", f"{base}/status")
    assert answer["state"] == "RUNNING"
    assert answer["current_task"]["task_id"] == told["task_id"]
    assert ask("POST", f"{base}/task/start", told)[0] == 400
    assert ask("POST", f"{base}/task/stop")[0] == 200
    until(base, "READY")


def test_the_evaluators_states(start_here: StartLocalSide) -> None:
    agent, evaluator = start_here("agent", fa.Good), start_here("evaluator", fa.Watching)
    base = f"{evaluator.url}/evaluator"
    assert ask("GET", f"{base}/status") == (200, {"state": "INIT", "current_task": None})
    assert ask("POST", f"{base}/evaluation/start", task().model_dump())[0] == 400
    assert ask("POST", f"{base}/agent_finished")[0] == 400
    assert ask("GET", f"{base}/evaluation/results") == (204, None)
    assert ask("POST", f"{base}/register_agent", {"agent_url": agent.url})[0] == 200
    status, answer = ask("POST", f"{base}/evaluation/start", task().model_dump())
    assert (status, "INIT" in answer["error"]) == (400, True), "the agent knows no evaluator yet"
    ask("POST", f"{agent.url}/agent/register_evaluator", {"evaluator_url": evaluator.url})
    told = task(60).model_dump()
    assert ask("POST", f"{base}/evaluation/start", told)[0] == 200
    assert ask("GET", f"{base}/evaluation/results") == (204, None)
    until(f"{agent.url}/agent", "RUNNING")
    assert ask("POST", f"{base}/agent_finished", {"task_id": "of another"})[0] == 400
    assert ask("GET", f"{base}/status")[1]["state"] == "EVALUATING"
    assert ask("POST", f"{base}/agent_finished", {"task_id": told["task_id"]})[0] == 200
    until(base, "READY")
    status, answer = ask("GET", f"{base}/evaluation/results")
    assert status == 200
    assert answer["task_id"] == told["task_id"]
    assert answer["outcome"] == "completed"
    assert answer["metrics"]["success"] is True
    assert "notes" in answer


def test_of_many_starts_at_once_one_wins(
    start_here: StartLocalSide, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SETUPS", str(tmp_path / "setups"))
    agent, evaluator = start_here("agent", fa.Good), start_here("evaluator", CountingSetups)
    ask("POST", f"{agent.url}/agent/register_evaluator", {"evaluator_url": evaluator.url})
    ask("POST", f"{evaluator.url}/evaluator/register_agent", {"agent_url": agent.url})
    with ThreadPoolExecutor(8) as threads:
        url = f"{evaluator.url}/evaluator/evaluation/start"
        answers = list(threads.map(lambda _: ask("POST", url, task(1).model_dump())[0], range(8)))
    assert sorted(answers) == [200] + 7 * [400]
    until(f"{evaluator.url}/evaluator", "READY")
    assert (tmp_path / "setups").read_text() == "x", "one environment"


def test_results_are_kept_by_task(start_here: StartLocalSide) -> None:
    agent, evaluator = start_here("agent", fa.Finishing), start_here("evaluator", fa.Watching)
    url = f"{evaluator.url}/evaluator/evaluation/results"
    first, second = (evaluate(agent, evaluator).task_id for _ in range(2))
    assert ask("GET", f"{url}?task_id={first}")[1]["task_id"] == first
    assert ask("GET", f"{url}?task_id={second}")[1]["task_id"] == second
    assert ask("GET", url)[1]["task_id"] == second
    assert ask("GET", f"{url}?task_id=another") == (204, None)


def test_a_client_is_not_given_what_another_asked_for(start_here: StartLocalSide) -> None:
    agent, evaluator = start_here("agent", fa.Good), start_here("evaluator", fa.Watching)

    def asked_for(_: int) -> bool:
        asked = task(1)
        try:
            return run_evaluation_client(agent.url, evaluator.url, asked, token=TOKEN).task_id == asked.task_id
        except EvaluationError:  # the other was there first
            return True

    with ThreadPoolExecutor(3) as threads:
        assert all(threads.map(asked_for, range(4)))


@pytest.mark.slow
def test_registering_while_tasks_are_started(start_here: StartLocalSide) -> None:
    agent, evaluator = start_here("agent", fa.Finishing), start_here("evaluator", fa.Watching)
    evaluate(agent, evaluator)

    def one_of_four(turn: int) -> int:
        url, body = [
            (f"{agent.url}/agent/register_evaluator", {"evaluator_url": evaluator.url}),
            (f"{evaluator.url}/evaluator/register_agent", {"agent_url": agent.url}),
            (f"{evaluator.url}/evaluator/evaluation/start", task(0.1).model_dump()),
            (f"{agent.url}/agent/kill", {}),
        ][turn % 4]
        return ask("POST", url, body)[0]

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(one_of_four, range(64))) <= {200, 400}
    until(f"{evaluator.url}/evaluator", "READY")
    assert evaluate(agent, evaluator).outcome is EpisodeOutcome.COMPLETED


def test_a_result_of_any_length(start_here: StartLocalSide) -> None:
    result = evaluate(start_here("agent", fa.Finishing), start_here("evaluator", fa.WritingMuch))
    assert len(result.metrics["moves"]) == 100_000


class CountingSetups(fa.Watching):
    def _setup_environment(self, task: Task) -> None:
        with open(os.environ["SETUPS"], "a") as file:
            file.write("x")


def test_killed_agent_is_restarted(start_here: StartLocalSide) -> None:
    agent, evaluator = start_here("agent", fa.Sleeping), start_here("evaluator", fa.Watching)
    ask("POST", f"{agent.url}/agent/register_evaluator", {"evaluator_url": evaluator.url})
    ask("POST", f"{evaluator.url}/evaluator/register_agent", {"agent_url": agent.url})
    ask("POST", f"{evaluator.url}/evaluator/evaluation/start", task(60).model_dump())
    until(f"{agent.url}/agent", "RUNNING")
    assert ask("POST", f"{agent.url}/agent/kill")[0] == 200
    until(f"{evaluator.url}/evaluator", "READY")
    assert ask("GET", f"{evaluator.url}/evaluator/evaluation/results")[1]["outcome"] == "agent_crash"
    until(f"{agent.url}/agent", "READY")
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(lambda _: ask("POST", f"{agent.url}/agent/kill")[0], range(8))) == {200}
    assert evaluate(agent, evaluator, 0.4).outcome is EpisodeOutcome.AGENT_HANG, "and plays as ever"


class Absent(BaseHTTPRequestHandler):
    """Stands where an evaluator was, and is busy with nothing; keeps what it is told."""

    told: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self._answer(b'{"state": "READY"}')

    def do_POST(self) -> None:
        self.told.append(self.path)
        self._answer(b'{"message": "noted"}')

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_an_agent_that_was_deserted_does_not_say_that_it_finished(start_here: StartLocalSide) -> None:
    agent = start_here("agent", fa.Good)
    with ThreadingHTTPServer((LOCAL, 0), Absent) as absent, ThreadPoolExecutor(1) as thread:
        serving = thread.submit(absent.serve_forever, 0.01)
        url = f"http://{LOCAL}:{absent.server_port}"
        assert ask("POST", f"{agent.url}/agent/register_evaluator", {"evaluator_url": url})[0] == 200
        assert ask("POST", f"{agent.url}/agent/task/start", task(600).model_dump())[0] == 200
        until(f"{agent.url}/agent", "READY")
        absent.shutdown()
        serving.result(60)
    assert Absent.told == []
