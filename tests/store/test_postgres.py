"""The team store, on a real PostgreSQL server: several machines at once, lost connections, passwords, files."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from conftest import Command, Stalling
from helpers.postgres_server import ESCAPED_PASSWORD, PASSWORD, PostgresServer
from proctor import evaluate
from proctor.core.errors import StoreError, StoreWriteError
from proctor.core.evaluation import resume
from proctor.core.types import Record, Run, Sample, Score
from proctor.store import open_store, store_location
from proctor.store.schema import SCHEMA_VERSION
from proctor.store.types import RecordFilter
from proctor.store.writer import Writer

pytestmark = pytest.mark.slow  # `make test` installs no server

RUN = Run("20260101-000000-aaaaaa", "t", "1", "scripted/oracle", {"seed": 0}, {}, 0.0)


def database_of(url: str) -> str:
    return url.partition("@/")[2].partition("?")[0]


def end_sessions(server: PostgresServer, url: str) -> None:
    """As a broken line does."""
    server.execute(
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity "
        f"WHERE datname = '{database_of(url)}' AND pid != pg_backend_pid()"
    )


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "proctor", *arguments, "-q"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


def until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, "the run ended"
        time.sleep(0.01)


def stored() -> int:
    """How many samples of the latest run have their score."""
    try:
        store = open_store(mode="read")
    except StoreError:
        return 0
    with closing(store):
        runs = store.runs()
        return len(store.scored(runs[0])) if runs else 0


def a_record(index: int) -> Record:
    return Record(Sample(f"s{index}", index, "q"), 0, (), Score(1.0))


# -- several at once --------------------------------------------------------------------------


def test_three_processes_with_two_runs_each(adding: str, postgres: str) -> None:
    """At the same time, on a database in which nothing is yet."""
    code = f"import proctor\nfor _ in range(2): proctor.evaluate({adding!r}, 'scripted/oracle', limit=1000)"
    processes = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(3)]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 3, errors
    store = open_store(mode="read")
    assert [(run.status, run.n) for run in store.runs()] == [("done", 1000)] * 6
    assert all(len(store.scored(run)) == store.count(run, RecordFilter(text="add-")) == 1000 for run in store.runs())


def test_concurrent_processes_migrate_postgres_once(postgres: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both see the old version; the one that waits for the other finds nothing left to do."""
    from proctor.store import schema

    monkeypatch.setattr(schema, "SCHEMA_VERSION", 1)
    monkeypatch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
    monkeypatch.setattr("proctor.store.store.SCHEMA_VERSION", 1)
    old = open_store()
    body = msgspec.json.encode(RUN)
    old._database.execute("INSERT INTO runs VALUES (?, 't', 'c', 'done', 0, ?)", (RUN.id, body))
    row = (RUN.id, b"d", msgspec.json.encode(a_record(0)))
    old._database.execute("INSERT INTO records VALUES (?, 0, 's0', 0, 'scored', 'correct', 1, ?, ?)", row)
    monkeypatch.undo()
    monkeypatch.setenv("PROCTOR_STORE", postgres)
    with old._database.migration():  # the queue forms behind this one
        command = [sys.executable, "-m", "proctor", "list", "runs"]
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while old._database.execute(waiting) != [(2,)]:
            assert all(process.poll() is None for process in processes)
    said = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    store = open_store(mode="read")
    assert store._database.version() == SCHEMA_VERSION
    assert store.count(RUN, RecordFilter(text="s0")) == 1


def test_killed_process_releases_run_lock(adding: str, postgres: str, stalling: Stalling) -> None:
    server = stalling(3)
    process = start("run", adding, "--model", "openai/m", "--base-url", server.url)
    until(lambda: len(server.requests) > 3 and stored() == 3, process)
    store = open_store(mode="read")
    run = store.run("latest")
    assert store.status(run) == "running"
    with pytest.raises(StoreError, match="in use by another process"):
        resume(run.id, {})
    kill(process)
    server.open_gate()
    assert resume(run.id, {}).run.n == 10


