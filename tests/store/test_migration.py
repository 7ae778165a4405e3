"""Migration: stores of older versions are migrated when they are first opened."""

import hashlib
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor.core import provenance, registry
from proctor.core.errors import StoreError
from proctor.core.evaluation import resume
from proctor.store import open_store
from proctor.store.database import Mode
from proctor.store.schema import SCHEMA_VERSION
from proctor.store.types import RecordFilter

# The tables of version 1, as they were; and the digest that version stored for the first sample of the adding exam.
VERSION_1 = """
CREATE TABLE runs (id TEXT PRIMARY KEY, task TEXT NOT NULL, candidate TEXT NOT NULL, status TEXT NOT NULL,
    created REAL NOT NULL, body BLOB NOT NULL);
CREATE INDEX runs_by_time ON runs (created);
CREATE TABLE records (run TEXT NOT NULL REFERENCES runs (id), sample INTEGER NOT NULL, sample_id TEXT NOT NULL,
    epoch INTEGER NOT NULL, state TEXT NOT NULL, outcome TEXT NOT NULL, value REAL, digest BLOB NOT NULL,
    body BLOB NOT NULL, PRIMARY KEY (run, sample, epoch));
CREATE INDEX records_by_outcome ON records (run, outcome, sample);
PRAGMA user_version = 1;
"""
DIGESTS = {0: "2bc9d343e00870304969901734e10de0", 1: "675934d3083f169467c685ba0c4bfa03"}
RUN_ID = "20260101-000000-aaaaaa"


@pytest.fixture
def old(tmp_path: Path, adding: str) -> Path:
    """A run of 1,500 samples, the last of them not asked yet."""
    folder = tmp_path / "store"
    folder.mkdir()
    db = sqlite3.connect(folder / "runs.db")
    db.executescript(VERSION_1)
    config = {"task": adding, "model": "scripted/oracle", "settings": {}, "limit": 1500, "api": "chat"}
    source = provenance.hash_source(registry.load_task_class(adding))
    run = {
        "id": RUN_ID, "task": adding, "version": "1", "candidate": "scripted/oracle", "config": config,
        "provenance": {"task_source": source}, "created": 1.0, "status": "interrupted", "total": 1500,
    }  # fmt: skip
    db.execute("INSERT INTO runs VALUES (?, ?, 'scripted/oracle', 'interrupted', 1.0, ?)",
               (RUN_ID, adding, msgspec.json.encode(run)))  # fmt: skip
    for index in range(1499):
        sample = {
            "id": f"add-{index}", "index": index, "input": f"{index}+{index}=", "target": str(2 * index), "seed": 0,
            "choices": [], "metadata": {"odd": index % 2},
        }  # fmt: skip
        body = {"sample": sample, "epoch": 0, "outputs": [{"text": str(2 * index)}],
                "score": {"value": 1.0, "outcome": "correct", "answer": str(2 * index), "why": ""}}  # fmt: skip
        digest = bytes.fromhex(DIGESTS[index]) if index in DIGESTS else digest_of(sample)
        db.execute("INSERT INTO records VALUES (?, ?, ?, 0, 'scored', 'correct', 1.0, ?, ?)",
                   (RUN_ID, index, f"add-{index}", digest, msgspec.json.encode(body)))  # fmt: skip
    db.commit()
    db.close()
    return folder


def digest_of(sample: dict[str, Any]) -> bytes:
    return hashlib.sha256(msgspec.json.encode(sample)).digest()[:16]


def version(folder: Path) -> int:
    db = sqlite3.connect(folder / "runs.db")
    (number,) = db.execute("PRAGMA user_version").fetchone()
    db.close()
    return int(number)


@pytest.mark.parametrize("mode", ["read", "write", "create"])
def test_old_store_is_migrated(old: Path, mode: Mode) -> None:
    store = open_store(str(old), mode)
    assert version(old) == SCHEMA_VERSION
    run = store.run("latest")
    assert run.tags == []
    assert len(list(store.records(run))) == 1499
    assert store.count(run, RecordFilter(text="2996")) == 1
    assert store.count(run, RecordFilter(metadata={"odd": "1"})) == 749
    assert set(store.columns(run).cluster) == {""}
    store.close()


def test_migrated_runs_resume(old: Path) -> None:
    """The samples are what they were: a field that came since does not make them others."""
    report = resume(RUN_ID, {"store": str(old)})
    assert (report.run.n, report.run.status) == (1500, "done")


def test_readonly_old_store_is_explained(old: Path, tmp_path: Path) -> None:
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine allows no mount namespaces")
    script = f"mount --bind store store && mount -o remount,bind,ro store && {sys.executable} -m proctor list runs"
    done = subprocess.run(["unshare", "-rm", "bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "written by an older proctor (store version 1, now it is 2)" in done.stderr
    assert "Open it once where it is writable." in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert version(old) == 1


@pytest.mark.parametrize("count", [3, pytest.param(8, marks=pytest.mark.slow)])
def test_concurrent_processes_migrate_once(old: Path, count: int) -> None:
    command = [sys.executable, "-m", "proctor", "list", "runs"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(count)]
    said = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0] * count, said
    assert all(RUN_ID.encode() in out for out, _ in said)
    with closing(open_store(str(old), "read")) as store:
        assert store.count(store.run("latest"), RecordFilter(text="add-")) == 1499


def test_failed_migration_is_rolled_back(old: Path) -> None:
    db = sqlite3.connect(old / "runs.db")
    db.execute("UPDATE records SET body = 'no record' WHERE sample = 1400")
    db.commit()
    db.close()
    with pytest.raises(StoreError, match="could not be migrated"):
        open_store(str(old))
    assert version(old) == 1
