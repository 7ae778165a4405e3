"""The two servers and their client: real processes, real HTTP, faults of either side and of the line between."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiohttp import web

import faulty_agents as fa
import super_hexagon
from conftest import Handler, ModelServer
from proctor.agents import (
    EvaluationResult,
    Outcome,
    Task,
    run_evaluation_client,
    run_evaluation_client_with_server,
    run_evaluation_client_with_server_parallel,
)
from proctor.agents.hosting.recipe import recipe_of
from proctor.agents.servers.access import checked_url
from proctor.agents.servers.agent_side import AgentSide
from proctor.agents.servers.client import EvaluationError
from proctor.errors import UsageError
from seed_classes import responses_api, the_seeds_own_classes

TOKEN = "a-token-for-the-tests-alone"
LOCAL = "127.0.0.1"
TESTS = Path(__file__).parent


class Side:
    """A server started by `proctor serve`, in a process of its own."""

    def __init__(self, side: str, name: str, port: int = 0, **env: str) -> None:
        command = [sys.executable, "-m", "proctor", "serve", side, name, "--port", str(port)]
        environment = os.environ | {"PROCTOR_TOKEN": TOKEN, "PYTHONPATH": os.pathsep.join(sys.path)} | env
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert self.process.stderr is not None
        said = self.process.stderr.readline()
        self.url = said.split(" at ")[1].split()[0]
        self.port = int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        assert self.process.stderr is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.process.stderr.close()


@pytest.fixture
def start() -> Iterator[Callable[..., Side]]:
    started: list[Side] = []

    def start(side: str, cls: type, port: int = 0, **env: str) -> Side:
        started.append(Side(side, f"{cls.__module__}:{cls.__qualname__}", port, **env))
        return started[-1]

    yield start
    for side in started:
        side.end()


def ask(method: str, url: str, body: Any = None, token: str = TOKEN) -> tuple[int, Any]:
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"null")


def until(url: str, state: str) -> None:
    """Waits for what must come."""
    while ask("GET", f"{url}/status")[1]["state"] != state:
        time.sleep(0.01)


def task(seconds: float = 0.4, **fields: Any) -> Task:
    return Task(env_name="none", timeout=seconds, check_env_interval_seconds=0.05, **fields)


def evaluate(agent: Side, evaluator: Side, seconds: float = 0.4) -> EvaluationResult:
    return run_evaluation_client(agent.url, evaluator.url, task(seconds), token=TOKEN)


# The seed's example, all three ways


@pytest.fixture
def hexagon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Callable[[Handler], ModelServer]) -> ModelServer:
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
    assert result.outcome is Outcome.COMPLETED, result.notes
    assert result.metrics["success"] is True
    assert result.metrics["score"] >= 5


@pytest.mark.parametrize("source", ["ours", "seed"])
def test_both_sides_and_the_client_in_one_go(
    tmp_path: Path, hexagon: ModelServer, source: str, monkeypatch: pytest.MonkeyPatch
):
    agent, evaluator = super_hexagon.MySuperHexagonAgent, super_hexagon.MySuperHexagonEvaluator
    if source == "seed":
        agent, evaluator = the_seeds_own_classes(tmp_path, monkeypatch, "scripted_desktop")
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


def test_two_servers_and_a_client_apart(tmp_path: Path, hexagon: ModelServer, start: Callable[..., Side]):
    agent = start("agent", super_hexagon.MySuperHexagonAgent)
    evaluator = start("evaluator", super_hexagon.MySuperHexagonEvaluator)
    for _ in range(2):
        assert_survived(run_evaluation_client(agent.url, evaluator.url, hexagon_task(), token=TOKEN))


def test_several_at_once(tmp_path: Path):
    tasks = [task(0.3) for _ in range(4)]
    report = tmp_path / "report.jsonl"
    results = run_evaluation_client_with_server_parallel(
        tasks, agent=fa.Good, evaluator=fa.Watching, parallel=2, report=report
    )
    assert [result.task_id for result in results] == [one.task_id for one in tasks]
    assert {result.outcome for result in results} == {Outcome.TIMEOUT}
    assert len(report.read_text().splitlines()) == 4


def test_objects_in_the_background_as_in_the_seed(tmp_path: Path):
    """Made here, served in the background, found by the user's own token: not a word about it in the code."""
    agent, evaluator = fa.Finishing(), fa.Watching()
    agent_url, evaluator_url = agent.run_background(port=0), evaluator.run_background(port=0)
    assert agent_url
    assert evaluator_url
    try:
        result = run_evaluation_client(agent_url, evaluator_url, task())
        assert result.outcome is Outcome.COMPLETED
    finally:
        agent.close()
        evaluator.close()


