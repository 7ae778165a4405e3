"""Agents on another machine: real servers, real windows, and every way in which the other side can fail."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy
import pytest

from helpers import desktop_players
from helpers import isolated_players as players
from helpers.agent_sides import LOCAL, TOKEN, LocalSide, Side, ask
from proctor import evaluate
from proctor.agents.remote.hosted import unpacked
from proctor.agents.remote.window_client import packed
from proctor.core.errors import UsageError

FILE = players.__file__
GAMES = desktop_players.__file__


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_TOKEN", TOKEN)


@pytest.fixture
def agent_client() -> Iterator[Callable[[type], str]]:
    """The address of a served agent."""
    with ExitStack() as stack:
        yield lambda cls: stack.enter_context(LocalSide("player", cls)).url


def in_a_window(url: str, **options: Any) -> list[dict[str, Any]]:
    settings = {"window_name": "Arrow Game", "timeout": 10.0, "attempts": 1, "success_criteria": {"presses": 3}}
    report = evaluate(
        f"{GAMES}:ArrowGame",
        agent=url,
        settings=settings | options.pop("settings", {}),
        **{"limit": 1, "film": False, **options},
    )
    return [json.loads(record.outputs[-1].text) for record in report.records()]


def in_steps(url: str, **settings: Any) -> list[dict[str, Any]]:
    report = evaluate("agents/catch", agent=url, settings={"max_steps": 20} | settings, limit=2)
    return [json.loads(record.outputs[-1].text) for record in report.records()]


def test_agent_on_another_machine_plays_in_a_window(agent_client: Callable[[type], str]) -> None:
    url = agent_client(players.FarRightArrow)
    attempts = in_a_window(url)
    assert attempts[0]["outcome"] == "completed", attempts
    assert attempts[0]["metrics"]["success"] is True
    assert attempts[0]["held"] == f"remote: {url}"
    log = next(Path(os.environ["PROCTOR_STORE"]).glob("artifacts/*/000000-0-1/events.jsonl"))
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert ("press", "RIGHT") in [(event["kind"], event["what"]) for event in events if event["event"] == "input"]


@pytest.mark.parametrize("form", ["png", "jpeg", "raw"])
def test_frame_arrives_as_it_was_sent(form: Any) -> None:
    frame = numpy.zeros((24, 32, 3), numpy.uint8)
    frame[:12, :, 1] = 200
    body, headers = packed(frame, form)
    arrived = unpacked(body, headers["Content-Type"], headers["Proctor-Size"])
    assert arrived.shape == frame.shape
    assert numpy.abs(arrived.astype(int) - frame).max() <= (0 if form != "jpeg" else 60)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["jpeg", "raw"])
def test_frames_in_every_form_are_played(agent_client: Callable[[type], str], form: str) -> None:
    assert in_a_window(agent_client(players.FarRightArrow), agent_frames=form)[0]["outcome"] == "completed"


@pytest.mark.slow
def test_one_served_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    side = Side("player", f"{FILE}:FarRightArrow")
    try:
        assert in_a_window(side.url, limit=2)[1]["metrics"]["success"] is True
    finally:
        side.end()


@pytest.mark.parametrize(
    ("cls", "outcome", "why"),
    [
        (players.FarRaiser, "agent_crash", "it does not like the frame"),
        pytest.param(players.FarBabbler, "agent_crash", "there is no key 'NO SUCH KEY'", marks=pytest.mark.slow),
        pytest.param(players.FarHanger, "agent_hang", "no answer to a frame for", marks=pytest.mark.slow),
        pytest.param(players.FarHolder, "completed", "", marks=pytest.mark.slow),
    ],
)
def test_faults_of_an_agent_on_another_machine(
    agent_client: Callable[[type], str], cls: type, outcome: str, why: str
) -> None:
    """Twice: the next episode begins as if nothing had been."""
    timeout = 2.0 if outcome == "agent_hang" else 10.0
    attempts = in_a_window(agent_client(cls), settings={"timeout": timeout}, limit=2)
    assert [attempt["outcome"] for attempt in attempts] == [outcome] * 2
    assert all(why in attempt["notes"] for attempt in attempts)


class Junk(BaseHTTPRequestHandler):
    """Begins as a player does; what it says then is up to the test."""

    says: Callable[[Junk], None]

    def do_GET(self) -> None:
        self.answer(b'{"protocol": 1, "state": "READY"}')

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/player/step":
            type(self).says(self)
        else:
            self.answer(b"{}")

    def answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


def says(body: bytes) -> Callable[[Junk], None]:
    return lambda handler: handler.answer(body)


def hangs_up(handler: Junk) -> None:
    handler.close_connection = True
    handler.connection.close()


JUNK: dict[str, tuple[Callable[[Junk], None], str]] = {
    "no JSON": (says(b"\x80\xff"), "gave an invalid answer"),
    "another shape": (says(b'{"actions": 7}'), "gave an invalid answer"),
    "an unknown action": (says(b'{"actions": [{"do": "format the disk"}]}'), "gave an invalid answer"),
    "a place that is no number": (says(b'{"actions": [{"do": "move", "x": "a", "y": 1}]}'), "invalid answer"),
    "too long a hold": (says(b'{"actions": [{"do": "tap", "key": "A", "seconds": 1e9}]}'), "invalid answer"),
    "too many actions": (
        says(b'{"actions": [' + b",".join([b'{"do": "wait", "seconds": 0}'] * 1_000) + b"]}"),
        "invalid answer",
    ),
    "the stop key": (says(b'{"actions": [{"do": "tap", "key": "F10"}]}'), "stop key"),
    "too much": (says(b'"' + b"x" * (2 << 20) + b'"'), "an answer of more than"),
    "nothing": (hangs_up, "cannot be reached"),
}


@pytest.fixture
def junk() -> Iterator[Callable[[Callable[[Junk], None]], str]]:
    with ExitStack() as stack:

        def start(what: Callable[[Junk], None]) -> str:
            server = ThreadingHTTPServer((LOCAL, 0), type("Saying", (Junk,), {"says": staticmethod(what)}))
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.server_close)
            stack.callback(server.shutdown)
            return f"http://{LOCAL}:{server.server_address[1]}"

        yield start


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=[] if what == "no JSON" else [pytest.mark.slow]) for what in JUNK]
)
def test_junk_is_the_agents_crash(junk: Callable[[Callable[[Junk], None]], str], what: str) -> None:
    said, why = JUNK[what]
    attempts = in_a_window(junk(said))
    assert attempts[0]["outcome"] == "agent_crash", attempts
    assert why in attempts[0]["notes"]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["no JSON", "nothing", "too much"])
def test_junk_in_steps_is_the_agents_crash(junk: Callable[[Callable[[Junk], None]], str], what: str) -> None:
    said, why = JUNK[what]
    endings = in_steps(junk(said))
    assert [ending["outcome"] for ending in endings] == ["agent_crash"] * 2
    assert why in endings[0]["why"]


def test_nobody_at_the_address(token: None) -> None:
    attempts = in_a_window(f"http://{LOCAL}:1")
    assert attempts[0]["outcome"] == "agent_crash"
    assert "cannot be reached" in attempts[0]["notes"]


@pytest.mark.parametrize(
    "clock", ["step", pytest.param("realtime", marks=pytest.mark.slow), pytest.param("paused", marks=pytest.mark.slow)]
)
def test_agent_on_another_machine_plays_in_steps(agent_client: Callable[[type], str], clock: str) -> None:
    url = agent_client(players.Steady)
    endings = in_steps(url, clock=clock, fps=50.0)
    assert [ending["outcome"] for ending in endings] == ["completed"] * 2, endings
    assert endings[0]["held"] == f"remote: {url}"
    if clock == "step":
        here = evaluate("agents/catch", agent=f"{FILE}:Steady", settings={"max_steps": 20}, limit=2)
        traces = [json.loads(record.outputs[-1].text)["trace"] for record in here.records()]
        assert [ending["trace"] for ending in endings] == traces


@pytest.mark.slow
@pytest.mark.parametrize("clock", ["step", "realtime"])
@pytest.mark.parametrize(
    ("cls", "outcome", "why"),
    [(players.Sleeper, "agent_hang", "no answer to an observation"), (players.Odd, "agent_crash", "nonsense")],
)
def test_faults_in_steps(agent_client: Callable[[type], str], clock: str, cls: type, outcome: str, why: str) -> None:
    endings = in_steps(agent_client(cls), clock=clock, timeout=2.0)
    assert [ending["outcome"] for ending in endings] == [outcome] * 2, endings
    assert why in endings[0]["why"]


def test_player_lets_nobody_in_without_the_token(agent_client: Callable[[type], str]) -> None:
    url = agent_client(players.FarRightArrow)
    assert ask("GET", f"{url}/player/status")[0] == 200
    assert ask("GET", f"{url}/player/status", token="another-token-altogether")[0] == 401
    assert ask("POST", f"{url}/player/step", {})[0] == 400
    assert ask("POST", f"{url}/player/begin", {"episode": 7})[0] == 422


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("http://", "expected http://HOST:PORT"),
        ("http://a:b@127.0.0.1:1", "the token of an agent's server comes from"),
        ("http://127.0.0.1:1/path", "expected http://HOST:PORT"),
    ],
)
def test_address_that_is_none(agent: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        in_a_window(agent)


def test_address_of_another_machine_needs_a_chosen_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCTOR_TOKEN")
    with pytest.raises(UsageError, match=r"needs a token that both sides know: set \$PROCTOR_TOKEN"):
        in_a_window("http://192.0.2.1:8000")


def test_environment_without_a_window_sends_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FORGED_STATE", str(tmp_path / "state"))
    with pytest.raises(UsageError, match="shows nothing that could be sent"):
        evaluate(f"{FILE}:Scored", agent=f"http://{LOCAL}:1", limit=1)
