"""Comparison of runs: pairing, refusals, conclusions, the command."""

import json
from collections.abc import Callable, Sequence

import msgspec
import pytest
from scipy import stats

import proctor
from conftest import Command
from proctor.analysis.comparison import Comparison, compare
from proctor.core.errors import NotComparableError, UsageError
from proctor.core.runner import sample_digest
from proctor.core.types import Metric, Record, Run, Sample, SampleError, Score
from proctor.store import open_store

Put = Callable[..., str]


@pytest.fixture
def put() -> Put:
    """Writes a run with these values into the store: one per sample, or a list of them for its epochs."""

    def put(
        name: str,
        values: Sequence[float | list[float | None] | None],
        *,
        cluster: Callable[[int], str] = lambda index: "",
        question: str = "?",
        start: int = 0,
        metadata: Callable[[int], dict[str, object]] = lambda index: {},
        **changes: object,
    ) -> str:
        run = Run(
            id=name,
            task="shapes/count",
            version="1",
            candidate=f"model-{name}",
            config={"task": "shapes/count", "model": f"model-{name}", "settings": {"shapes": 7}, "seed": 0},
            provenance={},
            created=1.0,
            status="done",
        )
        run = msgspec.structs.replace(run, **changes)
        records = []
        for index, of_one in enumerate(values, start):
            sample = Sample(f"s{index}", index, question, metadata=metadata(index), cluster=cluster(index))
            for epoch, value in enumerate(of_one if isinstance(of_one, list) else [of_one]):
                failed = SampleError("model", "ModelError", "no") if value is None else None
                score = None if value is None else Score(value)
                records.append((Record(sample, epoch, score=score, error=failed), sample_digest(sample)))
        store = open_store()
        store.save(run)
        store.write(run, records)
        store.close()
        return name

    return put


def test_significant_difference_is_better(put: Put) -> None:
    put("a", [0] * 60 + [1] * 40)
    put("b", [1] * 20 + [0] * 40 + [1] * 38 + [0] * 2)
    result = compare("a", "b")
    (contrast,) = result.contrasts
    assert contrast.difference.value == pytest.approx(0.18)
    assert (contrast.difference.gained, contrast.difference.lost) == (20, 2)
    assert contrast.difference.p == pytest.approx(stats.binomtest(2, 22).pvalue)
    assert contrast.verdict == "better"
    assert result.conclusions == [
        "model-b is better than model-a by 18.0 points (95 % interval 9.9 – 27.3, p < 0.001, n = 100 pairs)."
    ]
    assert result.conclusions[0] in str(result)
    assert "interval: tango; test: mcnemar-exact" in str(result)


def test_swapped_runs_are_worse(put: Put) -> None:
    put("a", [0] * 60 + [1] * 40)
    put("b", [1] * 20 + [0] * 40 + [1] * 38 + [0] * 2)
    (contrast,) = compare("b", "a").contrasts
    assert contrast.verdict == "worse"
    assert contrast.conclusion == (
        "model-a is worse than model-b by 18.0 points (95 % interval 9.9 – 27.3, p < 0.001, n = 100 pairs)."
    )


def test_insignificant_difference_names_detectable_difference(put: Put) -> None:
    put("a", [0, 1] * 50)
    put("b", [1, 0] + [0, 1] * 49)
    (contrast,) = compare("a", "b").contrasts
    assert contrast.verdict == "unclear"
    assert contrast.conclusion.startswith("No significant difference between model-a and model-b: 0.0 points (")
    assert contrast.conclusion.endswith(" points with 80 % power.")
    assert contrast.detectable == pytest.approx(0.0767, abs=0.001)


def test_significance_requires_test_and_interval(put: Put) -> None:
    """Cavo's table: Tango's interval excludes 0, the exact p is 0.0525."""
    put("a", [0] * 6 + [1] * 16 + [0] * 139)
    put("b", [1] * 6 + [0] * 16 + [0] * 139)
    (contrast,) = compare("a", "b").contrasts
    assert contrast.difference.high is not None
    assert contrast.p is not None
    assert contrast.difference.high < 0 < 0.05 < contrast.p
    assert contrast.verdict == "unclear"
    assert "a difference is significant if both show it" in contrast.conclusion


