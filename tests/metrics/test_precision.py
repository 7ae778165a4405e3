"""As many samples as it takes: the confidence sequence by simulation and against a plain one, and runs that use it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

import proctor
from conftest import Command, Serve, right_sum
from proctor import RunConfig, Sample, Score, Task
from proctor.core.config import build_config
from proctor.core.errors import UsageError
from proctor.core.evaluation import resume
from proctor.core.types import Metric, Record
from proctor.metrics.passing import PassAtK
from proctor.metrics.precision import NO_INTERVAL, PrecisionMonitor, SequentialTally, order_key
from proctor.metrics.sequence import METHOD, ConfidenceSequence
from proctor.metrics.statistics import proportion

Draws = NDArray[np.float64]  # sequences × samples
SHAPE = (3_000, 800)


def right(p: float) -> Callable[[np.random.Generator], Draws]:
    return lambda generator: (generator.random(SHAPE) < p).astype(float)


DRAWS: dict[str, tuple[float, Callable[[np.random.Generator], Draws]]] = {
    "seldom right": (0.04, right(0.04)),
    "mostly right": (0.8, right(0.8)),
    "a coin": (0.5, right(0.5)),
    "uniform": (0.5, lambda generator: generator.random(SHAPE)),
    "skewed": (0.25, lambda generator: generator.random(SHAPE) ** 3),
    "nearly equal": (0.3, lambda generator: generator.uniform(0.29, 0.31, SHAPE)),
    "mean of three tries": (0.6, lambda generator: generator.binomial(3, 0.6, SHAPE) / 3),
}


def ends(metric: Metric) -> tuple[float, float]:
    assert metric.low is not None
    assert metric.high is not None
    return metric.low, metric.high


def width(metric: Metric) -> float:
    low, high = ends(metric)
    return high - low


def ever_out(draws: Draws, mean: float, half_width: float) -> NDArray[np.bool_]:
    """In which sequences this mean was ever excluded, from the definition: the capital of whoever bets against it."""
    out = np.zeros(len(draws), dtype=bool)
    higher, lower, stakes = np.ones(len(draws)), np.ones(len(draws)), np.ones(len(draws))
    for n, scores in enumerate(draws.T):
        if n.bit_count() <= 1:  # stakes are set anew after 0, 1, 2, 4, 8 … samples, from what was seen
            seen = draws[:, :n]
            centre = (0.5 + seen.sum(axis=1)) / (n + 1)
            stakes = half_width * (n + 1) / (0.25 + ((seen - centre[:, None]) ** 2).sum(axis=1))
        higher *= 1 + np.minimum(stakes, 0.5 / mean) * (scores - mean)
        lower *= 1 - np.minimum(stakes, 0.5 / (1 - mean)) * (scores - mean)
        if n + 1 >= 8:
            out |= np.maximum(higher / 2, lower / 2) >= 20  # half of the stake each, and 1/20 is the chance of an error
    return out


@pytest.mark.parametrize("kind", DRAWS)
def test_in_95_of_100_sequences_the_mean_is_never_outside(kind: str) -> None:
    mean, draw = DRAWS[kind]
    assert ever_out(draw(np.random.default_rng(1)), mean, 0.05).mean() <= 0.05


@pytest.mark.parametrize("kind", DRAWS)
def test_what_is_ever_excluded_stays_so(kind: str) -> None:
    """The same verdicts as from the definition, on means all over the interval: 100 samples, a look at each."""
    draws = DRAWS[kind][1](np.random.default_rng(2))[:10, :100]
    made = [ConfidenceSequence(0.05) for _ in draws]
    for one, scores in zip(made, draws, strict=True):
        for score in scores:
            one.add(float(score))
    for mean in np.linspace(0.015, 0.985, 40):
        for one, expected in zip(made, ever_out(draws, float(mean), 0.05), strict=True):
            if min(abs(one.low - mean), abs(one.high - mean)) > 2e-4:  # the ends are not exact, but err outwards
                assert (not one.low <= mean <= one.high) == expected


def test_an_ordinary_interval_would_not_hold() -> None:
    """With a look after every sample, Wilson's interval excludes the mean far too often."""
    rights = right(0.5)(np.random.default_rng(3))[:200].cumsum(axis=1)
    missed = 0
    for sums in rights:
        metrics = (proportion(int(total), n) for n, total in enumerate(sums[:400], 1) if n >= 8)
        missed += any(not low <= 0.5 <= high for low, high in map(ends, metrics))
    assert missed > 0.2 * len(rights)


def test_answers_in_balanced_blocks_are_covered_too() -> None:
    """Who always says yes is right in exactly half of each block: less varied than a coin."""
    blocks = np.tile([0.0, 1.0], 10 * 3_000 * 40).reshape(3_000, 40, 20)
    draws = np.random.default_rng(4).permuted(blocks, axis=2).reshape(3_000, 800)
    assert ever_out(draws, 0.5, 0.05).mean() <= 0.05


