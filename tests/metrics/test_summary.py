import pytest
from scipy import stats

from proctor.core.types import Record, Sample, SampleError, Score
from proctor.metrics.summary import MeanScore, summarise


def record(index: int, value: float | None, epoch: int = 0, **metadata: object) -> Record:
    return Record(Sample(f"s{index}", index, "?", metadata=metadata), epoch, score=Score(value))


def test_errors_and_unscored_outcomes_are_left_out() -> None:
    failed = Record(Sample("f", 9, "?"), error=SampleError("model", "ModelError", "no"))
    metrics, _ = summarise([record(0, 1), record(1, 0), record(2, None), failed], lambda: MeanScore("accuracy"), ())
    assert metrics["accuracy"].value == 0.5
    assert metrics["accuracy"].n == 2


def test_epochs_of_a_sample_are_one_unit() -> None:
    """Ten epochs that repeat each other must not make the interval narrower."""
    once = [record(i, i % 2) for i in range(10)]
    tenfold = [record(i, i % 2, epoch) for i in range(10) for epoch in range(10)]
    single, _ = summarise(once, lambda: MeanScore("accuracy"), ())
    repeated, _ = summarise(tenfold, lambda: MeanScore("accuracy"), ())
    assert single == repeated


def test_epochs_are_averaged_before_the_standard_error() -> None:
    values = [[1, 0], [1, 1], [0, 0], [1, 0]]
    records = [record(i, v, epoch) for i, epochs in enumerate(values) for epoch, v in enumerate(epochs)]
    metrics, _ = summarise(records, lambda: MeanScore("accuracy"), ())
    assert metrics["accuracy"].value == 0.5
    assert metrics["accuracy"].stderr == pytest.approx(stats.sem([0.5, 1, 0, 0.5]))
    assert metrics["accuracy"].method == "student-t"


def test_groups() -> None:
    records = [record(i, i < 6, shapes=3 if i < 5 else 7, colour="red") for i in range(10)]
    _, groups = summarise(records, lambda: MeanScore("accuracy"), ("shapes", "colour", "absent"))
    assert {value: m["accuracy"].value for value, m in groups["shapes"].items()} == {"3": 1.0, "7": 0.2}
    assert groups["colour"]["red"]["accuracy"].n == 10
    assert "absent" not in groups


def test_groups_come_in_their_natural_order() -> None:
    records = [record(i, 1, size=size) for i, size in enumerate([10, 2, 1, "many", "few"])]
    _, groups = summarise(records, lambda: MeanScore("accuracy"), ("size",))
    assert list(groups["size"]) == ["1", "2", "10", "few", "many"]


def test_nothing_scored() -> None:
    metrics, groups = summarise([], lambda: MeanScore("accuracy"), ("shapes",))
    assert metrics["accuracy"].value is None
    assert groups == {}
