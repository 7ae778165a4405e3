"""Budgets: a run stops before it exceeds a limit, keeps requests in flight, and resumes with more."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import proctor
from conftest import Command, Serve, right_sum
from proctor.core.budget import Budget
from proctor.core.config import build_config
from proctor.core.errors import BudgetExhaustedError, TransientModelError, UsageError
from proctor.core.evaluation import resume
from proctor.core.types import Usage
from proctor.models.base import read_completion, read_response
from proctor.store import open_store

PRICES = {"price_input": 1_000.0, "price_output": 10_000.0}  # an answer of 10 and 2 tokens costs 0.01 + 0.02
ANSWER = 0.03


def test_cost_limit_stops_the_run_and_a_higher_one_resumes_it(adding: str, serve: Serve) -> None:
    server = serve(right_sum)
    options: dict[str, Any] = PRICES | {"base_url": server.url, "max_tokens": 2, "limit": 30}
    report = proctor.evaluate(adding, "openai/m", max_cost=0.5, **options)
    run = report.run
    assert run.status == "interrupted"
    assert run.reason.startswith(f"cost limit: {run.n * ANSWER:.4f} of 0.5 used")
    assert f"proctor resume {run.id}" in run.reason
    assert f"NOT COMPLETE: interrupted ({run.reason})" in str(report)
    assert run.errors == 0
    assert run.n == len(server.requests) == 16, "as many as fit, and not one more"
    assert run.usage.cost == pytest.approx(16 * ANSWER)
    assert report.to_dict()["budget"] == {"cost": {"used": pytest.approx(16 * ANSWER), "limit": 0.5}}
    again = resume(run.id, {}).run
    assert (again.status, again.n, len(server.requests)) == ("interrupted", 16, 16), "what was used counts"
    more = resume(run.id, {"max_cost": 0.6}).run
    assert (more.status, more.n) == ("interrupted", 20)
    done = resume(run.id, {"max_cost": 100}).run
    assert (done.status, done.n, done.reason) == ("done", 30, "")
    assert len(server.requests) == 30


def test_token_limit_counts_earlier_sessions(adding: str, serve: Serve) -> None:
    server = serve(right_sum)
    options: dict[str, Any] = {"base_url": server.url, "max_tokens": 2, "limit": 20}
    run = proctor.evaluate(adding, "openai/m", max_tokens_total=100, **options).run
    assert (run.status, run.n) == ("interrupted", 8)
    assert run.reason.startswith("token limit: 96 of 100 used, and the next request might exceed it")
    assert resume(run.id, {"max_tokens_total": 10_000}).run.status == "done"


def test_short_answers_return_their_reservation(adding: str, serve: Serve) -> None:
    """The budget holds one maximal answer; short answers are requested one after the other."""
    server = serve(right_sum)
    report = proctor.evaluate(adding, "openai/m", base_url=server.url, max_tokens=1_000, max_tokens_total=1_200)
    assert (report.run.status, report.run.n) == ("done", 10)
    assert server.most_in_flight == 1


def test_paid_completions_are_kept(adding: str, serve: Serve) -> None:
    server = serve(right_sum)
    options: dict[str, Any] = {"base_url": server.url, "max_tokens": 2, "limit": 1, "samples": 20, "temperature": 1}
    run = proctor.evaluate(adding, "openai/m", max_tokens_total=100, **options).run
    assert (run.status, run.n) == ("interrupted", 0)
    (record,) = open_store().records(run)
    assert len(record.outputs) == 8
    assert resume(run.id, {"max_tokens_total": 1_000}).run.n == 1
    assert len(server.requests) == 20


def test_estimate_learns_from_longer_prompts(adding: str, serve: Serve) -> None:
    """The server counts more tokens than the estimate; the first answer corrects it."""
    from aiohttp import web

    def reply(body: dict[str, Any], number: int) -> Any:
        choice = {"message": {"content": right_sum(body, number)}}
        return web.json_response({"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 1}})

    server = serve(reply)
    options: dict[str, Any] = {"base_url": server.url, "max_tokens": 1, "limit": 30, "concurrency": 1}
    run = proctor.evaluate(adding, "openai/m", max_tokens_total=1_000, **options).run
    assert run.n == 9
    assert run.usage.input_tokens + run.usage.output_tokens <= 1_000


def test_cached_outputs_are_free(adding: str, serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    server = serve(right_sum)
    options: dict[str, Any] = {"base_url": server.url, "cache": True, "max_tokens": 2}
    proctor.evaluate(adding, "openai/m", **options)
    assert proctor.evaluate(adding, "openai/m", max_tokens_total=20, **options).run.status == "done"


def test_token_limit_needs_a_server_that_reports_usage(adding: str, serve: Serve) -> None:
    from aiohttp import web

    server = serve(lambda body, number: web.json_response({"choices": [{"message": {"content": "x"}}]}))
    with pytest.raises(UsageError, match="does not report how many tokens it used"):
        proctor.evaluate(adding, "openai/m", base_url=server.url, max_tokens_total=10_000)
    assert proctor.evaluate(adding, "openai/m", base_url=server.url, time_limit=600).run.status == "done"


def test_answer_without_usage_counts_as_its_maximum(adding: str, serve: Serve) -> None:
    from aiohttp import web

    def reply(body: dict[str, Any], number: int) -> Any:
        choice = {"message": {"content": right_sum(body, number)}}
        usage = {"prompt_tokens": 10, "completion_tokens": 2} if number != 3 else {}
        return web.json_response({"choices": [choice], "usage": usage})

    server = serve(reply)
    report = proctor.evaluate(
        adding, "openai/m", base_url=server.url, max_tokens_total=10_000, max_tokens=50, concurrency=1
    )
    assert (report.run.status, report.run.n) == ("done", 10)
    assert report.run.usage.output_tokens == 2 * 9, "nothing is made up in the records"
    used = report.to_dict()["budget"]["tokens"]["used"]
    assert 9 * 12 + 50 < used < 9 * 12 + 50 + 100
    assert resume(report.run.id, {}).to_dict()["budget"]["tokens"]["used"] == used, "and nothing is forgotten"


@pytest.mark.parametrize(
    ("stated", "counted"), [(-5, 0), (10**30, 2**31 - 1), (1e400, None), ("many", None), (None, 0)]
)
def test_reported_token_counts_are_bounded(stated: object, counted: int | None) -> None:
    reply = {"choices": [{"text": "x"}], "usage": {"prompt_tokens": stated, "completion_tokens": 1}}
    response = {"output": [], "usage": {"input_tokens": stated, "output_tokens": 1}}
    for read, told in ((read_completion, reply), (read_response, response)):
        if counted is None:
            with pytest.raises(TransientModelError):
                read(told, 0.0)
        else:
            assert read(told, 0.0).usage.input_tokens == counted


class Clock:
    """A clock that only tests advance."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("proctor.core.budget.monotonic", lambda: self.now)


