"""The OpenAI-compatible client against a real HTTP server."""

from __future__ import annotations

import socket
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import proctor
from conftest import FailingRun, Serve, right_sum
from proctor.core.errors import RequestRefusedError, UsageError
from proctor.models.adaptive_limit import ServerLimit
from proctor.store import open_store

KEY = "sk-very-secret-key"


@pytest.fixture(autouse=True)
def _no_waits_between_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long they are is tested in test_gateway.py, in virtual time."""
    monkeypatch.setattr("proctor.models.client.FIRST_BACKOFF", 0.001)
    monkeypatch.setattr("proctor.models.adaptive_limit.MIN_PAUSE", 0.001)


def error(status: int, message: str = "no", **headers: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status, headers=headers)


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_both_endpoints(adding: str, serve: Serve, api: str) -> None:
    server = serve(right_sum)
    report = proctor.evaluate(adding, "openai/m", base_url=server.url, api=api)
    assert report.metrics["accuracy"].value == 1
    assert report.run.usage.input_tokens == 100
    assert report.run.usage.output_tokens == 20
    assert report.run.usage.cost is None
    assert all(record.usage.input_tokens == 10 for record in report.records())
    assert ("messages" in server.requests[0]) == (api == "chat")


def test_request_contains_sampling_settings(adding: str, serve: Serve) -> None:
    server = serve(right_sum)
    options: dict[str, Any] = {"temperature": 0.5, "top_p": 0.9, "top_k": 40, "max_tokens": 7, "stop": ["\n"]}
    proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1, **options)
    (body,) = server.requests
    assert {key: body[key] for key in options} == options
    assert body["model"] == "m"
    assert 0 <= body["seed"] < 2**31


def test_zero_top_k_is_not_sent(adding: str, serve: Serve) -> None:
    """Servers refuse 0, or take it for something else."""
    server = serve(right_sum)
    proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1, top_k=0)
    assert "top_k" not in server.requests[0]


def test_openai_gets_at_most_four_stop_strings(adding: str, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """It refuses five. The answer ends at each of them all the same."""
    server = serve(lambda body, number: "06, no 7")
    stop = ["1", "3", "5", "7", "6"]
    report = proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1, stop=stop)
    monkeypatch.setattr("proctor.models.providers.openai.OPENAI_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    at_openai = proctor.evaluate(adding, "openai/m", limit=1, stop=stop)
    assert [body["stop"] for body in server.requests] == [stop, stop[:4]]
    for record in (*report.records(), *at_openai.records()):
        assert record.outputs[0].text == "0"


def test_few_shot_examples_are_chat_messages(serve: Serve) -> None:
    server = serve(lambda body, number: "Yes")
    proctor.evaluate("shapes/existence", "openai/m", base_url=server.url, limit=1, few_shot=2)
    assert [m["role"] for m in server.requests[0]["messages"]] == ["user", "assistant", "user", "assistant", "user"]


def test_cost_follows_from_prices(adding: str, serve: Serve) -> None:
    server = serve(right_sum)
    report = proctor.evaluate(adding, "openai/m", base_url=server.url, price_input=1.5, price_output=6)
    assert report.run.usage.cost == pytest.approx((100 * 1.5 + 20 * 6) / 1e6)
    assert "cost" in str(report)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_transient_errors_are_retried(adding: str, serve: Serve, status: int) -> None:
    server = serve(lambda body, number: error(status) if number == 0 else right_sum(body, number))
    report = proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1)
    (record,) = report.records()
    assert record.score is not None
    assert record.score.value == 1
    assert record.outputs[0].attempts == 2
    assert len(server.requests) == 2


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_retry_after_is_honoured(adding: str, serve: Serve, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause that the server asks for is handed on. That everybody keeps it, test_gateway.py shows."""
    pauses: list[float] = []

    def note(limit: ServerLimit, seconds: float) -> None:
        pauses.append(seconds)

    def reply(body: dict[str, Any], number: int) -> Any:
        if number == 0:
            date = format_datetime(datetime.now(UTC) + timedelta(seconds=800), usegmt=True)
            return error(429, "slow down", **{"Retry-After": "1.5" if form == "seconds" else date})
        return right_sum(body, number)

    monkeypatch.setattr(ServerLimit, "pause", note)
    server = serve(reply)
    report = proctor.evaluate(adding, "openai/m", base_url=server.url, limit=6, concurrency=1)
    assert (report.run.n, len(server.requests)) == (6, 7)
    (pause,) = pauses
    if form == "seconds":
        assert pause == 1.5
    else:
        assert 400 < pause <= 800


