"""A library that is missing where programs run is named, and never held against a program."""

from __future__ import annotations

import pytest

import proctor
from code_tasks import make_task, results, rows, write_rows
from proctor.code.libraries import MissingLibraryError, imported
from proctor.code.tasks.apps import APPS
from proctor.code.tasks.ds1000 import DS1000

pytestmark = pytest.mark.usefixtures("one_sandbox")

ABSENT = "no_such_library"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (
            "import numpy as np, scipy.stats\nfrom pandas.testing import assert_frame_equal",
            {"numpy", "scipy", "pandas"},
        ),
        ('code = r"""\nimport torch\n"""', {"torch"}),
        ("def f():\n    from sklearn import svm  # import tensorflow", {"sklearn"}),
        ("important = from_here = 1", set()),
    ],
)
def test_imports_are_found_wherever_they_stand(source: str, names: set[str]) -> None:
    assert imported(source) == names


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more library in the environment of the benchmark, which nobody has installed."""
    for cls in (DS1000, APPS):
        monkeypatch.setattr(cls, "LIBRARIES", {**cls.LIBRARIES, ABSENT: "no-such-package"})


@pytest.mark.usefixtures("absent")
def test_a_missing_library_is_an_error_of_the_sample_with_its_name() -> None:
    row, needy = rows("ds1000")[0], rows("ds1000")[1]
    needy["code_context"] = f"import {ABSENT}\n{needy['code_context']}"
    report = proctor.evaluate(
        "code/ds1000-numpy-completion", "scripted/oracle", data=write_rows(row, needy), allow_code_execution=True
    )
    assert report.run.errors == 1
    assert report.metrics["pass@1"].value == 1
    assert report.metrics["pass@1"].n == 1
    (error,) = (record.error for record in report.records() if record.error)
    assert (error.kind, error.type) == ("judge", "MissingLibraryError")
    assert ABSENT in error.message
    assert "install no-such-package" in error.message


@pytest.mark.usefixtures("absent")
def test_so_it_is_where_the_answer_needs_it() -> None:
    task = make_task("ds1000-numpy-completion", rows("ds1000")[0])
    with pytest.raises(MissingLibraryError, match=ABSENT):
        results(task, f"import {ABSENT}\nresult = a.sum(axis=0)")
    answer = "import unheard_of\nresult = a.sum(axis=0)"  # no part of the benchmark's environment: a mistake
    assert results(task, answer)["pass@1"] == 0


@pytest.mark.usefixtures("absent")
def test_a_program_that_passes_all_the_same_is_no_error() -> None:
    task = make_task("apps-introductory", rows("apps")[0])
    solution = task.solution(task.rows()[0])
    assert results(task, f"try:\n    import {ABSENT}\nexcept ImportError:\n    pass\n{solution}")["pass@1"] == 1
    with pytest.raises(MissingLibraryError, match=ABSENT):
        results(task, f"import {ABSENT}\n{solution}")
