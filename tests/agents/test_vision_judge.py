"""A model that sees as the judge: a real server that reads what it is shown, and all that can be wrong with a reply."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shlex
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from aiohttp import web
from PIL import Image

from conftest import Serve, completion
from helpers import needs
from helpers.paths import HELPERS
from helpers.seed_classes import responses_api
from proctor import Record, evaluate
from proctor.agents.windows.vision_judge import RETRIES, SCHEMA, JudgeVerdict, VisionJudge
from proctor.core.errors import ModelError, UsageError

FILE = str(HELPERS / "desktop_players.py")
QUESTION = "Has the player won?"
KEY = "sk-very-secret-key"
APIS = ["chat", "responses"]
ONE_API = ["chat", pytest.param("responses", marks=pytest.mark.slow)]  # what does not depend on it
WON = {"success": True, "over": True, "score": 42, "why": "It says so."}


def answer(body: dict[str, Any], text: str) -> web.Response:
    return completion(text) if "messages" in body else responses_api(body["model"], text)


def shown(body: dict[str, Any]) -> tuple[str, bytes]:
    """The words and the picture, by either API."""
    if "messages" in body:
        text, picture = body["messages"][0]["content"]
        url = picture["image_url"]["url"]
    else:
        text, picture = body["input"][0]["content"]
        assert (text["type"], picture["type"]) == ("input_text", "input_image")
        url = picture["image_url"]
    kind, _, data = url.partition(",")
    assert kind == "data:image/png;base64"
    return text["text"], base64.b64decode(data)


def schema(body: dict[str, Any]) -> dict[str, Any]:
    told = body["response_format"]["json_schema"] if "messages" in body else body["text"]["format"]
    kind = body["response_format"] if "messages" in body else told
    assert kind["type"] == "json_schema"
    assert told["strict"] is True
    return dict(told["schema"])


def picture() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "PNG")
    return file.getvalue()


def test_the_schema_is_what_a_verdict_is() -> None:
    assert list(SCHEMA["properties"]) == SCHEMA["required"] == list(JudgeVerdict.__struct_fields__)


@pytest.mark.parametrize("api", APIS)
def test_a_question_and_its_verdict(serve: Serve, monkeypatch: pytest.MonkeyPatch, api: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = serve(lambda body, number: answer(body, json.dumps(WON)))
    verdict, reply = VisionJudge("openai/eyes", server.url, api).judge(picture(), QUESTION)
    assert verdict == JudgeVerdict(True, True, 42.0, "It says so.")
    assert json.loads(reply) == WON
    (body,) = server.requests
    words, data = shown(body)
    assert QUESTION in words
    assert data == picture()
    assert schema(body) == SCHEMA
    assert (body["model"], body["temperature"]) == ("eyes", 0)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("api", ONE_API)
@pytest.mark.parametrize(
    "text",
    [
        "",
        "Yes, the player has won.",
        f"```json\n{json.dumps(WON)}\n```",
        json.dumps(WON)[:-1],
        json.dumps(WON | {"success": "yes"}),
        json.dumps(WON | {"score": "42"}),
        json.dumps(WON | {"sure": True}),
        json.dumps({"success": True}),
        json.dumps([WON]),
    ],
)
def test_a_reply_that_does_not_fit_is_no_verdict(serve: Serve, api: str, text: str) -> None:
    server = serve(lambda body, number: answer(body, text))
    with pytest.raises(ModelError, match="does not fit the schema") as caught:
        VisionJudge("openai/eyes", server.url, api).judge(picture(), QUESTION)
    assert repr(text) in str(caught.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize("api", APIS)
def test_a_server_that_fails_is_asked_again_and_then_no_more(serve: Serve, api: str) -> None:
    failing = serve(lambda body, number: web.Response(status=500, text="out of memory"))
    with pytest.raises(ModelError, match="HTTP 500: out of memory"):
        VisionJudge("openai/eyes", failing.url, api).judge(picture(), QUESTION)
    assert len(failing.requests) == 1 + RETRIES
    recovering = serve(lambda body, number: answer(body, json.dumps(WON)) if number else web.Response(status=503))
    assert VisionJudge("openai/eyes", recovering.url, api).judge(picture(), QUESTION)[0].success


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ({"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "No."}]}]}, "refused"),
        ({"output": [], "status": "failed", "error": {"message": "broken"}}, "broken"),
        ({"output": [{"type": "message"}]}, "not a response"),
        ({"choices": []}, "not a response"),
        ([], "not a response"),
        ({"output": [{"type": "reasoning", "summary": []}], "status": "incomplete"}, "does not fit"),
    ],
)
def test_responses_that_are_none(serve: Serve, reply: Any, why: str) -> None:
    server = serve(lambda body, number: web.json_response(reply))
    with pytest.raises(ModelError, match=why):
        VisionJudge("openai/eyes", server.url, "responses").judge(picture(), QUESTION)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"question": QUESTION, "judge_model": "openai/eyes", "text": "WON"}, "two judges may differ"),
        ({"question": QUESTION, "judge_model": "openai/eyes", "exit_code": 0}, "set question or exit_code"),
        ({"question": QUESTION}, "who answers the question"),
        ({"question": QUESTION, "judge_model": "smollm2"}, "expected openai/NAME, got 'smollm2'"),
        ({"question": QUESTION, "judge_model": "openai/eyes"}, "OPENAI_API_KEY, or pass judge_base_url"),
        ({"text": "WON", "judge_model": "openai/eyes"}, "judge_model is for a question"),
        ({"text": "WON", "judge_every": 2.0}, "judge_every is for a question"),
        ({}, "Set text, image, exit_code or question"),
    ],
)
def test_what_is_said_before_anything_is_played(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        evaluate("agents/window", agent=f"{FILE}:Idle", settings={"command": "true", "window": "W", **settings})


def test_a_judge_that_is_not_there_is_found_out_before_anything_is_played() -> None:
    settings = {"command": "true", "window": "W", "question": QUESTION, "judge_model": "openai/eyes"}
    url = f"http://127.0.0.1:{free_port()}/v1"
    with pytest.raises(UsageError, match="is judge_base_url right"):
        evaluate("agents/window", agent=f"{FILE}:Idle", settings=settings | {"judge_base_url": url})


@pytest.mark.parametrize("api", APIS)
def test_a_judge_that_does_not_exist_is_found_out_before_anything_is_played(serve: Serve, api: str) -> None:
    server = serve(lambda body, number: web.json_response({"error": {"message": "no such model"}}, status=404))
    settings = {"command": "true", "window": "W", "question": QUESTION, "judge_model": "openai/eyes", "judge_api": api}
    with pytest.raises(UsageError, match=r"no model 'eyes' .* Check the model name, judge_base_url and judge_api"):
        evaluate("agents/window", agent=f"{FILE}:Idle", settings=settings | {"judge_base_url": server.url})


# A window that says PLAYING, and after three presses of the right arrow WINNER; from then on time goes by.
PROGRAM = """
import pygame
pygame.init()
screen = pygame.display.set_mode((320, 120))
pygame.display.set_caption("Word Game")
font, pressed = pygame.font.Font(None, 48), 0
while True:
    screen.fill((0, 0, 60))
    screen.blit(font.render("WINNER 42" if pressed >= 3 else "PLAYING", True, (255, 255, 255)), (40, 40))
    pygame.display.flip()
    event = pygame.event.wait()
    pressed += event.type == pygame.KEYDOWN and event.key == pygame.K_RIGHT
