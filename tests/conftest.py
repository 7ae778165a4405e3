"""Fixtures for all tests: the command line, a model server on loopback, a tiny task."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from aiohttp import web

from helpers.leaks import Snapshot
from helpers.sandbox_session import Judge, SandboxSession
from proctor import Record, evaluate
from proctor.cli.main import main
from proctor.core.errors import TooManyErrorsError
from proctor.store import open_store

if TYPE_CHECKING:
    from helpers.agent_sides import Side
    from helpers.postgres_server import PostgresServer
    from proctor.sandbox import Verdict

# Fixed examples and no deadline: a test must not fail by load or chance.
# HYPOTHESIS_PROFILE=default searches new examples. `make test` runs fewer than `make test-all`.
hypothesis.settings.register_profile("few", derandomize=True, deadline=None, max_examples=30)
hypothesis.settings.register_profile("many", derandomize=True, deadline=None, max_examples=100)

# A background shell makes the tests and their children ignore SIGINT, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

Handler = Callable[[dict[str, Any], int], Any]

# The types of fixtures, for the signatures of tests.
Command = Callable[..., "subprocess.CompletedProcess[str]"]
Serve = Callable[[Handler], "ModelServer"]
Stalling = Callable[[int], "ModelServer"]
FailingRun = Callable[..., tuple[str, list[Record]]]
StartSide = Callable[..., "Side"]
TaskFile = Callable[[str], Path]
RunInLanguages = Callable[..., "list[Verdict]"]

ADDING = """
from collections.abc import Iterator
from proctor import RunConfig, Sample, Score, Task

class Adding(Task):
    def samples(self, config: RunConfig) -> Iterator[Sample]:
        for i in range(config.limit_start, config.limit_start + self.count(config)):
            yield Sample(id=f"add-{i}", index=i, input=f"{i}+{i}=", target=str(2 * i), metadata={"odd": i % 2})

    def count(self, config: RunConfig) -> int:
        return config.limit or 10

    def score_text(self, sample: Sample, text: str) -> Score:
        right = text == sample.target
        return Score(float(right), "correct" if right else "wrong", text)
"""


def pytest_configure(config: pytest.Config) -> None:
    profile = "few" if config.option.markexpr == "not slow" else "many"
    hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", profile))
    if "COVERAGE_FILE" in os.environ:  # by `make coverage`
        from helpers.killed_coverage import KilledCoverage

        config.pluginmanager.register(KilledCoverage())


@pytest.fixture(autouse=True)
def _closes_what_it_opens(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test that leaves a process, a thread, a file or a socket open.

    Fixtures of a wider scope are set up earlier, so their objects are not counted.
    """
    before = Snapshot()
    yield
    if left := before.new_since(request.node.nodeid):
        pytest.fail("left behind: " + "; ".join(left), pytrace=False)


