"""What lists, filters, comparisons and reviewers ask of a store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

import proctor
from conftest import Command
from proctor.core.errors import UsageError
from proctor.core.runner import sample_digest
from proctor.core.types import Message, Output, Record, Run, Sample, SampleError, Score, Text, Usage
from proctor.store import open_store
from proctor.store.reviews import StoredReviews
from proctor.store.store import Store
from proctor.store.types import Neighbours, RecordColumns, RecordFilter, RecordSummary, Review
from proctor.store.writer import Writer

RUN = Run("20260101-000000-aaaaaa", "t", "1", "scripted/oracle", {"seed": 0, "tags": ["night"]}, {}, 0.0)

RECORDS = [
    Record(
        Sample("s0", 0, "What is red?", "apple", metadata={"colour": "red", "n": 1}, cluster="fruit"),
        0,
        (Output("An Apple, I\nthink", Usage(10, 5), seconds=1.5),),
        Score(1.0, answer="Apple"),
    ),
    Record(
        Sample("s1", 1, (Message("user", (Text("Straße?"),)),), metadata={"colour": "reddish", "n": 12}),
        0,
        (Output("100 %_ [sure]"),),
        Score(0.0, "unparsed", why="no number"),
    ),
    Record(Sample("s1", 1, "again"), 1, (Output("half"),), Score(0.5, answer={"parts": [1, 2]})),
    Record(Sample("s2", 2, "What is blue?"), 0, (), None, SampleError("model", "ModelError", "the server is ill")),
    Record(Sample("s3", 3, "left\0over"), 0, (Output("x" * 5_000),), None),
]


@pytest.fixture
def store(each_store: str) -> Iterator[Store]:
    store = open_store(each_store)
    store.save(RUN)
    with Writer(store, RUN) as writer:
        for record in reversed(RECORDS):
            writer.put(record, sample_digest(record.sample))
    yield store
    store.close()


def find_keys(store: Store, **conditions: Any) -> list[tuple[int, int]]:
    asked = RecordFilter(**conditions)
    lines = store.summaries(RUN, asked, 0, 100)
    assert store.count(RUN, asked) == len(lines)
    return [(line.sample, line.epoch) for line in lines]


def test_summary_abridges_record(store: Store) -> None:
    first, second, third, *_, last = store.summaries(RUN, RecordFilter(), 0, 100)
    assert first == RecordSummary(0, "s0", 0, "correct", 1.0, "Apple", "fruit", False, 0, 1.5, 15)
    assert second.answer == "100 %_ [sure]", "what was said, where nothing was understood"
    assert third.answer == '{"parts":[1,2]}'
    assert (last.outcome, last.value, last.answer) == ("answered", None, "x" * 200)


def test_summaries_are_paged(store: Store) -> None:
    assert [line.sample for line in store.summaries(RUN, RecordFilter(), 1, 2)] == [1, 1]
    assert [line.sample for line in store.summaries(RUN, RecordFilter(), 4, 2)] == [3]
    assert store.summaries(RUN, RecordFilter(), 5, 2) == []


@pytest.mark.parametrize(
    ("outcome", "found"),
    [
        ("", [(0, 0), (1, 0), (1, 1), (2, 0), (3, 0)]),
        ("pass", [(0, 0)]),
        ("fail", [(1, 0), (1, 1)]),
        ("error", [(2, 0)]),
        ("unparsed", [(1, 0)]),
        ("partly", [(1, 1)]),
        ("answered", [(3, 0)]),
        ("nonsense", []),
    ],
)
def test_filter_by_outcome(store: Store, outcome: str, found: list[tuple[int, int]]) -> None:
    assert find_keys(store, outcome=outcome) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("what is", [(0, 0), (2, 0)]),
        ("WHAT IS RED", [(0, 0)]),
        ("i\nthink", [(0, 0)]),
        ("STRASSE", [(1, 0)]),
        ("straße", [(1, 0)]),
        ("%_ [s", [(1, 0)]),
        ("no number", [(1, 0)]),
        ("server is ill", [(2, 0)]),
        ("modelerror", [(2, 0)]),
        ("leftover", [(3, 0)]),
        ("s1", [(1, 0), (1, 1)]),
        ("colour", []),
        ("fruit", []),
        ('"input"', []),
    ],
)
def test_filter_by_text(store: Store, text: str, found: list[tuple[int, int]]) -> None:
    assert find_keys(store, text=text) == found


def test_filter_by_metadata(store: Store) -> None:
    assert find_keys(store, metadata={"colour": "red"}) == [(0, 0)], "the whole value, not its beginning"
    assert find_keys(store, metadata={"n": "12"}) == [(1, 0)]
    assert find_keys(store, metadata={"n": "1", "colour": "red"}) == [(0, 0)]
    assert find_keys(store, metadata={"n": "1", "colour": "reddish"}) == []
    assert find_keys(store, metadata={"n": "12"}, text="straße", outcome="fail") == [(1, 0)]
    assert find_keys(store, metadata={"n": "12"}, text="straße", outcome="pass") == []


def test_neighbours(store: Store) -> None:
    assert store.neighbours(RUN, RecordFilter(), 1, 0) == Neighbours(1, (0, 0), (1, 1))
    assert store.neighbours(RUN, RecordFilter(), 0, 0) == Neighbours(0, None, (1, 0))
    assert store.neighbours(RUN, RecordFilter(), 3, 0) == Neighbours(4, (2, 0), None)
    assert store.neighbours(RUN, RecordFilter(outcome="fail"), 1, 0) == Neighbours(0, None, (1, 1))
    assert store.neighbours(RUN, RecordFilter(outcome="fail"), 0, 0) == Neighbours(0, None, (1, 0))
    assert store.neighbours(RUN, RecordFilter(outcome="pass"), 2, 0) == Neighbours(1, (0, 0), None)


def test_columns_of_records(store: Store) -> None:
    values = store.columns(RUN)
    assert values.sample == (0, 1, 1, 2, 3)
    assert values.epoch == (0, 0, 1, 0, 0)
    assert values.sample_id == ("s0", "s1", "s1", "s2", "s3")
    assert values.value == (1.0, 0.0, 0.5, None, None)
    assert values.outcome == ("correct", "unparsed", "partly", "error", "answered")
    assert values.digest == tuple(sample_digest(record.sample) for record in RECORDS)
    assert values.cluster == ("fruit", "", "", "", "")
    assert store.columns(msgspec.structs.replace(RUN, id="other")) == RecordColumns()


def test_one_record(store: Store) -> None:
    assert store.record(RUN, 1, 1) == RECORDS[2]
    with pytest.raises(UsageError, match="has no record of sample 7 in epoch 0"):
        store.record(RUN, 7)


def test_search_cache_is_invalidated_by_writes(store: Store) -> None:
    """Also when another process, here another connection, wrote."""
    assert store.count(RUN, RecordFilter(outcome="pass")) == 1
    other = open_store(store.url)
    for index, writing in enumerate((store, other), 10):
        mark = store.change_mark()
        assert store.change_mark() == mark
        with Writer(writing, RUN) as writer:
            writer.put(Record(Sample(f"s{index}", index, "q"), 0, (), Score(1.0)), b"")
        assert store.change_mark() != mark
        assert store.count(RUN, RecordFilter(outcome="pass")) == index - 8


def test_search_cache_is_bounded(store: Store) -> None:
    for number in range(100):
        assert find_keys(store, text="red", metadata={"n": str(number)}) == [(0, 0)] * (number == 1)


def test_search_index_follows_rewritten_record(store: Store) -> None:
    with Writer(store, RUN) as writer:
        writer.put(Record(Sample("s2", 2, "What is blue?"), 0, (Output("the sea"),), Score(1.0)), b"")
    assert find_keys(store, text="server is ill") == []
    assert find_keys(store, text="the sea", outcome="pass") == [(2, 0)]


# -- reviews ----------------------------------------------------------------------------------


def review(
    store: Store,
    kind: Literal["star", "comment", "score"],
    body: bool | float | str,
    sample: int = 0,
    author: str = "ann",
) -> Review:
    return store.add_review(Review(RUN.id, sample, 0, author, kind, body))


def test_reviews_round_trip(store: Store) -> None:
    given = [review(store, "star", True), review(store, "comment", "ünclear"), review(store, "score", 0.25)]
    assert store.reviews(RUN) == given
    assert 0 < given[0].created <= given[1].created
    score = store.record(RUN, 0).score
    assert score is not None
    assert score.value == 1, "the score itself stays what it was"


def test_summaries_show_stars_and_comments(store: Store) -> None:
    review(store, "star", True)
    review(store, "comment", "really?")
    review(store, "comment", "no", author="bob")
    review(store, "comment", "hm", sample=1)
    line = store.summaries(RUN, RecordFilter(), 0, 1)[0]
    assert (line.starred, line.comments) == (True, 2)
    assert find_keys(store, starred=True) == [(0, 0)]
    assert find_keys(store, commented=True) == [(0, 0), (1, 0)]
    assert find_keys(store, commented=True, starred=True) == [(0, 0)]
    assert find_keys(store, commented=True, outcome="fail") == [(1, 0)]


def test_newest_review_of_author_counts(store: Store) -> None:
    for starred in (True, False, True, False):
        review(store, "star", starred)
    review(store, "comment", "old")
    review(store, "comment", "new")
    assert find_keys(store, starred=True) == []
    assert [r.body for r in StoredReviews(store.reviews(RUN)).comments[0, 0]] == ["new"]
    review(store, "star", True, author="bob")
    review(store, "star", False)
    assert find_keys(store, starred=True) == [(0, 0)], "bob's star is not ann's to take away"
    review(store, "comment", "")
    assert find_keys(store, commented=True) == []
    assert len(store.reviews(RUN)) == 9, "nothing is ever taken away"


def test_newest_score_of_all_authors_is_last(store: Store) -> None:
    review(store, "score", 0.0)
    review(store, "score", 0.5, author="bob")
    review(store, "score", 1.0)
    assert [(r.author, r.body) for r in StoredReviews(store.reviews(RUN)).scores[0, 0]] == [("bob", 0.5), ("ann", 1.0)]


# -- files ------------------------------------------------------------------------------------


def test_files_of_a_sample(store: Store) -> None:
    folder = store.artifact_folder(RUN)
    for name in ("000000-0-1/video.mp4", "000000-0-2/deep/log", "000000-1-1/video.mp4", "process-1.log"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    store._database.artifacts.save(RUN.id)
    assert store.artifacts(RUN, 0) == ["000000-0-1/video.mp4", "000000-0-2/deep/log"]
    assert store.artifacts(RUN, 0, 1) == ["000000-1-1/video.mp4"]
    assert store.artifacts(RUN, 7) == []
    size, file = store.open_artifact(RUN, "process-1.log")
    with file:
        assert (size, file.read()) == (13, b"process-1.log")


def test_files_outside_run_are_refused(store: Store, tmp_path: Path) -> None:
    folder = store.artifact_folder(RUN)
    (folder / "000000-0-1").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (folder / "000000-0-1" / "link").symlink_to(tmp_path / "secret")
    (folder / "000000-0-1" / "folder").symlink_to(tmp_path)
    store._database.artifacts.save(RUN.id)
    assert store.artifacts(RUN, 0) == []
    up = os.path.relpath(tmp_path / "secret", folder)
    for name in (
        up,
        f"000000-0-1/../{up}",
        str(tmp_path / "secret"),
        "000000-0-1/link",
        "000000-0-1/folder/secret",
        "000000-0-1",
        "",
        ".",
        "no\0thing",
    ):
        with pytest.raises(UsageError, match="has no file"):
            store.open_artifact(RUN, name)


# -- tags -------------------------------------------------------------------------------------


def test_tags_are_stored_with_run(adding: str, each_store: str) -> None:
    from proctor.core.evaluation import resume

    run = proctor.evaluate(adding, "scripted/oracle", tags=["night", "v2"]).run
    assert open_store().run(run.id).tags == ["night", "v2"]
    assert resume(run.id, {}).run.tags == ["night", "v2"]
    assert resume(run.id, {"tags": ["day"]}).run.tags == ["day"]
    assert open_store()._database.execute("SELECT tags FROM runs") == [('["day"]',)]


def test_the_tag_flag(adding: str, proctor: Command) -> None:
    done = proctor("run", adding, "-m", "scripted/oracle", "--tag", "a", "--tag", "b", "-q")
    assert done.returncode == 0, done.stderr
    assert open_store().run("latest").tags == ["a", "b"]


def test_metadata_by_sample(store: Store) -> None:
    assert store.metadata(RUN, "colour") == {0: "red", 1: "reddish"}
    assert store.metadata(RUN, "n") == {0: "1", 1: "12"}
    assert store.metadata(RUN, "col") == {}