def test_a_script_is_not_run_again_by_its_agents_process(tmp_path: Path):
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
        return EvaluationResult(task_id=task.task_id, metrics={"fine": True}, notes=note)
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
    first, second = done.stdout.splitlines()
    assert first == "the agent finished"
    assert "missing 1 required positional argument: 'steps'" in second


def test_a_port_that_is_taken(tmp_path: Path):
    with socket.create_server((LOCAL, 0)) as taken:
        assert fa.Good().run_background(port=taken.getsockname()[1]) is None


def test_an_agent_that_cannot_be_made_is_told_before_anything_is_served(capfd: pytest.CaptureFixture[str]):
    with pytest.raises(EvaluationError, match="no model to be had"):
        run_evaluation_client_with_server(task(), LOCAL, 0, LOCAL, 0, agent=fa.Unmakeable, evaluator=fa.Watching)


# The protocol


def test_the_agents_states(start: Callable[..., Side]):
    agent, evaluator = start("agent", fa.Good), start("evaluator", fa.Watching)
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


def test_the_evaluators_states(start: Callable[..., Side]):
    agent, evaluator = start("agent", fa.Good), start("evaluator", fa.Watching)
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


def test_of_many_starts_at_once_one_wins(start: Callable[..., Side], tmp_path: Path):
    agent, evaluator = start("agent", fa.Good), start("evaluator", CountingSetups, SETUPS=str(tmp_path / "setups"))
    ask("POST", f"{agent.url}/agent/register_evaluator", {"evaluator_url": evaluator.url})
    ask("POST", f"{evaluator.url}/evaluator/register_agent", {"agent_url": agent.url})
    with ThreadPoolExecutor(8) as threads:
        url = f"{evaluator.url}/evaluator/evaluation/start"
        answers = list(threads.map(lambda _: ask("POST", url, task(1).model_dump())[0], range(8)))
    assert sorted(answers) == [200] + 7 * [400]
    until(f"{evaluator.url}/evaluator", "READY")
    assert (tmp_path / "setups").read_text() == "x", "one environment"


def test_results_are_kept_by_task(start: Callable[..., Side]):
    agent, evaluator = start("agent", fa.Finishing), start("evaluator", fa.Watching)
    url = f"{evaluator.url}/evaluator/evaluation/results"
    first, second = (evaluate(agent, evaluator).task_id for _ in range(2))
    assert ask("GET", f"{url}?task_id={first}")[1]["task_id"] == first
    assert ask("GET", f"{url}?task_id={second}")[1]["task_id"] == second
    assert ask("GET", url)[1]["task_id"] == second
    assert ask("GET", f"{url}?task_id=another") == (204, None)


def test_a_client_is_not_given_what_another_asked_for(start: Callable[..., Side]):
    agent, evaluator = start("agent", fa.Good), start("evaluator", fa.Watching)

    def asked_for(_: int) -> bool:
        asked = task(0.3)
        try:
            return run_evaluation_client(agent.url, evaluator.url, asked, token=TOKEN).task_id == asked.task_id
        except EvaluationError:  # the other was there first
            return True

    with ThreadPoolExecutor(3) as threads:
        assert all(threads.map(asked_for, range(6)))


def test_registering_while_tasks_are_started(start: Callable[..., Side]):
    agent, evaluator = start("agent", fa.Finishing), start("evaluator", fa.Watching)
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
    assert evaluate(agent, evaluator).outcome is Outcome.COMPLETED


def test_a_result_of_any_length(start: Callable[..., Side]):
    result = evaluate(start("agent", fa.Finishing), start("evaluator", fa.WritingMuch))
    assert len(result.metrics["moves"]) == 100_000


class CountingSetups(fa.Watching):
    def _setup_environment(self, task: Task) -> None:
        with open(os.environ["SETUPS"], "a") as file:
            file.write("x")


def test_an_agent_is_killed_on_demand_and_made_anew(start: Callable[..., Side]):
    agent, evaluator = start("agent", fa.Sleeping), start("evaluator", fa.Watching)
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
    assert evaluate(agent, evaluator).outcome is Outcome.AGENT_HANG, "and plays as ever"


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