@pytest.fixture(autouse=True)
def _isolate_from_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides the user's store and keys from the tests; only the weights of the embedded model are shared."""
    monkeypatch.setenv("PROCTOR_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("proctor.models.adaptive_limit.SERVERS", {})  # a new server may reuse a port
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A real server for this test process."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    from helpers.postgres_server import PostgresServer, find_programs

    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = PostgresServer(programs)
    yield server
    server.stop()


@pytest.fixture
def postgres(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty database as the default store."""
    url = postgres_server.create_database()
    monkeypatch.setenv("PROCTOR_STORE", url)
    return url


@pytest.fixture(scope="session", params=["folder", pytest.param("postgres", marks=pytest.mark.slow)])
def store_server(request: pytest.FixtureRequest) -> PostgresServer | None:
    """Runs the test with each kind of store; a folder needs no server."""
    if request.param == "folder":
        return None
    server: PostgresServer = request.getfixturevalue("postgres_server")
    return server


@pytest.fixture
def each_store(store_server: PostgresServer | None, tmp_path: Path) -> str:
    return store_server.create_database() if store_server else str(tmp_path / "store")


@pytest.fixture(scope="session")
def contained() -> str:
    """The isolation level of this machine; skips the test if there is none."""
    from proctor.core.errors import SandboxUnavailableError
    from proctor.sandbox import best_level

    try:
        return str(asyncio.run(best_level()))
    except SandboxUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def session() -> Iterator[SandboxSession]:
    session = SandboxSession()
    yield session
    session.close()


@pytest.fixture
def judge(session: SandboxSession) -> Judge:
    return session.judge


@pytest.fixture(scope="module")
def one_sandbox(session: SandboxSession) -> Iterator[None]:
    """The programs that the tests of a module run outside of an exam share one sandbox."""
    from proctor.code.execution import use_runner

    with use_runner(session):
        yield


@pytest.fixture(scope="session")
def run_in_languages() -> Iterator[RunInLanguages]:
    """One pool for the tests of all languages: what makes compilers faster is prepared once."""
    session = SandboxSession()
    yield session.judge_all
    session.close()


@pytest.fixture
def adding(tmp_path: Path) -> str:
    """A task in a user's file: sample i asks for i + i."""
    path = tmp_path / "adding.py"
    path.write_text(ADDING)
    return f"{path}:Adding"


@pytest.fixture
def proctor(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command line, called in this process: `proctor("run", …, VARIABLE="value")`."""

    def call(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in env.items():
                patch.setenv(name, value)
            try:
                code = main(arguments)
            except SystemExit as end:  # raised by --help
                code = int(end.code or 0)
        captured = capsys.readouterr()
        return subprocess.CompletedProcess(
            ["proctor", *arguments], code, captured.out.replace("\r\n", "\n"), captured.err
        )

    return call


@pytest.fixture
def proctor_process() -> Command:
    """The command line in a new process, for tests of signals, streams and restarts."""

    def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "proctor", *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            env=os.environ | env,
            check=False,
        )

    return run


class ModelServer:
    """An OpenAI-compatible server in a thread. The handler gets the request's body and its number."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.about: dict[str, Any] = {}  # additional fields of /v1/models
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.gate = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        assert self._ready.wait(30)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def open_gate(self) -> None:
        """Releases the requests that a handler holds back."""
        self._loop.call_soon_threadsafe(self.gate.set)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(30)
        assert not self._thread.is_alive()
        self._loop.close()

    def _serve(self) -> None:
        self._loop.run_until_complete(self._main())

    async def _main(self) -> None:
        self._stopping = asyncio.Event()
        app = web.Application()
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_post("/v1/completions", self._complete)
        app.router.add_post("/v1/responses", self._complete)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        self._ready.set()
        await self._stopping.wait()
        self.gate.set()  # releases waiting handlers before the loop ends
        await runner.cleanup()

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "m", "root": "weights-1", **self.about}]})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        number = len(self.requests)
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            reply = self.handler(body, number)
            if asyncio.iscoroutine(reply):
                reply = await reply
        finally:
            self.in_flight -= 1
        if isinstance(reply, str):
            return completion(reply, "messages" in body)
        assert isinstance(reply, web.StreamResponse)
        return reply


def completion(text: str, chat: bool = True) -> web.Response:
    choice = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    return web.json_response({"choices": [{"index": 0, "finish_reason": "stop", **choice}], "usage": usage})


def right_sum(body: dict[str, Any], _: int) -> str:
    """The gold answer to a sample of the Adding task."""
    text = body["messages"][-1]["content"] if "messages" in body else body["prompt"]
    return str(2 * int(text.partition("+")[0]))


@pytest.fixture
def failing_run() -> FailingRun:
    """Runs a task that fails on every sample; returns the message and the records."""

    def run(*arguments: Any, **options: Any) -> tuple[str, list[Record]]:
        with pytest.raises(TooManyErrorsError) as caught:
            evaluate(*arguments, **options)
        assert caught.value.run is not None
        assert caught.value.run.status == "failed"
        return str(caught.value), list(open_store().records(caught.value.run))

    return run


@pytest.fixture
def stalling(serve: Serve) -> Stalling:
    """A server that answers this many requests, and the others only after `open_gate`."""

    def start(answered: int) -> ModelServer:
        async def reply(body: dict[str, Any], number: int) -> str:
            if number >= answered:
                await server.gate.wait()
            return right_sum(body, number)

        server = serve(reply)
        return server

    return start


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[ModelServer] = []

    def start(handler: Handler) -> ModelServer:
        servers.append(ModelServer(handler))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def start_side() -> Iterator[StartSide]:
    """Starts a server: `start_side("agent", Class)` or `start_side("evaluator", Class)`."""
    from helpers.agent_sides import Side

    started: list[Side] = []

    def start(side: str, cls: type, port: int = 0, **env: str) -> Side:
        started.append(Side(side, f"{cls.__module__}:{cls.__qualname__}", port, **env))
        return started[-1]

    yield start
    for side in started:
        side.end()


@pytest.fixture
def task_file(tmp_path: Path, adding: str) -> TaskFile:
    """Writes another task file beside adding.py, which it may import."""

    def write(source: str) -> Path:
        path = tmp_path / "task.py"
        path.write_text(textwrap.dedent(source))
        return path

    return write
