import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import proctor
from conftest import Stalling
from helpers.known import known
from proctor.core.errors import StoreError, StoreWriteError, UsageError
from proctor.core.types import Output, Record, Run, Sample, Score
from proctor.store import open_store
from proctor.store.schema import SCHEMA_VERSION
from proctor.store.store import Store
from proctor.store.types import RecordFilter
from proctor.store.writer import Writer


def make_run(run_id: str = "20260101-000000-aaaaaa", created: float = 0.0) -> Run:
    return Run(run_id, "t", "1", "scripted/oracle", {"seed": 0}, {}, created)


def make_record(index: int, value: float | None = 1.0, epoch: int = 0) -> Record:
    score = None if value is None else Score(value, "correct" if value else "wrong")
    return Record(Sample(f"s{index}", index, "question"), epoch, (Output("answer"),), score)


@pytest.fixture
def store(each_store: str) -> Iterator[Store]:
    store = open_store(each_store)
    yield store
    store.close()


def test_run_round_trips(store: Store) -> None:
    run = make_run()
    store.save(run)
    assert store.run(run.id) == run
    assert store.run("20260101") == run, "the start of the id is enough"
    assert store.run("latest") == run


def test_read_mode_cannot_write(store: Store) -> None:
    store.save(make_run())
    reader = open_store(store.url, "read")
    with pytest.raises(StoreWriteError, match=r"Writing to .* failed: .*read-?only"):
        reader.save(make_run())
    reader.close()


def test_ambiguous_and_unknown_runs_are_refused(store: Store) -> None:
    store.save(make_run("20260101-000000-aaaaaa", 1))
    store.save(make_run("20260101-000000-aaaaab", 2))
    assert store.run("latest").id.endswith("b")
    assert [run.id[-1] for run in store.runs()] == ["b", "a"]
    with pytest.raises(StoreError, match="type more of the id"):
        store.run("2026")
    with pytest.raises(UsageError, match="Unknown run '20250101'"):
        store.run("20250101")


def test_later_record_replaces_earlier_one(store: Store) -> None:
    run = make_run()
    store.save(run)
    for value in (None, 1.0):
        with Writer(store, run) as writer:
            writer.put(make_record(0, value), b"d")
            if value is None:
                continue
    (record,) = store.records(run)
    assert known(record.score).value == 1
    assert store.answered(run) == {}
    assert store.scored(run) == {(0, 0): b"d"}


def test_records_are_in_sample_order(store: Store) -> None:
    run = make_run()
    store.save(run)
    with Writer(store, run) as writer:
        for index in (5, 3, 4, 0):
            writer.put(make_record(index, epoch=index % 2), b"")
    assert [record.sample.index for record in store.records(run)] == [0, 3, 4, 5]
    assert store.counts(run) == {"correct": 4}


def test_record_is_durable_while_event_loop_is_blocked(store: Store) -> None:
    """The writer commits from its own thread: the caller never lets go here until another connection sees the row."""
    run = make_run()
    store.save(run)
    with Writer(store, run) as writer, closing(open_store(store.url)) as other:
        writer.put(make_record(0), b"")
        while not other.scored(run):
            assert writer._thread.is_alive()