def test_an_agent_that_was_deserted_does_not_say_that_it_finished(start: Callable[..., Side]):
    agent = start("agent", fa.Good)
    with ThreadingHTTPServer((LOCAL, 0), Absent) as absent, ThreadPoolExecutor(1) as thread:
        serving = thread.submit(absent.serve_forever, 0.01)
        url = f"http://{LOCAL}:{absent.server_port}"
        assert ask("POST", f"{agent.url}/agent/register_evaluator", {"evaluator_url": url})[0] == 200
        assert ask("POST", f"{agent.url}/agent/task/start", task(600).model_dump())[0] == 200
        until(f"{agent.url}/agent", "READY")
        absent.shutdown()
        serving.result(60)
    assert Absent.told == []


# Who may


def test_nothing_without_the_token(start: Callable[..., Side]):
    agent = start("agent", fa.Good)
    for token in ("", "wrong", TOKEN + "x"):
        status, answer = ask("GET", f"{agent.url}/agent/status", token=token)
        assert (status, answer["success"]) == (401, False)
    with pytest.raises(EvaluationError, match="401"):
        run_evaluation_client(agent.url, agent.url, task(), token="another-token-of-somebody-else")


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org:8001",
        "http://169.254.169.254",
        "ftp://127.0.0.1",
        "http://user:word@127.0.0.1:1",
        "http://127.0.0.1:1/path",
        "http://[::1",
        "file:///etc/passwd",
        "",
        "http://127.0.0.1:99999",
    ],
)
def test_addresses_that_are_not_registered(start: Callable[..., Side], url: str):
    agent = start("agent", fa.Good)
    status, answer = ask("POST", f"{agent.url}/agent/register_evaluator", {"evaluator_url": url})
    assert (status, answer["success"]) == (400, False)


def test_too_large_and_too_odd(start: Callable[..., Side]):
    agent = start("agent", fa.Good)
    url = f"{agent.url}/agent/task/start"
    assert ask("POST", url, b'"' + b"x" * 2_000_000 + b'"')[0] == 413
    for body in (b"", b"\xff", b"{", b"[]", {"env_name": "x"}, {"env_name": "x", "timeout": -1}, b'{"timeout": NaN}'):
        status, answer = ask("POST", url, body)
        assert status in (400, 422)
        assert answer["success"] is False
        assert answer["error"]
    for odd in ({"seed": 2**64}, {"success_criteria": {"a": "\ud800"}}, {"success_criteria": {"a": nested(60)}}):
        assert ask("POST", url, task().model_dump() | odd)[0] == 422
    bottomless = b'{"env_name": "x", "timeout": 1, "success_criteria": ' + b'{"a":' * 90_000
    assert ask("POST", url, bottomless)[0] in (400, 422)


def nested(levels: int) -> list[Any]:
    return [nested(levels - 1)] if levels else []


def test_connections_that_say_nothing_are_closed(start: Callable[..., Side]):
    agent = start("agent", fa.Good)
    with ExitStack() as stack:
        connect = (socket.create_connection((LOCAL, agent.port), timeout=60) for _ in range(300))
        silent = [stack.enter_context(connection) for connection in connect]
        for connection in silent[::2]:
            connection.sendall(b"GET /agent/status HTTP/1.1\r\nX-Never-Ends: ")
        assert [connection.recv(1) for connection in silent] == 300 * [b""]
        assert ask("GET", f"{agent.url}/agent/status")[0] == 200


def test_a_host_is_allowed_however_it_is_written():
    side = AgentSide(recipe_of(fa.Good), TOKEN, ["Judge.Example"])
    assert checked_url("http://JUDGE.example:8001", side.allowed_hosts) == "http://judge.example:8001"


def test_servers_for_everyone_know_each_other():
    result = run_evaluation_client_with_server(
        task(), "0.0.0.0", 0, "0.0.0.0", 0, agent=fa.Finishing, evaluator=fa.Watching
    )
    assert result.outcome is Outcome.COMPLETED, result.notes


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_a_server_for_everyone_needs_a_token(proctor: Callable[..., Any], host: str):
    done = proctor("serve", "agent", f"{TESTS / 'faulty_agents.py'}:Good", "--host", host, "--port", "0")
    assert done.returncode == 2
    assert "--token" in done.stderr
    with pytest.raises(UsageError, match="token"):
        fa.Good().run(host=host, port=0)


def test_what_cannot_be_served(proctor: Callable[..., Any]):
    for name, said in {
        "nowhere": "expected module:Class",
        "no_such_module:Agent": "could not be imported",
        f"{TESTS / 'faulty_agents.py'}:Goood": "Good",
        f"{TESTS / 'faulty_agents.py'}:Watching": "is no Agent",
        f"{TESTS / 'none.py'}:Agent": "there is no file",
    }.items():
        done = proctor("serve", "agent", name)
        assert done.returncode == 2, done.stderr
        assert said in done.stderr
        assert "Traceback" not in done.stderr