def test_low_scores_are_high_scores_upside_down() -> None:
    generator = random.Random(5)
    scores = [float(generator.random() < 0.3) for _ in range(300)]
    one, other = ConfidenceSequence(0.03), ConfidenceSequence(0.03)
    for score in scores:
        one.add(score)
        other.add(1 - score)
    assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low), abs=1e-9)


@pytest.mark.parametrize("p", [0.5, 0.8, 0.95])
def test_it_takes_at_most_twice_or_so_what_a_fixed_number_would(p: float) -> None:
    needed = []
    for seed in range(5):
        generator = random.Random(seed)
        made = ConfidenceSequence(0.03)
        while not made.narrow_enough:
            made.add(float(generator.random() < p))
        needed.append(made.n)
    fixed = 1.96**2 * p * (1 - p) / 0.03**2
    assert fixed < sum(needed) / 5 < 2.6 * fixed


def test_nothing_is_known_of_nothing() -> None:
    metric = ConfidenceSequence(0.1).metric()
    assert (metric.value, metric.low, metric.n, metric.method) == (None, None, 0, METHOD)


def test_scores_are_counted_in_sample_order() -> None:
    precision = PrecisionMonitor(0.1, epochs=2)
    exam = precision.until_reached([Sample(str(index), index, "?") for index in (7, 3, 9)], {})
    assert [sample.index for sample in exam] == [7, 3, 9]
    precision.add(3, 1.0)
    precision.add(3, 0.0)
    precision.add(9, 1.0)
    assert precision.sequence.n == 0, "7 comes first"
    precision.add(7, 1.0)
    assert precision.sequence.n == 0
    precision.add(7, None)  # failed: its other epoch stands for it
    assert precision.sequence.n == 2
    assert precision.sequence.metric().value == (1.0 + 0.5) / 2
    precision.add(9, None)
    assert precision.sequence.n == 3


def judged(index: int, verdicts: list[bool]) -> Record:
    answer = [{"passed": passed} for passed in verdicts]
    return Record(Sample(str(index), index, "?"), score=Score(sum(verdicts) / len(verdicts), "partly", answer))


def test_no_other_metric_keeps_an_interval_that_does_not_hold() -> None:
    tally = SequentialTally(PassAtK((1, 2)), "pass@1", 0.1, lambda index: -index)
    verdicts = [[True, index % 3 == 0] for index in range(30)]
    for index, pair in enumerate(verdicts):
        tally.add(judged(index, pair))
    metrics = tally.metrics()
    assert metrics["pass@1"].method == METHOD
    assert metrics["pass@1"].stderr is None
    for name in ("pass@2", "pass^2"):
        assert (metrics[name].low, metrics[name].high, metrics[name].stderr) == (None, None, None)
        assert metrics[name].method == NO_INTERVAL
        assert metrics[name].value is not None
    backwards = ConfidenceSequence(0.1)
    for pair in reversed(verdicts):
        backwards.add(sum(pair) / 2)
    assert metrics["pass@1"] == backwards.metric()


def test_a_metric_that_is_no_mean_of_scores_stays_itself() -> None:
    class Corpus:
        def add(self, record: Record) -> None:
            pass

        def metrics(self) -> dict[str, Metric]:
            return {"bleu": proportion(3, 10)}

    tally = SequentialTally(Corpus(), "bleu", 0.1, int)
    tally.add(judged(0, [True]))
    metrics = tally.metrics()
    assert (metrics["bleu"].value, metrics["bleu"].low) == (0.3, None)
    assert metrics["score"].value == 1


# -- runs -----------------------------------------------------------------------------------------


def test_generated_task_runs_until_precision() -> None:
    report = proctor.evaluate("shapes/existence", "scripted/random", until_ci=0.08, group_by=["question"])
    run, metric = report.run, report.metrics["accuracy"]
    assert run.status == "done"
    assert run.reason.startswith("the score is known to ± 0.08, after ")
    assert f"ended          {run.reason}" in str(report)
    assert width(metric) <= 0.16
    assert 100 < metric.n == run.n < 600
    assert metric.method == METHOD
    assert f"({METHOD})" in str(report)
    methods = {m.method for group in run.groups["question"].values() for m in group.values()}
    assert methods == {METHOD}
    wider = proctor.evaluate("shapes/existence", "scripted/random", until_ci=0.2).run
    assert wider.n < run.n


def test_limit_bounds_samples() -> None:
    report = proctor.evaluate("shapes/existence", "scripted/random", until_ci=0.01, limit=50)
    assert (report.run.status, report.run.n) == ("done", 50)
    assert report.run.reason == "all 50 samples were run: too few to know the score to ± 0.01"


class Sorted(Task):
    """A given data set, the easy problems first."""

    fixed = True
    metric = "accuracy"

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        for i in range(config.limit_start, config.limit_start + self.count(config)):
            yield Sample(str(i), i, "?", target="easy" if i < 1_000 else "hard")

    def count(self, config: RunConfig) -> int:
        return min(config.limit or 2_000, 2_000)

    def score_text(self, sample: Sample, text: str) -> Score:
        return Score(float(sample.target == "easy"))