def test_put_blocks_at_full_backlog(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run()
    store.save(run)
    monkeypatch.setattr("proctor.store.writer.BATCH", 200)
    monkeypatch.setattr("proctor.store.writer.MAX_BACKLOG", 1000)
    with Writer(store, run) as writer:
        for index in range(3000):
            writer.put(make_record(index), b"")
    assert len(store.scored(run)) == 3000


@pytest.mark.parametrize("count", [0, 1, 98, 99, 100, 101, 199, 450])
def test_records_of_one_batch_are_all_written_and_replaced(store: Store, count: int) -> None:
    """Rows go into the database many at a time, as many as a statement takes."""
    run = make_run()
    store.save(run)
    for digest in (b"first", b"second"):
        store.write(run, [(make_record(index), digest + b"%d" % index) for index in range(count)])
        assert [record.sample.index for record in store.records(run)] == list(range(count))
        assert list(store.sample_digests(run)) == [digest + b"%d" % index for index in range(count)]


def test_newer_store_is_refused_unchanged(store: Store) -> None:
    store._database.set_version(SCHEMA_VERSION + 1)
    with pytest.raises(StoreError, match="written by a newer proctor"):
        open_store(store.url)


def test_file_that_is_not_a_store_is_refused_unchanged(tmp_path: Path) -> None:
    (tmp_path / "runs.db").write_text("these are my notes, not a database, and longer than a header " * 20)
    with pytest.raises(StoreError, match="not a database"):
        open_store(str(tmp_path))
    assert (tmp_path / "runs.db").read_text().startswith("these are my notes")


def test_run_lock_is_exclusive(store: Store) -> None:
    run = make_run()
    with (
        closing(open_store(store.url)) as other,
        store.lock_run(run.id),
        pytest.raises(StoreError, match="in use by another process"),
        other.lock_run(run.id),
    ):
        pass
    with store.lock_run(run.id):
        pass


@pytest.mark.parametrize(("processes", "samples"), [(3, 1000), pytest.param(8, 3000, marks=pytest.mark.slow)])
def test_concurrent_runs_share_a_store(
    adding: str, each_store: str, monkeypatch: pytest.MonkeyPatch, processes: int, samples: int
) -> None:
    """Several processes at the same time, on a store that does not exist yet."""
    monkeypatch.setenv("PROCTOR_STORE", each_store)
    command = [sys.executable, "-m", "proctor", "run", adding, "--model", "scripted/oracle", "-q"]
    command += ["--limit", str(samples)]
    started = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(processes)]
    errors = [process.communicate(timeout=300)[1] for process in started]
    assert [process.returncode for process in started] == [0] * processes, errors
    with closing(open_store()) as store:
        assert [(run.status, run.n) for run in store.runs()] == [("done", samples)] * processes
        assert all(len(store.scored(run)) == samples for run in store.runs())