"""


class Reader:
    """A service that really reads the picture."""

    def __init__(self) -> None:
        self._reading = threading.Lock()
        self.read: list[list[str]] = []

    def __call__(self, body: dict[str, Any], _: int) -> web.Response:
        from proctor.agents.windows.screen_checks import read_text, shows_text

        words, data = shown(body)
        if QUESTION not in words:  # a trial, before anything is played
            return answer(body, json.dumps(WON))
        frame = numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        with self._reading:
            lines = read_text(frame)
        self.read.append(lines)
        won = shows_text(lines, "WINNER")
        found = re.search(r"\d+", " ".join(lines))
        verdict = {"success": won, "over": won, "score": int(found[0]) if found else None, "why": " ".join(lines)}
        return answer(body, json.dumps(verdict))


@pytest.fixture
def play(tmp_path: Path) -> Callable[..., tuple[Record, Path]]:
    """One episode: its record, and the folder with its files."""
    for module in ("Xlib", "pygame", "rapidocr"):
        needs.module(module, "desktop")
    needs.program("Xvfb", "xvfb")
    (tmp_path / "program.py").write_text(PROGRAM)

    def play(server: Any, agent: str, **settings: Any) -> tuple[Record, Path]:
        program = {"command": shlex.join([sys.executable, str(tmp_path / "program.py")]), "window": "Word Game"}
        judge = {"question": QUESTION, "judge_model": "openai/eyes", "judge_base_url": server.url, "attempts": 1}
        told = program | judge | settings
        report = evaluate("agents/window", agent=f"{FILE}:{agent}", limit=1, film=False, settings=told)
        (record,) = report.records()
        (folder,) = Path(os.environ["PROCTOR_STORE"]).glob("artifacts/*/000000-0-1")
        return record, folder

    return play


@pytest.mark.parametrize("api", ONE_API)
def test_a_game_is_won_and_a_model_sees_it(play: Callable[..., Any], serve: Serve, api: str) -> None:
    from proctor.agents.windows.screen_checks import read_text, shows_text

    reader = Reader()
    record, folder = play(serve(reader), "Pressing", judge_api=api, judge_every=1.0, timeout=300)
    assert record.outcome == "completed", record.score
    assert record.score.value == 1.0
    told = record.score.answer
    assert told["score"] == 42
    assert json.loads(told["reply"])["success"] is True
    # The frame that the verdict is about is the one that is kept.
    assert told["frame"] == f"judged-{len(reader.read)}.png"
    frame = numpy.asarray(Image.open(folder / told["frame"]))
    assert shows_text(read_text(frame), "WINNER")


@pytest.mark.slow
def test_not_yet_is_a_failure_and_costs_one_question(play: Callable[..., Any], serve: Serve) -> None:
    reader = Reader()
    record, folder = play(serve(reader), "Idle", timeout=1)
    assert (record.outcome, record.score.value) == ("timeout", 0.0)
    assert reader.read == [["PLAYING"]]
    assert record.score.answer["frame"] == "judged.png"
    assert json.loads(record.score.answer["reply"])["why"] == "PLAYING"
    assert (folder / "judged.png").is_file()


@pytest.mark.slow
def test_the_end_is_read_and_a_model_judges_it(play: Callable[..., Any], serve: Serve) -> None:
    reader = Reader()
    record, _ = play(serve(reader), "Pressing", over_text="WINNER", look_every=1.0, timeout=300)
    assert (record.outcome, record.score.value) == ("completed", 1.0)
    assert len(reader.read) == 1
    assert record.score.answer["frame"] == "judged.png"


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (lambda body, number: answer(body, "It looks as if they won."), "'It looks as if they won.'"),
        pytest.param(
            lambda body, number: web.Response(status=500, text="out of memory"),
            "HTTP 500: out of memory",
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.parametrize("api", ONE_API)
def test_without_a_verdict_there_is_no_score(
    play: Callable[..., Any], serve: Serve, api: str, reply: Any, why: str
) -> None:
    record, folder = play(serve(reply), "Idle", judge_api=api, timeout=1)
    assert record.outcome == "judge_error"
    assert record.score.value is None
    assert "no verdict on judged.png" in record.score.why
    assert why in record.score.why
    assert (folder / "judged.png").is_file()