def test_epochs_of_a_sample_count_as_one_pair(put: Put) -> None:
    put("a", [[0, 1, 0, 1]] * 20)
    put("b", [[1, 1, 0, 1]] * 10 + [[0, 1, 0, 1]] * 10)
    (contrast,) = compare("a", "b").contrasts
    assert (contrast.difference.n, contrast.difference.value) == (20, 0.125)
    assert (contrast.difference.interval, contrast.difference.test) == ("bootstrap", "sign-flip")
    assert {(flip.first, flip.second) for flip in contrast.gained} == {(0.5, 0.75)}


def test_failed_samples_are_left_out(put: Put) -> None:
    put("a", [1] * 10)
    put("b", [1] * 7 + [None] * 3)
    result = compare("a", "b")
    (contrast,) = result.contrasts
    assert (contrast.difference.n, contrast.difference.value, contrast.unscored) == (7, 0.0, (0, 3))
    assert "left out, not counted as wrong: 0 of the baseline, 3 of model-b." in str(result)


def test_failed_epoch_leaves_the_other_epochs(put: Put) -> None:
    put("a", [[1, None]] * 5)
    put("b", [[1, 0]] * 5)
    (contrast,) = compare("a", "b").contrasts
    assert (contrast.difference.n, contrast.difference.value) == (5, -0.5)


def test_clusters_count_as_one_unit(put: Put) -> None:
    """A hundred variants of ten problems: McNemar's test would be sure, but there are ten problems."""
    put("a", [0] * 100, cluster=lambda index: f"problem {index // 10}")
    put("b", [1] * 30 + [0] * 70, cluster=lambda index: f"problem {index // 10}")
    (contrast,) = compare("a", "b").contrasts
    assert (contrast.difference.n, contrast.difference.units) == (100, 10)
    assert contrast.p == 0.25, "three problems that all go one way"
    assert "n = 100 pairs in 10 clusters" in contrast.conclusion
    assert compare("a", "b").baseline.score.n == 10


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_clusters_of_one_run_suffice(put: Put, order: tuple[str, str]) -> None:
    put("a", [0, 1] * 10)
    put("b", [1, 1] * 10, cluster=lambda index: f"c{index // 4}")
    assert compare(*order).contrasts[0].difference.units == 5


def test_p_values_are_corrected_for_several_runs(put: Put) -> None:
    put("a", [0] * 50)
    put("b", [1] * 7 + [0] * 43)
    put("c", [1] * 6 + [0] * 44)
    put("d", [1] * 1 + [0] * 49)
    result = compare("a", "b", "c", "d")
    raw = [contrast.difference.p or 0.0 for contrast in result.contrasts]
    assert [contrast.p for contrast in result.contrasts] == pytest.approx([raw[0] * 3, raw[1] * 2, 1.0])
    assert [contrast.verdict for contrast in result.contrasts] == ["better", "unclear", "unclear"]
    assert "corrected for 3 comparisons" in result.contrasts[0].conclusion
    assert "corrected for 3 comparisons (Holm)" in result.conclusions[-1]


def test_flips_list_gained_and_lost_samples(put: Put) -> None:
    put("a", [1, 0, 0, 1])
    put("b", [0, 1, 0, 1])
    result = compare("a", "b")
    assert [flip.sample_id for flip in result.contrasts[0].gained] == ["s1"]
    assert [flip.sample_id for flip in result.contrasts[0].lost] == ["s0"]
    assert result.flips() == ("model-b: better on 1 samples\n  s1  0 → 1\nmodel-b: worse on 1 samples\n  s0  1 → 0")


def test_groups_of_the_baseline_are_compared(put: Put) -> None:
    groups = {"size": {"2": {"accuracy": Metric(0, None, None, None, 1, "wilson")}}}
    put("a", [0] * 20, metadata=lambda index: {"size": 2 if index < 10 else 10}, groups=groups)
    put("b", [1] * 10 + [0] * 10, metadata=lambda index: {"size": 2 if index < 10 else 10})
    (contrast,) = compare("a", "b").contrasts
    assert {value: d.value for value, d in contrast.groups["size"].items()} == {"2": 1.0, "10": 0.0}
    assert list(contrast.groups["size"]) == ["2", "10"]
    assert "model-b, by size" in str(compare("a", "b"))