def test_time_limit_keeps_requests_in_flight(adding: str, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    async def reply(body: dict[str, Any], number: int) -> str:
        if number >= 4:  # the time is up when eight are in flight
            if server.in_flight == 8:
                clock.now = 1_001
                server.gate.set()
            await server.gate.wait()
        return right_sum(body, number)

    server = serve(reply)
    options: dict[str, Any] = {"base_url": server.url, "limit": 500, "concurrency": 8}
    report = proctor.evaluate(adding, "openai/m", time_limit=1_000, **options)
    run = report.run
    assert run.status == "interrupted"
    assert run.reason.startswith("time limit: 1001 s of 1000 s used")
    assert run.n == len(server.requests) == 12, "each that began was answered and scored"
    assert run.errors == 0
    assert report.to_dict()["budget"]["seconds"]["used"] == 1_001
    open_store().save(msgspec.structs.replace(run, seconds=1_001.0))  # by the stopped clock
    assert resume(run.id, {}).run.n == run.n, "the seconds of earlier sittings count"


def test_time_limit_cancels_requests_after_the_grace_period(
    adding: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)

    class EndsAtOnce(Budget):
        """A budget whose grace period ends on request."""

        def deadline(self) -> asyncio.Timeout:
            assert super().deadline().when() is not None
            self.loop, self.timeout = asyncio.get_running_loop(), asyncio.timeout(None)
            return self.timeout

        def end(self) -> None:
            clock.now = 1_001
            self.loop.call_soon_threadsafe(self.timeout.reschedule, 0)

    budget = EndsAtOnce(seconds=1_000)

    async def reply(body: dict[str, Any], number: int) -> str:
        if number == 3:
            budget.end()
            await server.gate.wait()
        return right_sum(body, number)

    server = serve(reply)
    run = proctor.evaluate(adding, "openai/m", base_url=server.url, concurrency=1, budget=budget).run
    assert (run.status, run.n, run.errors) == ("interrupted", 3, 0)
    assert len(list(open_store().records(run))) == 3
    assert resume(run.id, {"time_limit": "10m"}).run.status == "done"


def test_time_limit_stops_agents_and_scripted_models(adding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr("proctor.core.budget.monotonic", lambda: next(ticks))
    run = proctor.evaluate(adding, "scripted/oracle", limit=100_000, time_limit=200).run
    assert run.status == "interrupted"
    assert 0 < run.n < 1_000


def test_all_tasks_of_a_command_share_the_budget(adding: str, serve: Serve, proctor: Command) -> None:
    server = serve(right_sum)
    other = adding.replace("adding.py", "other.py")
    with open(adding.partition(":")[0]) as source, open(other.partition(":")[0], "w") as copy:
        copy.write(source.read())
    flags = ["--model", "openai/m", "--base-url", server.url, "--max-tokens", "2", "--max-tokens-total", "180"]
    done = proctor("run", adding, other, adding, *flags, "--json")
    assert done.returncode == 3
    first, second = json.loads(done.stdout)["runs"]
    assert (first["status"], first["n"]) == ("done", 10)
    assert (second["status"], second["n"]) == ("interrupted", 5)
    assert second["budget"]["tokens"] == {"used": 180, "limit": 180}
    refused = "token limit: 180 of 180 used, and the next request might exceed it, by using up to 12 (see --max-tokens)"
    assert f"not started ({refused}): {adding}." in done.stderr
    resumed = proctor("resume", second["id"], "--max-tokens-total", "1000", "--json")
    assert resumed.returncode == 0
    assert json.loads(resumed.stdout)["runs"][0]["n"] == 10


def test_sweep_shares_its_budget(serve: Serve) -> None:
    server = serve(lambda body, number: "Yes")
    options: dict[str, Any] = {"base_url": server.url, "limit": 40, "max_tokens": 2, "max_tokens_total": 1_100}
    curve = proctor.sweep("shapes/existence", "openai/m", "shapes", [3, 4, 5, 6, 7], **options)
    assert 1 <= len(curve.reports) < 5
    assert sum(r.run.usage.input_tokens + r.run.usage.output_tokens for r in curve.reports) <= 1_100


def test_budget_below_one_completion_names_its_maximum(adding: str, serve: Serve) -> None:
    """By default a chat model may use more tokens for one completion than this budget has."""
    server = serve(right_sum)
    run = proctor.evaluate(adding, "openai/m", base_url=server.url, max_tokens_total=5_000).run
    assert (run.status, run.n, len(server.requests)) == ("interrupted", 0, 0)
    assert (
        "0 of 5,000 used, and the next request might exceed it, by using up to 8,228 (see --max-tokens)" in run.reason
    )
    paid: dict[str, Any] = {"price_output": 1_000, "max_cost": 0.5}
    run = proctor.evaluate(adding, "openai/m", base_url=server.url, **paid).run
    assert "by costing up to 8.1920 (see --max-tokens)" in run.reason


def test_unused_reservation_is_returned(adding: str, serve: Serve) -> None:
    """Ten completions that may use 8,192 tokens each fit a budget of two, since each uses two."""
    server = serve(right_sum)
    run = proctor.evaluate(adding, "openai/m", base_url=server.url, max_tokens_total=17_000).run
    assert (run.status, run.n) == ("done", 10)
    assert server.most_in_flight <= 2


def test_run_with_a_price_prints_an_estimate(adding: str, serve: Serve, proctor: Command) -> None:
    server = serve(right_sum)
    flags = ["--model", "openai/m", "--base-url", server.url, "--price-input", "1000", "--price-output", "10000"]
    done = proctor("run", adding, *flags, "--max-tokens", "5", "--samples", "2", "--temperature", "1")
    # Each prompt has 4 characters, and a template around it: 9 tokens.
    estimate = (
        "estimate: 10 samples with about 180 tokens of prompts and at most 100 of completions (--max-tokens 5 each): "
        "at most about 1.1800"
    )
    assert done.stderr.splitlines()[0] == estimate
    assert "cost 0.6000 of about 0.6000" in done.stderr.splitlines()[-1]
    short = proctor("run", adding, *flags, "--max-cost", "0.5", "--max-tokens", "5")
    limit = "at most about 0.5900, more than the limit of 0.5, at which the run stops"
    assert limit in short.stderr
    unknown = proctor("run", adding, *flags, "--until-ci", "0.2")
    assert "estimate: for every 1,000 samples with about" in unknown.stderr
    assert "estimate" not in proctor("run", adding, *flags, "--quiet").stderr
    assert "estimate" not in proctor("run", adding, *flags[:4]).stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_cost": 1}, "needs a price: give --price-input"),
        ({"max_cost": 0, "price_input": 1}, "max_cost: expected float > 0"),
        ({"max_tokens_total": 0}, "max_tokens_total: expected int >= 1"),
        ({"time_limit": "soon"}, "time_limit: expected seconds, or a time such as 90s, 30m or 2h, got 'soon'"),
        ({"time_limit": "-5m"}, "time_limit: expected float > 0"),
        ({"time_limit": "infh"}, "time_limit: expected a finite number"),
        ({"model": "", "agent": "a:B", "max_tokens_total": 5}, "an agent does not report its usage"),
    ],
)
def test_contradictory_budgets_are_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        build_config({"task": "t", "model": "m"} | options)
    assert said in str(caught.value)


@pytest.mark.parametrize(("given", "seconds"), [("90", 90), ("90s", 90), ("30m", 1800), ("1.5h", 5400), (7, 7)])
def test_time_limit_accepts_units(given: object, seconds: float) -> None:
    assert build_config({"task": "t", "model": "m", "time_limit": given}).time_limit == seconds


def test_request_waits_for_reservations_in_flight() -> None:
    async def scene() -> None:
        budget = Budget(tokens=100)
        begun: list[int] = []

        async def ask(number: int, used: int, most: int = 40) -> None:
            async with budget.reserve(lambda: Usage(0, most)):
                begun.append(number)
                await asyncio.sleep(0)
                budget.use(Usage(0, used))

        await asyncio.gather(ask(0, 40), ask(1, 10), ask(2, 10), ask(3, 10))
        assert begun == [0, 1, 2, 3], "70 used: the later ones had to wait for the earlier"
        assert not budget.exhausted
        with pytest.raises(BudgetExhaustedError, match="token limit: 70 of 100 used"):
            await ask(4, 1)
        with pytest.raises(BudgetExhaustedError):
            await ask(5, 1, most=1)  # an exhausted budget stays exhausted

    asyncio.run(scene())
