"""A run killed at any moment goes on to the same records as one that was never stopped."""

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
from proctor.core.errors import ChangedSampleError, HopelessRunError, StoreError, UsageError
from proctor.core.evaluation import resume
from proctor.store import open_store

LIMIT = 60


def start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "proctor", *arguments, "-q"], stdout=subprocess.DEVNULL)


def plain(records: Any) -> list[dict[str, Any]]:
    """Records without what no two runs have in common: the time they took."""
    rows = [msgspec.to_builtins(record) for record in records]
    for row in rows:
        del row["timing"]
        for output in row["outputs"]:
            del output["seconds"]
    return rows


def until(condition: Callable[[], object], process: subprocess.Popen[bytes]) -> None:
    """Looks again and again until it is so; the deadline is only the end of hope."""
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
def test_killed_while_the_model_answers(
    adding: str, stalling: Stalling, answered: int, monkeypatch: pytest.MonkeyPatch, each_store: str
) -> None:
    """The server answers some requests and then no more; what was answered is in the store when the kill comes."""
    server = stalling(answered)
    process = start("run", adding, "--model", "openai/m", "--base-url", server.url, "--limit", str(LIMIT))
    until(lambda: len(server.requests) > answered and stored() >= answered, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    server.open_gate()

    assert stored() == answered
    # Requests of the killed process may still be on their way; those of the resumed run are known by their key.
    monkeypatch.setenv("OPENAI_API_KEY", "resumed")
    report = resume("latest", {})
    asked = sum(headers.get("Authorization") == "Bearer resumed" for headers in server.headers)
    assert asked == LIMIT - answered, "only what was not finished is asked again"
    assert len(open_store().runs()) == 1

    whole = proctor.evaluate(adding, "openai/m", base_url=server.url, limit=LIMIT)
    assert plain(report.records()) == plain(whole.records())
    assert report.run.provenance["samples_sha256"] == whole.run.provenance["samples_sha256"]
    assert report.metrics == whole.metrics
    assert (report.run.status, report.run.n) == ("done", LIMIT)


@pytest.mark.parametrize("seen", [1_000, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 20_000))])
def test_killed_while_writing_at_full_speed(task_file: TaskFile, seen: int) -> None:
    """The exam has no end before the kill, however late that comes."""
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


def test_an_answer_that_was_stored_is_judged_without_asking_again(
    task_file: TaskFile, serve: Serve, each_store: str
) -> None:
    """Killed in the middle of judging: the outputs are there already."""
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
def test_stopped_by_hand(adding: str, stalling: Stalling, number: int, each_store: str) -> None:
    server = stalling(10)
    process = start("run", adding, "--model", "openai/m", "--base-url", server.url, "--limit", "30")
    until(lambda: len(server.requests) > 10 and stored() >= 10, process)
    process.send_signal(number)
    assert process.wait(300) == 1
    server.open_gate()
    run = open_store().run("latest")
    assert (run.status, run.n) == ("interrupted", 10)
    assert resume("latest", {}).run.n == 30


def test_failed_samples_are_tried_again(adding: str, serve: Serve, each_store: str) -> None:
    ill = threading.Event()
    ill.set()

    def reply(body: dict[str, Any], number: int) -> Any:
        from aiohttp import web

        if ill.is_set() and number >= 10:
            return web.json_response({"error": {"message": "context too long"}}, status=400)
        return right_sum(body, number)

    server = serve(reply)
    with pytest.raises(HopelessRunError):
        proctor.evaluate(adding, "openai/m", base_url=server.url, limit=30, max_errors=5, concurrency=1)
    ill.clear()
    report = resume("latest", {})
    assert (report.run.n, report.run.errors) == (30, 0)
    assert len(server.requests) in (15 + 20, 16 + 20), "one more may have been under way when the fifth failed"


def test_completions_that_were_stored_are_not_asked_for_again(adding: str, serve: Serve, each_store: str) -> None:
    """Of the seven completions of the only sample the fifth fails: the first four are kept."""
    ill = threading.Event()
    ill.set()

    def reply(body: dict[str, Any], number: int) -> Any:
        from aiohttp import web

        if ill.is_set() and number == 4:
            return web.json_response({"error": {"message": "no"}}, status=400)
        return right_sum(body, number)

    server = serve(reply)
    with pytest.raises(HopelessRunError):
        proctor.evaluate(adding, "openai/m", base_url=server.url, limit=1, samples=7, concurrency=1, temperature=1.0)
    (half,) = open_store(mode="read").records(open_store(mode="read").run("latest"))
    assert len(half.outputs) == 4
    before = len(server.requests)
    ill.clear()
    report = resume("latest", {})
    assert (report.run.n, report.run.errors) == (1, 0)
    whole = _requests_of_a_whole_run(adding, serve)
    # A request whose line breaks on a busy machine is sent again.
    asked, wanted = (
        list(dict.fromkeys(request["seed"] for request in part)) for part in (server.requests[before:], whole)
    )
    assert asked == wanted[-3:], "only the missing ones, with the seeds that they would have had"


def _requests_of_a_whole_run(adding: str, serve: Serve) -> list[dict[str, Any]]:
    server = serve(right_sum)
    options: dict[str, Any] = {"limit": 1, "samples": 7, "concurrency": 1, "temperature": 1.0}
    proctor.evaluate(adding, "openai/m", base_url=server.url, **options)
    return server.requests