def test_compare_works_with_every_kind_of_store(put: Put, each_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_STORE", each_store)
    for name, values in (("a", [[0, 0], [1, 0]]), ("b", [[1, 1], [1, None]])):
        put(name, values, cluster=lambda index: f"c{index}", metadata=lambda index: {"half": index})
    (contrast,) = compare("a", "b", group_by=["half"]).contrasts
    assert (contrast.difference.n, contrast.difference.value) == (2, 0.75)
    assert {value: d.value for value, d in contrast.groups["half"].items()} == {"0": 1.0, "1": 0.5}


def test_group_by_adds_groups(put: Put) -> None:
    put("a", [0, 0], metadata=lambda index: {"odd": bool(index % 2), "odder": 1})
    put("b", [0, 1], metadata=lambda index: {"odd": bool(index % 2), "odder": 1})
    (contrast,) = compare("a", "b", group_by=["odd", "absent"]).contrasts
    assert {value: d.value for value, d in contrast.groups["odd"].items()} == {"false": 0.0, "true": 1.0}
    assert "absent" not in contrast.groups


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"task": "shapes/existence"}, "different tasks, shapes/count and shapes/existence"),
        ({"version": "2"}, "of shapes/count changed between version 1 and version 2"),
        ({"config": {"settings": {"shapes": 9}}}, "the settings differ, shapes 7 and 9"),
        ({"config": {"settings": {"shapes": 7}, "program_timeout": 9.0}}, "program_timeout default and 9.0"),
    ],
)
def test_different_tasks_and_settings_are_refused(put: Put, changes: dict[str, object], reason: str) -> None:
    put("a", [0, 1])
    put("b", [0, 1], **changes)
    with pytest.raises(NotComparableError, match=reason):
        compare("a", "b", shared=True, by_id=True)


def test_changed_task_file_is_refused(put: Put) -> None:
    put("a", [0, 1], task="mine.py:Mine", provenance={"task_source": {"sha256": "1"}})
    put("b", [0, 1], task="mine.py:Mine", provenance={"task_source": {"sha256": "2"}})
    with pytest.raises(NotComparableError, match=r"the file of mine\.py:Mine changed between them"):
        compare("a", "b")


def test_different_samples_need_shared(put: Put) -> None:
    put("a", [0] * 10)
    put("b", [1] * 4, config={"settings": {"shapes": 7}, "limit": 4})
    with pytest.raises(NotComparableError) as caught:
        compare("a", "b")
    assert "they share 4 of 10 and 4" in str(caught.value)
    assert "limit default and 4" in str(caught.value)
    assert "--shared" in str(caught.value)
    result = compare("a", "b", shared=True)
    assert result.contrasts[0].difference.n == 4
    assert "only shared samples are compared: 6 of the baseline and 0 of model-b are left out." in result.notes


def test_shared_refuses_runs_without_shared_samples(put: Put) -> None:
    put("a", [0] * 3)
    put("b", [1] * 3, start=3)
    with pytest.raises(NotComparableError, match="they share 0 of 3 and 3"):
        compare("a", "b", shared=True)


def test_by_id_pairs_samples_with_different_prompts(put: Put) -> None:
    put("a", [0] * 3)
    put("b", [1] * 3, question="??", config={"settings": {"shapes": 7}, "few_shot": 2})
    with pytest.raises(NotComparableError, match=r"3 have the same id but different prompts; .*--by-id"):
        compare("a", "b", shared=True)
    result = compare("a", "b", by_id=True)
    assert result.contrasts[0].difference.n == 3
    assert "3 samples had another prompt in model-b (few_shot 0 and 2)" in result.notes[0]


def test_incomplete_run_is_noted(put: Put) -> None:
    put("a", [0] * 3)
    put("b", [1] * 2, status="interrupted")
    with pytest.raises(NotComparableError, match="b is not complete: interrupted"):
        compare("a", "b")
    assert "b is not complete (interrupted): its result may change." in compare("a", "b", shared=True).notes


@pytest.mark.parametrize("names", [("a", "a"), ("a",), ()])
def test_comparison_needs_two_different_runs(put: Put, names: tuple[str, ...]) -> None:
    put("a", [0, 1])
    with pytest.raises(UsageError):
        compare(*names)


# -- what could be seen ---------------------------------------------------------------------------


def test_detect_names_needed_pairs(put: Put) -> None:
    put("a", [0] * 60 + [1] * 40)
    put("b", [1] * 10 + [0] * 50 + [1] * 30 + [0] * 10)
    result = compare("a", "b", detect=0.05)
    assert result.contrasts[0].needed == 626, "Connor: (1.960 √0.2 + 0.842 √(0.2 − 0.05²))² / 0.05²"
    assert "takes 626 pairs that disagree as much as these 100" in str(result)


