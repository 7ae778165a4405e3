import json
import sys

import msgspec
import pytest

import proctor
from conftest import TaskFile
from proctor.core.errors import MissingExtraError, TooManyErrorsError
from proctor.core.types import Metric
from proctor.store import open_store


def test_prints_as_a_table(adding: str, each_store: str) -> None:
    text = str(proctor.evaluate(adding, "scripted/oracle", group_by=["odd"]))
    assert "accuracy       1.000 ± 0.000   95 % interval 0.722 – 1.000 (wilson)" in text
    assert "odd = 0" in text
    assert "outcomes       correct 10" in text


def test_report_names_only_settings_that_differ_from_the_default(adding: str) -> None:
    report = proctor.evaluate("shapes/existence", "scripted/oracle", limit=2, settings={"shapes": 5})
    assert "  settings       shapes=5\n" in str(report)
    assert "  settings  " not in str(proctor.evaluate(adding, "scripted/oracle"))


def test_dict_is_plain_json(adding: str, each_store: str) -> None:
    report = proctor.evaluate(adding, "scripted/oracle")
    assert json.loads(json.dumps(report.to_dict())) == report.to_dict()


def test_to_pandas(adding: str, each_store: str) -> None:
    frame = proctor.evaluate(adding, "scripted/oracle", limit=4).to_pandas()
    assert list(frame["score"]) == [1.0] * 4
    assert list(frame["metadata.odd"]) == [0, 1, 0, 1]


def test_to_pandas_names_the_missing_extra(adding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    report = proctor.evaluate(adding, "scripted/oracle")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'proctor-eval\[pandas\]'"):
        report.to_pandas()


def test_html_is_escaped(task_file: TaskFile) -> None:
    report = proctor.evaluate(f"{task_file('from adding import *')}:Adding", "scripted/oracle")
    object.__setattr__(report, "run", msgspec.structs.replace(report.run, candidate="<script>alert(1)</script>"))
    assert "<script>" not in report._repr_html_()
    assert "<table>" in report._repr_html_()


def test_report_without_scores(adding: str, each_store: str) -> None:
    with pytest.raises(TooManyErrorsError) as caught:
        proctor.evaluate(adding, "scripted/random", limit=3)
    assert caught.value.run is not None
    report = proctor.Report(caught.value.run, open_store().url)
    assert "– (nothing scored)" in str(report)
    assert "NOT COMPLETE: failed (Stopped after 3 failed samples of 3" in str(report)
    assert report.to_dict()["metrics"]["accuracy"]["value"] is None


def test_single_value_has_no_interval(adding: str) -> None:
    report = proctor.evaluate(adding, "scripted/oracle", limit=1)
    report.run.metrics["accuracy"] = Metric(0.5, None, None, None, 1, "student-t")
    assert "interval" not in str(report)