def test_fixed_data_set_is_shuffled_by_seed() -> None:
    report = proctor.evaluate(Sorted, "scripted/oracle", until_ci=0.05, seed=1)
    asked = {record.sample.index for record in report.records()}
    assert 200 < len(asked) < 1_500
    metric = report.metrics["accuracy"]
    low, high = ends(metric)
    assert low <= 0.5 <= high, "not only the easy ones at its beginning"
    first = sorted(range(2_000), key=lambda index: order_key(index, 1, fixed=True))[: len(asked)]
    assert asked == set(first)
    assert {
        r.sample.index for r in proctor.evaluate(Sorted, "scripted/oracle", until_ci=0.05, seed=2).records()
    } != asked


class Variants(Sorted):
    """From the middle on, ten variants of each problem."""

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        for sample in super().samples(config):
            yield msgspec.structs.replace(sample, cluster=str(sample.index // 10) if sample.index >= 1_000 else "")


class EndlessVariants(Variants):
    fixed = False


@pytest.mark.parametrize(("task", "first"), [(Variants, 0), (EndlessVariants, 1_000)])
def test_samples_that_are_not_independent_are_refused(task: type[Task], first: int) -> None:
    """Ten variants that are right or wrong together are one sample: the interval would be three times too narrow."""
    with pytest.raises(UsageError, match=r"until_ci: samples of .* are not independent \(1000 belongs to the cluster"):
        proctor.evaluate(task, "scripted/oracle", until_ci=0.05, limit_start=first, limit=1_500)
    assert proctor.evaluate(Variants, "scripted/oracle", until_ci=0.05, limit=1_000).run.status == "done"


def test_resumed_run_equals_uninterrupted_run(adding: str, serve: Serve) -> None:
    """Stopped in the middle by a budget, twice: the same interval as from all scores in their order."""

    def reply(body: dict[str, Any], number: int) -> Any:
        answer = right_sum(body, number)
        return answer if int(answer) * 7 % 22 < 12 else "wrong"

    server = serve(reply)
    options: dict[str, Any] = {"base_url": server.url, "until_ci": 0.1, "epochs": 2, "max_tokens": 2}
    run = proctor.evaluate(adding, "openai/m", max_tokens_total=900, **options).run
    assert run.status == "interrupted"
    assert run.metrics["accuracy"].method == METHOD
    assert resume(run.id, {"max_tokens_total": 1_800}).run.status == "interrupted"
    report = resume(run.id, {"max_tokens_total": 10**6})
    metric = report.metrics["accuracy"]
    assert report.run.status == "done"
    assert width(metric) <= 0.2
    assert len(server.requests) == report.run.n == 2 * metric.n
    expected = ConfidenceSequence(0.1)
    for index in range(metric.n):
        expected.add(float(2 * index * 7 % 22 < 12))
    assert metric == expected.metric()
    once = proctor.evaluate(adding, "openai/m", concurrency=1, **options).metrics["accuracy"]
    assert once.n <= metric.n
    assert resume(run.id, {}).run.n == report.run.n, "there is nothing left to do"


def test_failed_samples_are_left_out(adding: str, serve: Serve) -> None:
    from aiohttp import web

    def reply(body: dict[str, Any], number: int) -> Any:
        answer = right_sum(body, number)
        if int(answer) % 40 == 0:
            return web.json_response({"error": {"message": "no"}}, status=400)
        return answer

    server = serve(reply)
    run = proctor.evaluate(adding, "openai/m", base_url=server.url, until_ci=0.05).run
    assert run.errors >= 1
    assert run.metrics["accuracy"].n == run.n
    assert ends(run.metrics["accuracy"])[0] >= 0.9


def test_invalid_precisions_are_refused(adding: str) -> None:
    for wrong in (0, 0.5, -1, "narrow"):
        with pytest.raises(UsageError, match="until_ci"):
            build_config({"task": "t", "model": "m", "until_ci": wrong})
    with pytest.raises(UsageError, match="without judging no score gets known"):
        build_config({"task": "t", "model": "m", "until_ci": 0.1, "generation_only": True})
    run = proctor.evaluate(adding, "scripted/oracle", until_ci=0.1).run
    with pytest.raises(UsageError, match=r"until_ci was 0.1, now 0.05"):
        resume(run.id, {"until_ci": 0.05})


def test_a_comparison_says_that_it_does_not_allow_for_the_stop() -> None:
    runs = [proctor.evaluate("shapes/existence", f"scripted/{name}", until_ci=0.2, limit=30).run.id for name in
            ("random", "majority")]  # fmt: skip
    notes = proctor.compare(*runs, shared=True).notes
    assert [note.partition(" stopped")[0] for note in notes if "until_ci" in note] == runs


def test_the_flag(proctor: Command) -> None:
    done = proctor("run", "shapes/existence", "--model", "scripted/oracle", "--until-ci", "0.1")
    assert done.returncode == 0
    assert "known to ± 0.1" in done.stdout
    assert METHOD in done.stdout
