"""Samples that are not independent: metrics count their clusters, and tasks say which belong together."""

import asyncio
import math
from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import proctor
from helpers.code_tasks import make_task, rows
from helpers.known import known
from proctor.code import Task as CodeTask
from proctor.code.results import Results
from proctor.core.config import RunConfig
from proctor.core.runner import sample_digest
from proctor.core.types import Record, Sample, Score
from proctor.metrics.passing import PassAtK
from proctor.metrics.statistics import clustered_mean, proportion, score_mean, student_mean
from proctor.metrics.summary import MeanScore, summarise

CONFIG = RunConfig(task="t", model="scripted/oracle")


def record(index: int, value: float, cluster: str = "", epoch: int = 0) -> Record:
    answer = [{"passed": bool(value)}]
    return Record(Sample(f"s{index}", index, "?", cluster=cluster), epoch, score=Score(value, answer=answer))


def test_the_error_is_the_sandwich_of_a_regression_on_a_constant() -> None:
    """Liang and Zeger (1986), with the factor G / (G - 1): (X'X)⁻¹ X'ee'X (X'X)⁻¹, written out with matrices."""
    values = np.array([1, 0, 1, 1, 0.5, 0, 1])
    clusters = ["a", "a", "b", "b", "b", "c", ""]
    ones = np.ones((7, 1))
    residuals = values - values.mean()
    meat = sum((ones[places].T @ residuals[places]) ** 2 for places in ([0, 1], [2, 3, 4], [5], [6])).item()
    bread = np.linalg.inv(ones.T @ ones).item()
    metric = clustered_mean(values.tolist(), clusters)
    assert metric.value == pytest.approx(values.mean())
    assert metric.stderr == pytest.approx(math.sqrt(4 / 3 * bread * meat * bread))
    assert (metric.n, metric.method) == (4, "clustered")


@given(st.lists(st.floats(0, 1), min_size=2, max_size=50))
def test_clusters_of_one_equal_independent_samples(values: list[float]) -> None:
    found = clustered_mean(values, [str(i) for i in range(len(values))])
    expected = student_mean(values)
    assert found.n == expected.n
    for name in ("value", "stderr", "low", "high"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-9)


def test_perfect_clusters_are_not_certain() -> None:
    """As many units as there are clusters, not samples."""
    metric = score_mean([1.0] * 30, clusters=[f"c{i % 3}" for i in range(30)])
    assert metric == proportion(3, 3)


def test_one_cluster_has_no_interval() -> None:
    assert score_mean([1.0, 0.0], clusters=["a", "a"]) == proctor.core.types.Metric(
        0.5, None, None, None, 1, "clustered"
    )


@pytest.mark.parametrize("groups", [12, 50])
def test_clustered_interval_has_nominal_coverage(groups: int) -> None:
    generator = np.random.default_rng(1)
    covered = naive = 0
    for _ in range(400):
        skill = generator.beta(2, 2, groups)
        values = generator.binomial(1, np.repeat(skill, 6)).tolist()
        clusters = [str(i // 6) for i in range(groups * 6)]
        metric, alone = score_mean(values, clusters=clusters), score_mean(values)
        covered += known(metric.low) <= 0.5 <= known(metric.high)
        naive += known(alone.low) <= 0.5 <= known(alone.high)
    assert covered / 400 > 0.92
    assert naive / 400 < 0.9


@pytest.mark.parametrize("tally", [lambda: MeanScore("pass@1"), lambda: PassAtK([1])])
def test_accumulators_use_clusters(tally: Callable[[], MeanScore | PassAtK]) -> None:
    """Variants that repeat each other must not make the interval narrower."""
    records = [record(10 * i + j, i % 2, f"problem {i}") for i in range(10) for j in range(10)]
    metrics, _ = summarise(records, tally, ())
    metric = metrics["pass@1"]
    assert (metric.value, metric.n, metric.method) == (0.5, 10, "clustered")
    assert metric.stderr == pytest.approx(student_mean([i % 2 for i in range(10)]).stderr)


def test_epochs_are_averaged_within_their_sample() -> None:
    records = [record(i, (i + epoch) % 2, f"c{i // 2}", epoch) for i in range(8) for epoch in range(3)]
    metrics, _ = summarise(records, lambda: MeanScore("accuracy"), ())
    values = [1 / 3 if i % 2 == 0 else 2 / 3 for i in range(8)]
    assert metrics["accuracy"].value == pytest.approx(sum(values) / 8)
    assert metrics["accuracy"].n == 4


@pytest.mark.parametrize(
    ("name", "file", "change", "clusters"),
    [
        ("perturbed-humaneval-func_name-num_seeds_10", "perturbed-humaneval", {"seed": 1}, ["HumanEval/0"] * 2),
        ("studenteval", "studenteval", {"prompt": "other words"}, ["add_tip"] * 2),
        ("santacoder_fim", "santacoder_fim", {"canonical_solution": "x"}, None),
    ],
)
def test_variants_of_a_problem_are_a_cluster(
    name: str, file: str, change: dict[str, object], clusters: list[str] | None
) -> None:
    first = rows(file)[0]
    samples = list(make_task(name, first, first | change).samples(CONFIG))
    found = [sample.cluster for sample in samples]
    assert found == (clusters or [f"{first['language']}/{first['name']}"] * 2)


def test_questions_of_ds1000_are_with_those_they_were_made_of() -> None:
    first = rows("ds1000")[0]
    changed = first | {"metadata": first["metadata"] | {"problem_id": 301, "perturbation_type": "Surface"}}
    unknown = first | {"metadata": {"problem_id": 302, "library": "Numpy"}}
    samples = make_task("ds1000-numpy-completion", first, changed, unknown).samples(CONFIG)
    assert [sample.cluster for sample in samples] == ["Numpy/300", "Numpy/300", ""]


def test_most_problems_stand_alone() -> None:
    assert {sample.cluster for sample in make_task("humanevalplus", *rows("humanevalplus")).samples(CONFIG)} == {""}


def test_cluster_is_not_in_sample_digest() -> None:
    """A run of a time without clusters can go on, and be compared."""
    sample = Sample("a", 0, "?")
    assert sample_digest(sample) == sample_digest(msgspec.structs.replace(sample, cluster="c"))


class Longest(CodeTask):
    """A figure that only all answers have together."""

    def get_prompt(self, doc: dict[str, str]) -> str:
        return "?"

    def get_reference(self, doc: dict[str, str]) -> str:
        return doc["text"]

    def cluster_of(self, doc: dict[str, str]) -> str:
        return doc["of"]

    def process_results(self, generations: list[list[str]], references: list[str]) -> dict[str, float]:
        return {"root of lengths": math.sqrt(sum(len(text) for (text,) in generations))}


def test_the_jackknife_leaves_out_clusters() -> None:
    task = Longest()
    task._rows = [{"text": "", "of": f"c{i // 2}"} for i in range(12)]
    results = Results(task)
    for sample in task.samples(CONFIG):
        text = "x" * (1 + sample.index // 2)
        answer = {"generations": [text], "metrics": {"root of lengths": math.sqrt(len(text))}, "trials": []}
        results.add(Record(sample, score=Score(None, "counted", answer)))
    metric = results.metrics()["root of lengths"]
    asyncio.run(task.close())
    assert (metric.n, metric.method) == (6, "jackknife")
    assert known(metric.stderr) > 0