def test_full_disk_stops_run_and_keeps_records(adding: str, tmp_path: Path) -> None:
    """The kernel refuses to let the file grow, in the process that writes."""
    command = [sys.executable, "-m", "proctor", "run", adding, "--model", "scripted/oracle", "--limit", "200000", "-q"]
    limited = ["bash", "-c", 'ulimit -f 30000 && exec "$@"', "bash", *command]  # kilobytes: more than the largest batch
    done = subprocess.run(limited, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "Writing to" in done.stderr
    assert "proctor resume" in done.stderr
    with closing(open_store()) as store:
        (run,) = store.runs()
        kept = [record for record in store.records(run) if record.finished]
        assert 0 < len(kept) < 200_000
        assert all(known(record.score).value == 1 for record in kept)
        assert store._database.execute("PRAGMA integrity_check") == [("ok",)]


@pytest.mark.slow
def test_full_file_system_stops_run(adding: str, tmp_path: Path) -> None:
    """A file system with two megabytes left, in a mount namespace of its own; then room is made and the run goes on."""
    script = f"""
    set -e
    mkdir small && mount -t tmpfs -o size=80m tmpfs small
    head -c 78M /dev/zero > small/ballast
    {sys.executable} -m proctor run {adding} --model scripted/oracle --limit 20000 -q --store small && exit 9
    echo "code $?"
    {sys.executable} -m proctor show latest --store small
    rm small/ballast
    {sys.executable} -m proctor resume latest --store small -q
    """
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine allows no mount namespaces; the file size limit above tests the same path")
    done = subprocess.run(["unshare", "-rm", "bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "code 1" in done.stdout
    assert "full" in done.stderr
    assert "20,000 scored" in done.stdout


def test_unwritable_store_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="Cannot use the store"):
        open_store(str(tmp_path / "file" / "store"))
    with pytest.raises(StoreError, match="Unknown kind of store 'mongodb'"):
        open_store("mongodb://host/db")


def test_readonly_store_can_be_read(adding: str, tmp_path: Path) -> None:
    """On a read-only mount, in a mount namespace of its own: list, show and export work, run says that it cannot."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine allows no mount namespaces")
    proctor.evaluate(adding, "scripted/oracle", store=str(tmp_path / "shared"))
    script = f"""
    mount --bind shared shared && mount -o remount,bind,ro shared || exit 9
    for verb in "list runs" "show latest" "export latest"; do
      {sys.executable} -m proctor $verb --store shared || exit 8
    done
    {sys.executable} -m proctor run {adding} --model scripted/oracle --store shared
    """
    done = subprocess.run(["unshare", "-rm", "bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "accuracy 1.000" in done.stdout
    assert '"id":"add-9"' in done.stdout
    assert "Cannot use the store shared" in done.stderr


@pytest.mark.parametrize("what", ["runs.db", pytest.param("", marks=pytest.mark.slow)])
def test_removed_store_stops_run(adding: str, tmp_path: Path, stalling: Stalling, what: str) -> None:
    server = stalling(3)
    command = [sys.executable, "-m", "proctor", "run", adding, "--model", "openai/m", "--base-url", server.url, "-q"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "store" / "runs.db").exists() or len(server.requests) < 4:
        assert process.poll() is None
        time.sleep(0.01)
    target = tmp_path / "store" / what
    shutil.rmtree(target) if target.is_dir() else target.unlink()
    server.open_gate()
    _, said = process.communicate(timeout=300)
    assert process.returncode != 0
    assert said.startswith("proctor: ")
    assert len(said.splitlines()) == 1


def test_empty_store_is_explained(tmp_path: Path) -> None:
    (tmp_path / "runs.db").touch()
    with pytest.raises(StoreError, match="is still empty"):
        open_store(str(tmp_path), "read")


def test_failing_writer_stops_run(store: Store) -> None:
    run = make_run()
    store.save(run)
    store._database.execute("DROP TABLE records")

    def exam() -> None:
        with Writer(store, run) as writer:
            for index in range(10_000_000):
                writer.put(make_record(index), b"")

    with pytest.raises(StoreWriteError, match=r"no such table|does not exist"):
        exam()


def test_store_is_at_given_path(adding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proctor.evaluate(adding, "scripted/oracle", store=str(tmp_path / "a"))
    assert (tmp_path / "a" / "runs.db").exists()
    proctor.evaluate(adding, "scripted/oracle")
    assert (Path(os.environ["PROCTOR_STORE"]) / "runs.db").exists()
    monkeypatch.delenv("PROCTOR_STORE")
    proctor.evaluate(adding, "scripted/oracle")
    assert (tmp_path / "proctor-runs" / "runs.db").exists()


def test_rows_hold_what_queries_need(store: Store) -> None:
    run = make_run()
    store.save(run)
    with Writer(store, run) as writer:
        writer.put(make_record(0, 0.0), b"")
    assert store._database.execute("SELECT sample, state, outcome, value FROM records") == [(0, "scored", "wrong", 0.0)]


@pytest.mark.parametrize("asked", ["1", "1.0", "1e0", "100e-2"])
def test_search_finds_numbers_in_any_spelling(store: Store, asked: str) -> None:
    run = make_run()
    store.save(run)
    for index, held in enumerate((1, 1.0, "1", 10, 11, 0.1, "x")):
        record = Record(Sample(f"s{index}", index, "q", metadata={"n": held}), 0, (), Score(1.0))
        store.write(run, [(record, b"d")])
    found = store.summaries(run, RecordFilter(metadata={"n": asked}), 0, 10)
    assert [line.sample for line in found] == [0, 1, 2]
