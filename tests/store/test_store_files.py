"""A store that keeps the files of its runs in tables, as one on a server does, for every machine to see."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec
import pytest

from proctor.core.errors import UsageError
from proctor.core.types import Record, Run, Sample, Score
from proctor.store import open_store
from proctor.store.artifacts import PART, ArtifactTable
from proctor.store.store import Store
from proctor.store.writer import Writer

OpenStore = Callable[[], Store]

RUN = Run("20260101-000000-aaaaaa", "t", "1", "scripted/oracle", {"seed": 0}, {}, 0.0)


def a_record(index: int) -> Record:
    return Record(Sample(f"s{index}", index, "q"), 0, (), Score(1.0))


@pytest.fixture
def open_team_store(each_store: str) -> Iterator[OpenStore]:
    """Opens the same store each time, as several machines do; in SQLite the tables are the same as on a server."""
    with ExitStack() as opened:

        def open_it() -> Store:
            store = opened.enter_context(closing(open_store(each_store)))
            store._database.artifacts = ArtifactTable(store._database)
            return store

        yield open_it


def test_files_are_read_in_parts(open_team_store: OpenStore) -> None:
    store = open_team_store()
    store.save(RUN)
    folder = store.artifact_folder(RUN)
    (folder / "000000-0-1").mkdir(parents=True)
    content = os.urandom(2 * PART + 12_345)
    (folder / "000000-0-1" / "video.mp4").write_bytes(content)
    (folder / "000000-0-1" / "empty").touch()
    (folder / "000000-0-1" / os.fsdecode(b"odd-\xff")).touch()
    with store.working_folder(RUN):
        pass
    assert not folder.exists(), "the copy is enough"
    assert store.artifacts(RUN, 0) == ["000000-0-1/empty", "000000-0-1/odd-?", "000000-0-1/video.mp4"]
    size, file = store.open_artifact(RUN, "000000-0-1/video.mp4")
    with file:
        assert size == len(content)
        assert file.read() == content
        for offset, length in ((PART - 10, 20), (5, 3), (2 * PART + 12_000, 999), (size, 1), (0, PART + 1)):
            file.seek(offset)
            assert file.read(length) == content[offset : offset + length]
        assert file.seek(-5, io.SEEK_END) == size - 5
        assert file.read() == content[-5:]
    size, file = store.open_artifact(RUN, "000000-0-1/empty")
    with file:
        assert (size, file.read()) == (0, b"")
    with pytest.raises(UsageError, match=f"Run {RUN.id} has no file 'video.mp4'"):
        store.open_artifact(RUN, "video.mp4")


def test_files_are_stored_before_their_record(open_team_store: OpenStore) -> None:
    """Not only at the end: others look on, and the machine may die."""
    store, other = open_team_store(), open_team_store()
    store.save(RUN)
    with store.working_folder(RUN) as folder, Writer(store, RUN) as writer:
        for index in (0, 1):
            (folder / f"{index:06}-0-1").mkdir(parents=True)
            (folder / f"{index:06}-0-1" / "events.jsonl").write_text(f"of {index}")
        writer.put(a_record(0), b"")
        while not other.scored(RUN):
            time.sleep(0.01)
        assert other.open_artifact(RUN, "000000-0-1/events.jsonl")[1].read() == b"of 0"
        assert other.artifacts(RUN, 1) == []
        (folder / "000000-0-1" / "events.jsonl").write_text("of 0, later")
    assert other.open_artifact(RUN, "000000-0-1/events.jsonl")[1].read() == b"of 0, later"
    assert other.open_artifact(RUN, "000001-0-1/events.jsonl")[1].read() == b"of 1"


def test_run_resumes_on_another_machine(
    open_team_store: OpenStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a sample that was played but not judged, the files come along."""
    store = open_team_store()
    store.save(RUN)
    with store.working_folder(RUN) as folder, Writer(store, RUN) as writer:
        for index in (0, 1):
            (folder / f"{index:06}-0-1").mkdir(parents=True)
            (folder / f"{index:06}-0-1" / "events.jsonl").write_text(f"of {index}")
        writer.put(a_record(0), b"")
        writer.put(msgspec.structs.replace(a_record(1), score=None), b"")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    with open_team_store().working_folder(RUN) as folder:
        assert folder.is_relative_to(tmp_path / "elsewhere")
        assert [path.name for path in folder.iterdir()] == ["000001-0-1"], "what is scored is not needed any more"
        assert (folder / "000001-0-1" / "events.jsonl").read_text() == "of 1"
    assert store.artifacts(RUN, 0) + store.artifacts(RUN, 1) == ["000000-0-1/events.jsonl", "000001-0-1/events.jsonl"]