def test_detect_with_one_run_names_needed_samples(put: Put) -> None:
    put("a", [0, 1] * 50)
    result = compare("a", detect=0.25)
    assert result.needed == 58, "R: power.prop.test(p1 = .5, p2 = .75, power = .8), n = 57.7"
    assert "58 samples in each of two runs over different samples" in str(result)


@pytest.mark.parametrize("detect", [0.0, -0.1, 1.5])
def test_detect_must_be_between_zero_and_one(put: Put, detect: float) -> None:
    put("a", [0, 1])
    with pytest.raises(UsageError, match="between 0 and 1"):
        compare("a", detect=detect)


def test_detect_refuses_unreachable_difference(put: Put) -> None:
    put("a", [0, 1])
    with pytest.raises(UsageError, match=r"No run can differ this much from .*smaller --detect"):
        compare("a", detect=0.6)


def test_detect_needs_two_scored_samples(put: Put) -> None:
    put("a", [1])
    with pytest.raises(UsageError, match="1 scored samples: an estimate of their spread takes two"):
        compare("a", detect=0.1)


# -- names and forms ------------------------------------------------------------------------------


def test_runs_of_one_candidate_have_distinct_names(put: Put) -> None:
    settings = {"task": "shapes/count", "model": "m", "settings": {"shapes": 7}}
    put("a", [0, 1], candidate="m", config={**settings, "temperature": 0.0})
    put("b", [0, 1], candidate="m", config={**settings, "temperature": 0.7})
    result = compare("a", "b")
    assert [result.baseline.name, result.contrasts[0].competitor.name] == ["m (temperature 0.0)", "m (temperature 0.7)"]
    put("c", [0, 1], candidate="m", config={**settings, "temperature": 0.7})
    assert compare("b", "c").baseline.name == "m (b)"


def test_mean_is_named_after_its_metric(put: Put) -> None:
    accuracy = {"other": Metric(0.1, None, None, None, 2, ""), "accuracy": Metric(0.5, None, None, None, 2, "wilson")}
    put("a", [0, 1], metrics=accuracy)
    put("b", [0, 1])
    assert compare("a", "b").metric == "accuracy"
    assert compare("b", "a").metric == "score"


def test_comparison_as_json_and_html(put: Put) -> None:
    put("a", [0, 1, None])
    put("b", [1, 1, 0], candidate="<script>")
    result = compare("a", "b")
    assert json.loads(json.dumps(result.to_dict())) == result.to_dict()
    assert "gained" not in result.to_dict(flips=False)["contrasts"][0]
    assert "<script>" not in result._repr_html_()
    assert "<table>" in result._repr_html_()


def test_runs_without_common_scores(put: Put) -> None:
    put("a", [1, None])
    put("b", [None, 1])
    result = compare("a", "b")
    assert result.conclusions == ["Whether model-a and model-b differ is unknown: n = 0 pairs."]
    assert result.contrasts[0].second is None


def test_compare_accepts_reports(adding: str) -> None:
    first = proctor.evaluate(adding, "scripted/oracle")
    second = proctor.evaluate(adding, "scripted/blank")
    result = proctor.compare(first, second)
    assert isinstance(result, Comparison)
    assert result.contrasts[0].verdict == "worse"
    assert result.metric == "accuracy"


def test_compare_command(proctor: Command, put: Put) -> None:
    put("20260101-000000-aaaaaa", [0] * 12)
    put("20260101-000000-bbbbbb", [1] * 12)
    put("20260101-000000-cccccc", [1] * 12, version="2")
    done = proctor("compare", "20260101-000000-a", "20260101-000000-b", "--flips", "--detect", "0.02")
    assert (done.returncode, done.stderr) == (0, "")
    assert " is better than " in done.stdout
    assert "better on 12 samples" in done.stdout
    made = json.loads(proctor("compare", "20260101-000000-a", "20260101-000000-b", "--json").stdout)
    assert made["contrasts"][0]["verdict"] == "better"
    refused = proctor("compare", "20260101-000000-a", "20260101-000000-c")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("proctor: 20260101-000000-aaaaaa and 20260101-000000-cccccc cannot be compared")