def test_run_resumes_after_kill_during_writes(adding: str, postgres: str) -> None:
    process = start("run", adding, "--model", "scripted/oracle", "--limit", "8000")
    until(lambda: stored() >= 500, process)
    kill(process)
    report = resume("latest", {})
    assert (report.run.status, report.run.n) == ("done", 8000)
    assert [record.sample.index for record in report.records()] == list(range(8000))


def test_lock_holder_is_not_considered_killed(postgres: str) -> None:
    store = open_store()
    with store.lock_run(RUN.id):
        assert store.status(RUN) == "running"
    assert store.status(RUN) == "killed"


# -- lost connections -------------------------------------------------------------------------


@pytest.fixture
def own_server(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresServer]:
    """One that may be killed."""
    server = PostgresServer(postgres_server.programs)
    monkeypatch.setenv("PROCTOR_STORE", server.create_database())
    yield server
    server.stop()


def test_run_fails_when_server_is_killed(adding: str, own_server: PostgresServer, stalling: Stalling) -> None:
    models = stalling(4)
    process = start("run", adding, "-m", "openai/m", "--base-url", models.url)
    until(lambda: len(models.requests) > 4 and stored() == 4, process)
    own_server.kill()
    models.open_gate()
    _, said = process.communicate(timeout=300)
    assert process.returncode == 1
    assert len(said.splitlines()) == 1, said
    assert said.startswith("proctor: Writing to postgresql://team@")
    assert "Stored records are kept. After fixing the cause: proctor resume 20" in said
    assert PASSWORD not in said
    assert ESCAPED_PASSWORD not in said
    with pytest.raises(StoreError, match=r"Cannot use the store postgresql://team@/runs1\?host=.*connection"):
        open_store(mode="read")
    own_server.start()
    store = open_store(mode="read")
    assert store.status(store.run("latest")) == "killed"
    before = len(models.requests)
    report = resume("latest", {})
    assert (report.run.status, report.run.n) == ("done", 10)
    assert len(models.requests) == before + 6


def test_lost_connection_is_restored(postgres: str, postgres_server: PostgresServer) -> None:
    """The writer connects again, and has the run to itself again."""
    store = open_store()
    store.save(RUN)
    with store.lock_run(RUN.id), Writer(store, RUN) as writer:
        writer.put(a_record(0), b"")
        end_sessions(postgres_server, postgres)
        writer.put(a_record(1), b"")
        other = open_store()
        while (1, 0) not in other.scored(RUN):
            pass
        with pytest.raises(StoreError, match="in use by another process"), other.lock_run(RUN.id):
            pass
    assert [record.sample.index for record in store.records(RUN)] == [0, 1]
    with other.lock_run(RUN.id):
        pass


def test_lost_run_lock_stops_writer(postgres: str, postgres_server: PostgresServer) -> None:
    store = open_store()
    store.save(RUN)

    def exam() -> None:
        with store.lock_run(RUN.id), Writer(store, RUN) as writer:
            end_sessions(postgres_server, postgres)
            with open_store().lock_run(RUN.id):
                while True:
                    writer.put(a_record(0), b"")

    with pytest.raises(StoreWriteError, match=f"another process has resumed run {RUN.id}"):
        exam()
    with pytest.raises(StoreWriteError, match="another process has resumed"):
        store.save(msgspec.structs.replace(RUN, status="failed"))
    assert open_store().run(RUN.id).status == "running"


def test_reader_reconnects(postgres: str, postgres_server: PostgresServer) -> None:
    store = open_store()
    store.save(RUN)
    for ask in (
        store.runs,
        store.change_mark,
        lambda: store.status(RUN),
        lambda: store.artifacts(RUN, 0),
        lambda: store.metadata(RUN, "level"),
    ):
        before = ask()
        end_sessions(postgres_server, postgres)
        assert type(ask()) is type(before)


def test_missing_server_is_explained(own_server: PostgresServer) -> None:
    store = open_store()
    own_server.kill()
    for ask in (store.runs, store.change_mark, lambda: store.status(RUN), lambda: store.artifacts(RUN, 0)):
        with pytest.raises((StoreError, StoreWriteError), match=r"postgresql://team@/runs.* failed: .*"):
            ask()
    with pytest.raises(StoreError, match="Reading the store"), store.lock_run(RUN.id):
        pass
    own_server.start()
    assert store.runs() == []