def test_a_changed_configuration_is_refused_by_name(adding: str, each_store: str) -> None:
    run_id = proctor.evaluate(adding, "scripted/oracle", limit=5).run.id
    with pytest.raises(UsageError) as caught:
        resume(run_id, {"temperature": 0.5, "seed": 3, "concurrency": 2})
    assert "seed was 0, now 3; temperature was 0.0, now 0.5" in str(caught.value)
    assert "concurrency was" not in str(caught.value)
    assert resume(run_id, {"concurrency": 2, "timeout": 5}).run.n == 5


def test_changed_settings_are_refused() -> None:
    run_id = proctor.evaluate("shapes/existence", "scripted/oracle", limit=2).run.id
    with pytest.raises(UsageError, match="settings was"):
        resume(run_id, {"settings": {"shapes": 4}})


def test_a_changed_task_is_refused(task_file: TaskFile, proctor: Command) -> None:
    source = "from adding import *\nclass Mine(Adding):\n    {}\n"
    path = task_file(source.format("pass"))
    assert proctor("run", f"{path}:Mine", "--model", "scripted/oracle", "-q").returncode == 0
    path.write_text(source.format("version = '2'"))
    with pytest.raises(UsageError, match=r"begun with version 1 .* now it is 2"):
        resume("latest", {})
    path.write_text(source.format("def score_text(self, sample, text): return Score(0)"))
    with pytest.raises(UsageError, match=r"the file of .* has changed since"):
        resume("latest", {})
    assert open_store().run("latest").status == "done", "a refusal changes nothing"


def test_changed_data_are_refused(task_file: TaskFile, tmp_path: Path, each_store: str) -> None:
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
    with pytest.raises(ChangedSampleError, match="Sample row-1 is not what it was"):
        resume("latest", {})
    assert open_store().run("latest").status == "done", "a refusal changes nothing"


def test_an_option_that_is_newer_than_the_run(adding: str, each_store: str) -> None:
    """A run stored before an option existed had its default."""
    run = proctor.evaluate(adding, "scripted/oracle", limit=5).run
    store = open_store()
    store.save(msgspec.structs.replace(run, config={k: v for k, v in run.config.items() if k != "api"}))
    assert resume(run.id, {}).run.n == 5
    with pytest.raises(UsageError, match="api was 'chat', now 'completions'"):
        resume(run.id, {"api": "completions"})


def test_a_server_that_cannot_describe_its_model_for_once(adding: str, serve: Serve) -> None:
    server = serve(right_sum)
    run = proctor.evaluate(adding, "openai/m", base_url=server.url).run
    store = open_store()
    for described, refused in (("", False), ('{"root":"weights-2"}', True)):
        candidate = run.provenance["candidate"] | {"described": described}
        store.save(msgspec.structs.replace(run, provenance=run.provenance | {"candidate": candidate}))
        if refused:
            with pytest.raises(UsageError, match=r"not the same any more \(described\)"):
                resume(run.id, {})
        else:
            assert resume(run.id, {}).run.n == 10


def test_a_failed_judgement_costs_no_new_answer(task_file: TaskFile, serve: Serve) -> None:
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
    with pytest.raises(HopelessRunError, match="judge is ill"):
        proctor.evaluate(f"{path}:Ill", "openai/m", base_url=server.url, limit=5)
    open("well", "w").close()
    report = resume("latest", {})
    assert (report.run.n, report.run.errors, len(server.requests)) == (5, 0, 5)


def test_resume_inside_a_running_loop(adding: str) -> None:
    proctor.evaluate(adding, "scripted/oracle")

    async def notebook() -> proctor.Report:
        return resume("latest", {})

    assert asyncio.run(notebook()).run.n == 10


def test_a_changed_model_file_is_refused(adding: str, tmp_path: Path) -> None:
    rows = [{"id": f"add-{i}", "outputs": [{"text": str(2 * i)}]} for i in range(10)]
    replay = tmp_path / "replay.jsonl"
    replay.write_text("\n".join(map(json.dumps, rows)))
    run_id = proctor.evaluate(adding, f"scripted/replay:{replay}").run.id
    replay.write_text("\n".join(map(json.dumps, rows[:5])))
    with pytest.raises(UsageError, match=r"candidate is not the same any more \(sha256\)"):
        resume(run_id, {})


def test_a_done_run_has_nothing_left_to_do(adding: str, serve: Serve, each_store: str) -> None:
    server = serve(right_sum)
    first = proctor.evaluate(adding, "openai/m", base_url=server.url)
    again = resume(first.run.id, {})
    assert len(server.requests) == 10
    assert again.metrics == first.metrics


def test_a_run_in_progress_cannot_be_resumed_beside_it(adding: str, stalling: Stalling, each_store: str) -> None:
    server = stalling(0)
    process = start("run", adding, "--model", "openai/m", "--base-url", server.url)
    until(lambda: server.requests, process)
    with pytest.raises(StoreError, match="in use by another process"):
        resume("latest", {})
    server.open_gate()
    assert process.wait(300) == 0
    assert open_store().status(msgspec.structs.replace(open_store().run("latest"), status="running")) == "killed"
