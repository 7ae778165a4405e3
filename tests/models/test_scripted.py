"""The scripted models."""

from __future__ import annotations

import json

import pytest

import proctor
from conftest import FailingRun, TaskFile
from proctor.core.errors import UsageError


def test_random_is_at_chance_and_repeatable() -> None:
    first, again = (proctor.evaluate("shapes/existence", "scripted/random", limit=400) for _ in range(2))
    metric = first.metrics["accuracy"]
    assert metric.low is not None
    assert metric.high is not None
    assert metric.low < 0.5 < metric.high
    assert [r.outputs[0].text for r in first.records()] == [r.outputs[0].text for r in again.records()]
    other = proctor.evaluate("shapes/existence", "scripted/random", limit=400, seed=1)
    assert other.metrics != first.metrics


def test_random_needs_choices(adding: str, failing_run: FailingRun) -> None:
    said, records = failing_run(adding, "scripted/random", limit=3)
    assert "closed set of answers" in said
    assert [record.outcome for record in records] == ["error"] * 3


def test_majority_scores_share_of_most_common_target(task_file: TaskFile) -> None:
    path = task_file(
        """
        from adding import *

        class Skewed(Adding):
            def samples(self, config):
                for s in super().samples(config):
                    yield Sample(s.id, s.index, s.input, "a" if s.index % 3 else "b")
        """
    )
    assert proctor.evaluate(f"{path}:Skewed", "scripted/majority", limit=9).metrics["accuracy"].value == 6 / 9


def test_replay_repeats_an_exported_run() -> None:
    from proctor.store.export import as_jsonl

    first = proctor.evaluate("shapes/existence", "scripted/random", limit=30, epochs=2, samples=2)
    with open("records.jsonl", "wb") as file:
        file.writelines(as_jsonl(first.records()))
    again = proctor.evaluate("shapes/existence", "scripted/replay:records.jsonl", limit=30, epochs=2, samples=2)
    assert again.metrics == first.metrics
    assert [[o.text for o in r.outputs] for r in again.records()] == [
        [o.text for o in r.outputs] for r in first.records()
    ]


def test_replay_without_an_output_is_an_error_not_a_wrong_answer(adding: str) -> None:
    with open("some.jsonl", "w") as file:
        file.write(json.dumps({"id": "add-1", "outputs": [{"text": "2"}]}) + "\n")
    report = proctor.evaluate(adding, "scripted/replay:some.jsonl", limit=3)
    assert (report.run.n, report.run.errors) == (1, 2)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("scripted/replay:none.jsonl", "Cannot read the replay file none.jsonl"),
        ("scripted/replay:bad.jsonl", "bad.jsonl, line 1"),
        ("scripted/orakel", "did you mean scripted/oracle"),
        ("scripted/", "Unknown model"),
    ],
)
def test_bad_scripted_names_are_refused(adding: str, name: str, said: str) -> None:
    with open("bad.jsonl", "w") as file:
        file.write('{"no": "record"}\n')
    with pytest.raises(UsageError, match=said):
        proctor.evaluate(adding, name)
