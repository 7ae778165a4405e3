"""A run that is killed and resumed has the same records as an uninterrupted run."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

import proctor
from conftest import Command, Serve, Stalling, TaskFile, right_sum
from helpers.records import strip_times
from proctor.core.errors import ChangedSampleError, StoreError, TooManyErrorsError, UsageError
from proctor.core.evaluation import resume
from proctor.store import open_store

LIMIT = 60


def start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "proctor", *arguments, "-q"], stdout=subprocess.DEVNULL)


def plain(records: Any) -> list[dict[str, Any]]:
    """Records without their times, which differ between runs."""
    rows = [msgspec.to_builtins(record) for record in records]
    for row in rows:
        del row["timing"]
        for output in row["outputs"]:
            del output["seconds"]
    return rows


def until(condition: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    """Polls a condition; fails after a long timeout."""
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        assert process.poll() is None, "the run ended before it was killed"
        time.sleep(0.02)


def stored() -> int:
    try:
        with closing(open_store(mode="read")) as store:
            runs = store.runs()
            return len(store.scored(runs[0])) if runs else 0
    except StoreError:
        return 0


@pytest.mark.parametrize(
    "answered", [17, *(pytest.param(number, marks=pytest.mark.slow) for number in (0, 1, 44, LIMIT - 1))]
)
def test_run_killed_during_requests_resumes(
    adding: str, stalling: Stalling, answered: int, monkeypatch: pytest.MonkeyPatch, each_store: str
) -> None:
    """The server stops answering; the answers are in the store when the run is killed."""
    server = stalling(answered)
    process = start("run", adding, "--model", "openai/m", "--base-url", server.url, "--limit", str(LIMIT))
    until(lambda: len(server.requests) > answered and stored() >= answered, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    server.open_gate()

    assert stored() == answered
    # Requests of the killed process may still arrive; the key identifies those of the resumed run.
    monkeypatch.setenv("OPENAI_API_KEY", "resumed")
    report = resume("latest", {})
    asked = sum(headers.get("Authorization") == "Bearer resumed" for headers in server.headers)
    assert asked == LIMIT - answered, "only what was not finished is asked again"
    assert len(open_store().runs()) == 1

    whole = proctor.evaluate(adding, "openai/m", base_url=server.url, limit=LIMIT)
    assert strip_times(report.records()) == strip_times(whole.records())
    assert report.run.provenance["samples_sha256"] == whole.run.provenance["samples_sha256"]
    assert report.metrics == whole.metrics
    assert (report.run.status, report.run.n) == ("done", LIMIT)


@pytest.mark.parametrize("seen", [1_000, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 20_000))])
def test_run_killed_during_writes_resumes(task_file: TaskFile, seen: int) -> None:
    """The task has more samples than can finish before the kill."""
    path = task_file(
        """
        from pathlib import Path
        from adding import *

        class Endless(Adding):
            def count(self, config):
                end = Path("end")
                return int(end.read_text()) if end.exists() else 10**9
        """
    )
    process = start("run", f"{path}:Endless", "--model", "scripted/oracle")
    until(lambda: stored() >= seen, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = stored()
    assert kept >= seen
    total = kept + 1_000
    Path("end").write_text(str(total))
    report = resume("latest", {})
    assert (report.run.status, report.run.n) == ("done", total)
    assert [record.sample.index for record in report.records()] == list(range(total))


def test_stored_output_is_judged_without_a_new_request(task_file: TaskFile, serve: Serve, each_store: str) -> None:
    """Killed while judging: the outputs are stored."""
    path = task_file(
        """
        import asyncio, os
        from adding import *

        class Slow(Adding):
            async def judge(self, sample, outputs):
                if not os.path.exists("judge-is-in"):
                    await asyncio.Event().wait()
                return await super().judge(sample, outputs)
        """
    )
    server = serve(right_sum)
    process = start("run", f"{path}:Slow", "--model", "openai/m", "--base-url", server.url, "--limit", "5")

    def answered() -> int:
        try:
            with closing(open_store(mode="read")) as store:
                return len(store.answered(store.run("latest"))) if store.runs() else 0
        except StoreError:
            return 0

    until(lambda: answered() == 5, process)
    process.kill()
    process.wait()
    open("judge-is-in", "w").close()
    report = resume("latest", {})
    assert len(server.requests) == 5
    assert report.metrics["accuracy"].value == 1
    assert report.run.usage.input_tokens == 50


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_interrupted_run_resumes(adding: str, stalling: Stalling, number: int, each_store: str) -> None:
    server = stalling(10)
    process = start("run", adding, "--model", "openai/m", "--base-url", server.url, "--limit", "30")
    until(lambda: len(server.requests) > 10 and stored() >= 10, process)
    process.send_signal(number)
    assert process.wait(300) == 1
    server.open_gate()
    run = open_store().run("latest")
    assert (run.status, run.n) == ("interrupted", 10)
    assert resume("latest", {}).run.n == 30


def test_resume_retries_failed_samples(adding: str, serve: Serve, each_store: str) -> None:
    ill = threading.Event()
    ill.set()

    def reply(body: dict[str, Any], number: int) -> Any:
        from aiohttp import web

        if ill.is_set() and number >= 10:
            return web.json_response({"error": {"message": "context too long"}}, status=400)
        return right_sum(body, number)

    server = serve(reply)
    with pytest.raises(TooManyErrorsError):
        proctor.evaluate(adding, "openai/m", base_url=server.url, limit=30, max_errors=5, concurrency=1)
    ill.clear()
    report = resume("latest", {})
    assert (report.run.n, report.run.errors) == (30, 0)
    assert len(server.requests) in (15 + 20, 16 + 20), "one more may have been under way when the fifth failed"


def test_resume_requests_only_missing_completions(adding: str, serve: Serve, each_store: str) -> None:
    """The fifth of seven completions fails: the first four are kept."""
    ill = threading.Event()
    ill.set()

    def reply(body: dict[str, Any], number: int) -> Any:
        from aiohttp import web

        if ill.is_set() and number == 4:
            return web.json_response({"error": {"message": "no"}}, status=400)
        return right_sum(body, number)

    server = serve(reply)
    with pytest.raises(TooManyErrorsError):
        proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1, samples=7, concurrency=1, temperature=1.0)
    (half,) = open_store(mode="read").records(open_store(mode="read").run("latest"))
    assert len(half.outputs) == 4
    before = len(server.requests)
    ill.clear()
    report = resume("latest", {})
    assert (report.run.n, report.run.errors) == (1, 0)
    whole = _requests_of_a_whole_run(adding, serve)
    # A request is retried if its connection breaks on a busy machine.
    asked, wanted = (
        list(dict.fromkeys(request["seed"] for request in part)) for part in (server.requests[before:], whole)
    )
    assert asked == wanted[-3:], "only the missing ones, with the seeds that they would have had"


def _requests_of_a_whole_run(adding: str, serve: Serve) -> list[dict[str, Any]]:
    server = serve(right_sum)
    options: dict[str, Any] = {"limit": 1, "samples": 7, "concurrency": 1, "temperature": 1.0}
    proctor.evaluate(adding, "openai/m", base_url=server.url, **options)
    return server.requests


def test_resume_refuses_changed_options_by_name(adding: str, each_store: str) -> None:
    run_id = proctor.evaluate(adding, "scripted/oracle", limit=5).run.id
    with pytest.raises(UsageError) as caught:
        resume(run_id, {"temperature": 0.5, "seed": 3, "concurrency": 2})
    assert "seed 0 → 3, temperature 0.0 → 0.5" in str(caught.value)
    assert "concurrency was" not in str(caught.value)
    assert resume(run_id, {"concurrency": 2, "timeout": 5}).run.n == 5


def test_resume_refuses_changed_settings() -> None:
    run_id = proctor.evaluate("shapes/existence", "scripted/oracle", limit=2).run.id
    with pytest.raises(UsageError, match=r"configuration changed \(settings"):
        resume(run_id, {"settings": {"shapes": 4}})


def test_resume_refuses_a_changed_task(task_file: TaskFile, proctor: Command) -> None:
    source = "from adding import *\nclass Mine(Adding):\n    {}\n"
    path = task_file(source.format("pass"))
    assert proctor("run", f"{path}:Mine", "--model", "scripted/oracle", "-q").returncode == 0
    path.write_text(source.format("version = '2'"))
    with pytest.raises(UsageError, match=r"used version 1 .* now version 2"):
        resume("latest", {})
    path.write_text(source.format("def score_text(self, sample, text): return Score(0)"))
    with pytest.raises(UsageError, match=r"the file of .* changed"):
        resume("latest", {})
    assert open_store().run("latest").status == "done", "a refusal changes nothing"


def test_resume_refuses_changed_data(task_file: TaskFile, tmp_path: Path, each_store: str) -> None:
    path = task_file(
        """
        from pathlib import Path
        from adding import *

        class FromFile(Adding):
            def samples(self, config):
                for i, line in enumerate(Path("rows.txt").read_text().splitlines()):
                    yield Sample(f"row-{i}", i, line, "x")
        """
    )
    (tmp_path / "rows.txt").write_text("first\nsecond\n")
    proctor.evaluate(f"{path}:FromFile", "scripted/oracle")
    (tmp_path / "rows.txt").write_text("first\nother\n")
    with pytest.raises(ChangedSampleError, match="Sample row-1 differs"):
        resume("latest", {})
    assert open_store().run("latest").status == "done", "a refusal changes nothing"


def test_resume_accepts_options_newer_than_the_run(adding: str, each_store: str) -> None:
    """A run that predates an option has its default."""
    run = proctor.evaluate(adding, "scripted/oracle", limit=5).run
    store = open_store()
    store.save(msgspec.structs.replace(run, config={k: v for k, v in run.config.items() if k != "api"}))
    assert resume(run.id, {}).run.n == 5
    with pytest.raises(UsageError, match="api 'chat' → 'completions'"):
        resume(run.id, {"api": "completions"})


def test_resume_accepts_a_server_without_model_description(adding: str, serve: Serve) -> None:
    server = serve(right_sum)
    run = proctor.evaluate(adding, "openai/m", base_url=server.url).run
    store = open_store()
    for described, refused in (("", False), ('{"root":"weights-2"}', True)):
        candidate = run.provenance["candidate"] | {"described": described}
        store.save(msgspec.structs.replace(run, provenance=run.provenance | {"candidate": candidate}))
        if refused:
            with pytest.raises(UsageError, match=r"the candidate changed \(described\)"):
                resume(run.id, {})
        else:
            assert resume(run.id, {}).run.n == 10


def test_resume_judges_stored_outputs_after_a_scoring_error(task_file: TaskFile, serve: Serve) -> None:
    path = task_file(
        """
        import os
        from adding import *

        class Ill(Adding):
            def score_text(self, sample, text):
                if not os.path.exists("well"):
                    raise RuntimeError("judge is ill")
                return super().score_text(sample, text)
        """
    )
    server = serve(right_sum)
    with pytest.raises(TooManyErrorsError, match="judge is ill"):
        proctor.evaluate(f"{path}:Ill", "openai/m", base_url=server.url, limit=5)
    open("well", "w").close()
    report = resume("latest", {})
    assert (report.run.n, report.run.errors, len(server.requests)) == (5, 0, 5)


def test_resume_inside_a_running_loop(adding: str) -> None:
    proctor.evaluate(adding, "scripted/oracle")

    async def notebook() -> proctor.Report:
        return resume("latest", {})

    assert asyncio.run(notebook()).run.n == 10


def test_resume_refuses_a_changed_model_file(adding: str, tmp_path: Path) -> None:
    rows = [{"id": f"add-{i}", "outputs": [{"text": str(2 * i)}]} for i in range(10)]
    replay = tmp_path / "replay.jsonl"
    replay.write_text("\n".join(map(json.dumps, rows)))
    run_id = proctor.evaluate(adding, f"scripted/replay:{replay}").run.id
    replay.write_text("\n".join(map(json.dumps, rows[:5])))
    with pytest.raises(UsageError, match=r"the candidate changed \(sha256\)"):
        resume(run_id, {})


def test_resume_of_a_complete_run_makes_no_request(adding: str, serve: Serve, each_store: str) -> None:
    server = serve(right_sum)
    first = proctor.evaluate(adding, "openai/m", base_url=server.url)
    again = resume(first.run.id, {})
    assert len(server.requests) == 10
    assert again.metrics == first.metrics


def test_running_run_cannot_be_resumed(adding: str, stalling: Stalling, each_store: str) -> None:
    server = stalling(0)
    process = start("run", adding, "--model", "openai/m", "--base-url", server.url)
    until(lambda: server.requests, process)
    with pytest.raises(StoreError, match="in use by another process"):
        resume("latest", {})
    server.open_gate()
    assert process.wait(300) == 0
    assert open_store().status(msgspec.structs.replace(open_store().run("latest"), status="running")) == "killed"