@pytest.mark.parametrize("wait", ["soon", "Mon, 01 Jan 99999999999 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 +2400"])
def test_invalid_retry_after_falls_back_to_backoff(adding: str, serve: Serve, wait: str) -> None:
    server = serve(
        lambda body, number: right_sum(body, number) if number else error(429, "slow down", **{"Retry-After": wait})
    )
    run = proctor.evaluate(adding, "openai/m", base_url=server.url, limit=2, concurrency=1).run
    assert (run.n, run.errors) == (2, 0)


def test_exhausted_retries_are_an_error_not_a_wrong_answer(adding: str, serve: Serve) -> None:
    server = serve(lambda body, number: error(503, "overloaded") if "3+3" in str(body) else right_sum(body, number))
    report = proctor.evaluate(adding, "openai/m", base_url=server.url, retries=1)
    failed = [record for record in report.records() if record.error]
    assert [record.sample.index for record in failed] == [3]
    assert failed[0].error is not None
    assert (failed[0].error.kind, failed[0].error.message) == ("model", "HTTP 503: overloaded")
    assert report.metrics["accuracy"].value == 1
    assert (report.run.n, report.run.errors) == (9, 1)


def test_permanent_errors_are_not_retried(adding: str, serve: Serve, failing_run: FailingRun) -> None:
    server = serve(lambda body, number: error(400, "prompt too long"))
    said, records = failing_run(adding, "openai/m", base_url=server.url, limit=3)
    assert len(server.requests) == 3
    assert [record.outcome for record in records] == ["error"] * 3
    assert "the last: ModelError: HTTP 400: prompt too long" in said


def test_slow_server_times_out(adding: str, serve: Serve) -> None:
    async def slow(body: dict[str, Any], number: int) -> Any:
        if number == 0:
            await server.gate.wait()
        return right_sum(body, number)

    server = serve(slow)
    report = proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1, timeout=0.5, retries=500)
    (record,) = report.records()
    assert record.outputs[0].attempts >= 2


def test_broken_connection_is_retried(adding: str, serve: Serve) -> None:
    async def cut(body: dict[str, Any], number: int) -> Any:
        if number == 0:
            raise ConnectionResetError
        return right_sum(body, number)

    server = serve(cut)
    assert proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1).run.n == 1


@pytest.mark.parametrize("reply", [web.Response, lambda: web.json_response({"choices": []})])
def test_reply_that_is_not_a_completion_is_retried(
    adding: str, serve: Serve, reply: Callable[[], web.Response]
) -> None:
    server = serve(lambda body, number: reply() if number == 0 else right_sum(body, number))
    report = proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1)
    assert report.run.n == 1
    assert len(server.requests) == 2


def reply_with(**parts: Any) -> web.Response:
    choice = {"message": {"content": "x"}, "finish_reason": "stop"} | parts.pop("choice", {})
    return web.json_response({"choices": [choice], **parts})


@pytest.mark.parametrize(
    "odd",
    [
        {"choice": {"finish_reason": "error"}},
        {"choice": {"error": {"message": "upstream died"}}},
        {"choice": {"message": {"content": 5}}},
        {"choice": {"message": "text"}},
        {"usage": "none"},
        {"usage": {"prompt_tokens": "many"}},
    ],
)
def test_malformed_replies_are_retried_and_never_scored(adding: str, serve: Serve, odd: dict[str, Any]) -> None:
    server = serve(lambda body, number: reply_with(**odd) if number == 0 else right_sum(body, number))
    report = proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1)
    assert report.metrics["accuracy"].value == 1
    assert len(server.requests) == 2


def test_filtered_answer_is_an_error(
    adding: str, serve: Serve, failing_run: FailingRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = serve(
        lambda body, number: reply_with(choice={"message": {"content": None}, "finish_reason": "content_filter"})
    )
    for asked in (1, 2):  # and it is not cached
        _, (record,) = failing_run(adding, "openai/m", base_url=server.url, limit=1, cache=True)
        assert record.error is not None
        assert record.error.kind == "model"
        assert len(server.requests) == asked


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"tool_calls": []}, ""),
        ({"content": None}, ""),
        ({"content": [{"type": "text", "text": "4"}, {"text": "2"}]}, "42"),
    ],
)
def test_content_may_be_text_or_parts(adding: str, serve: Serve, message: dict[str, object], text: str) -> None:
    server = serve(lambda body, number: reply_with(choice={"message": message}, usage={"prompt_tokens": 3.0}))
    (record,) = proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1).records()
    assert record.outputs[0].text == text