# -- addresses and passwords ------------------------------------------------------------------


def test_password_is_never_shown(adding: str, postgres: str, proctor: Command, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = [
        proctor("run", adding, "-m", "scripted/oracle", "--json", "--out", str(out)),
        proctor("run", adding, "-m", "scripted/oracle", "--max-errors", "1", "--store", postgres),
        proctor("show", "latest"),
        proctor("show", "latest", "--json"),
        proctor("list", "runs"),
        proctor("resume", "latest", "--json"),
        proctor("export", "latest"),
        proctor("doctor"),
        proctor("show", "20990101"),
    ]
    assert [done.returncode for done in said[:7]] == [0] * 7, said
    assert json.loads(said[0].stdout)["runs"][0]["store"] == store_location(postgres)
    everything = "".join(done.stdout + done.stderr for done in said)
    everything += "".join(path.read_text() for path in out.iterdir())
    everything += open_store()._database.execute("SELECT string_agg(encode(body, 'escape'), '') FROM runs")[0][0]
    assert store_location(postgres) in everything
    for secret in (PASSWORD, ESCAPED_PASSWORD, "sesame"):
        assert secret not in everything


def test_refused_logins_are_explained(postgres_server: PostgresServer, proctor: Command, tmp_path: Path) -> None:
    wrong = proctor("list", "runs", "--store", postgres_server.url("postgres", "wrong%20word"))
    nowhere = proctor("run", "shapes/count", "-m", "scripted/oracle", "--store", f"postgresql:///x?host={tmp_path}")
    absent = proctor("list", "runs", "--store", postgres_server.url("absent"))
    for done, words in (
        (wrong, "password authentication failed"),
        (nowhere, "No such file or directory"),
        (absent, 'database "absent" does not exist'),
    ):
        assert done.returncode == 2
        assert "Cannot use the store postgresql://" in done.stderr
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert "wrong" not in done.stderr


def test_empty_database_is_explained(postgres: str, proctor: Command) -> None:
    done = proctor("list", "runs")
    assert (done.returncode, done.stdout) == (2, "")
    assert "The store postgresql://team@/runs" in done.stderr
    assert "is still empty" in done.stderr
    assert proctor("resume", "latest").returncode == 2
    assert proctor("list").returncode == 0


def test_newer_store_is_refused_unchanged(postgres: str, proctor: Command) -> None:
    open_store()._database.set_version(SCHEMA_VERSION + 1)
    done = proctor("list", "runs")
    assert done.returncode == 2
    assert f"written by a newer proctor (store version {SCHEMA_VERSION + 1}" in done.stderr


def test_doctor_checks_server(postgres: str, postgres_server: PostgresServer, proctor: Command) -> None:
    assert f"{store_location(postgres)} answers" in " ".join(proctor("doctor").stdout.split())
    done = proctor("doctor", "--store", postgres_server.url("absent"))
    assert done.returncode == 1
    assert "does not exist" in " ".join(done.stdout.split())


# -- texts and files --------------------------------------------------------------------------


def test_nul_characters_are_stored(postgres: str) -> None:
    store = open_store()
    store.save(RUN)
    record = Record(Sample("a\0b", 0, "x\0y", metadata={"k\0": "v\0"}), 0, (), Score(1.0, "o\0"))
    with Writer(store, RUN) as writer:
        writer.put(record, b"")
    assert list(store.records(RUN)) == [record]
    assert store.count(RUN, RecordFilter(text="xy", metadata={"k": "v"})) == 1


def test_agent_files_are_stored_in_database(postgres: str) -> None:
    report = evaluate("agents/catch", agent="random", limit=2)
    store = open_store(mode="read")
    assert not store.artifact_folder(report.run).exists()
    (name,) = store.artifacts(report.run, 1)
    assert name == "000001-0-1/events.jsonl"
    header, *_ = store.open_artifact(report.run, name)[1].read().splitlines()
    assert json.loads(header)["agent"] == "random"
    assert "process-1.log" in store._database.artifacts.names(report.run.id)