def test_what_the_description_allows_brings_no_server_down(start: Callable[..., Side]):
    """A fuzzer makes requests from the OpenAPI description, to two that know each other."""
    agent, evaluator = start("agent", fa.Good), start("evaluator", fa.Watching)
    for side in (agent, evaluator):
        evaluate(agent, evaluator)
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{side.url}/openapi.json"),
                *("-H", f"Authorization: Bearer {TOKEN}", "--checks", "not_a_server_error", "--seed", "1"),
                *("--max-examples", "20", "--phases", "fuzzing", "--generation-database", "none", "--no-color"),
            ],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
        assert ask("GET", f"{side.url}/openapi.json")[0] == 200


# Faults of either side, and of the line between them


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


def test_an_agents_server_that_is_killed(start: Callable[..., Side]):
    agent, evaluator = start("agent", fa.Good), start("evaluator", fa.Watching)
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(evaluate, agent, evaluator, 600)
        until(f"{agent.url}/agent", "RUNNING")
        agent.kill()
        result = future.result()
    assert result.outcome is Outcome.AGENT_CRASH, result.notes
    assert result.metrics == {}
    again = start("agent", fa.Finishing, port=agent.port)
    assert evaluate(again, evaluator).outcome is Outcome.COMPLETED


def test_an_evaluators_server_that_is_killed(start: Callable[..., Side]):
    agent, evaluator = start("agent", fa.Good), start("evaluator", fa.Watching)
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(evaluate, agent, evaluator, 600)
        until(f"{agent.url}/agent", "RUNNING")
        evaluator.kill()
        result = future.result()
    assert result.outcome is Outcome.JUDGE_ERROR
    until(f"{agent.url}/agent", "READY")  # it has noticed that it plays for nobody
    again = start("evaluator", fa.Watching, port=evaluator.port)
    assert evaluate(agent, again).outcome is Outcome.TIMEOUT


def test_a_line_that_is_cut_and_mended(start: Callable[..., Side]):
    agent, evaluator = start("agent", fa.Good), start("evaluator", fa.Watching)
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
        assert ask("POST", f"{evaluator.url}/evaluator/evaluation/start", task(0.3).model_dump())[0] == 200
        until(f"{evaluator.url}/evaluator", "READY")
        assert ask("GET", f"{evaluator.url}/evaluator/evaluation/results")[1]["outcome"] == "timeout"
    finally:
        to_agent.close()
        to_evaluator.close()


def test_a_line_that_is_slow_is_no_crash(start: Callable[..., Side]):
    agent, evaluator = start("agent", fa.Thinking), start("evaluator", fa.Watching)
    to_agent = Line(agent.port)
    to_agent.delay = 0.4
    try:
        result = run_evaluation_client(to_agent.url, evaluator.url, task(1), token=TOKEN)
        assert result.outcome is Outcome.TIMEOUT, result.notes
    finally:
        to_agent.close()


def test_a_client_that_dies_leaves_an_evaluation_that_ends(start: Callable[..., Side]):
    agent, evaluator = start("agent", fa.Good), start("evaluator", fa.Watching)
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
    assert evaluate(agent, evaluator).outcome is Outcome.TIMEOUT


@pytest.mark.parametrize(
    ("agent", "evaluator", "outcome"),
    [
        (fa.Sleeping, fa.Watching, Outcome.AGENT_HANG),
        (fa.Killed, fa.Watching, Outcome.AGENT_CRASH),
        (fa.KillingItsGuardian, fa.Watching, Outcome.AGENT_CRASH),
        (fa.StoppingItsGuardian, fa.Watching, Outcome.AGENT_HANG),
        (fa.SpeakingInTongues, fa.Watching, Outcome.AGENT_CRASH),
        (fa.RaisingBefore, fa.Watching, Outcome.AGENT_CRASH),
        (fa.Good, fa.ScoreRaises, Outcome.JUDGE_ERROR),
        (fa.Good, fa.CheckDies, Outcome.JUDGE_ERROR),
        (fa.Good, fa.SetupRaises, Outcome.ENV_CRASH),
        (fa.Forking, fa.Watching, Outcome.TIMEOUT),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_faults_over_http(start: Callable[..., Side], agent: type, evaluator: type, outcome: Outcome):
    sides = start("agent", agent), start("evaluator", evaluator)
    for _ in range(2):
        result = evaluate(*sides)
        assert result.outcome is outcome, result.notes
        assert bool(result.metrics) == outcome.is_play