def test_redirect_is_refused(adding: str, serve: Serve) -> None:
    server = serve(lambda body, number: web.Response(status=302, headers={"Location": "http://elsewhere/v1"}))
    with pytest.raises(RequestRefusedError, match="redirected to http://elsewhere/v1"):
        proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_refusal_after_an_answer_fails_only_its_sample(adding: str, serve: Serve, status: int) -> None:
    server = serve(lambda body, number: error(status, "not this one") if number == 5 else right_sum(body, number))
    report = proctor.evaluate(adding, "openai/m", base_url=server.url, concurrency=1)
    assert (report.run.n, report.run.errors) == (9, 1)


def test_api_key_is_stripped(adding: str, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\r\n")
    server = serve(right_sum)
    proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_null_content_is_empty_text(adding: str, serve: Serve) -> None:
    """Some servers send null when a model says nothing."""
    choice = {"message": {"content": None}, "finish_reason": "length"}
    server = serve(lambda body, number: web.json_response({"choices": [choice]}))
    (record,) = proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1).records()
    assert (record.outputs[0].text, record.outputs[0].finish) == ("", "length")


@pytest.mark.parametrize(("status", "said"), [(401, "refused the API key"), (403, "refused"), (404, "has no model")])
def test_permanent_refusal_stops_run_at_start(
    adding: str, serve: Serve, monkeypatch: pytest.MonkeyPatch, status: int, said: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = serve(lambda body, number: error(status, f"bad key {KEY}"))
    with pytest.raises(RequestRefusedError, match=said) as caught:
        proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1000, concurrency=2)
    assert len(server.requests) <= 4
    assert KEY not in str(caught.value)


def test_api_key_is_sent_but_never_stored(
    adding: str, serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failing_run: FailingRun
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = serve(lambda body, number: error(400, f"your key {KEY} is fine, your prompt is not"))
    options: dict[str, Any] = {"base_url": server.url, "limit": 2, "api_key_env": "MY_KEY", "cache": True}
    said, (first, _) = failing_run(adding, "openai/m", **options)
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert first.error is not None
    assert first.error.message == "HTTP 400: your key *** is fine, your prompt is not"
    assert KEY not in said
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"runs.db", "responses.db"} <= {path.name for path in written}
    assert [path for path in written if KEY.encode() in path.read_bytes()] == []


def test_missing_api_key_is_explained() -> None:
    with pytest.raises(UsageError, match="No API key: set the environment variable OPENAI_API_KEY"):
        proctor.evaluate("shapes/existence", "openai/gpt-5")


def test_unreachable_server_is_explained(adding: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        with pytest.raises(RequestRefusedError, match="Cannot reach the model server"):
            proctor.evaluate(adding, "openai/m", base_url=url)
    assert open_store().runs() == []


def test_cached_responses_are_marked_and_cost_nothing(
    adding: str, serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = serve(right_sum)
    options: dict[str, Any] = {"base_url": server.url, "cache": True, "price_input": 1.0}
    first = proctor.evaluate(adding, "openai/m", **options)
    again = proctor.evaluate(adding, "openai/m", **options)
    assert len(server.requests) == 10
    assert [r.outputs[0].cached for r in first.records()] == [False] * 10
    assert [r.outputs[0].cached for r in again.records()] == [True] * 10
    assert first.run.usage.cost is not None
    assert first.run.usage.cost > 0
    assert again.run.usage.cost == 0
    assert again.metrics == first.metrics


def test_cache_is_off_by_default(adding: str, serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = serve(right_sum)
    for _ in range(2):
        proctor.evaluate(adding, "openai/m", base_url=server.url)
    assert len(server.requests) == 20
    assert not (tmp_path / "cache").exists()


def test_errors_are_not_cached(
    adding: str, serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failing_run: FailingRun
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = serve(lambda body, number: error(400) if number == 0 else right_sum(body, number))
    options: dict[str, Any] = {"base_url": server.url, "cache": True, "limit": 1}
    failing_run(adding, "openai/m", **options)
    assert proctor.evaluate(adding, "openai/m", **options).run.n == 1
    db = sqlite3.connect(tmp_path / "cache" / "proctor" / "responses.db")
    assert db.execute("SELECT count(*) FROM responses").fetchone() == (1,)
    db.close()
