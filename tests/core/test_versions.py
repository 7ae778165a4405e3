"""Runs of a task whose version changed: never resumed, compared or ranked with new ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import proctor as package
from conftest import Command
from proctor.analysis.curve import gather_curves
from proctor.analysis.report import Report
from proctor.core import registry
from proctor.core.errors import NotComparableError, UsageError
from proctor.core.evaluation import resume
from proctor.core.types import Run
from proctor.viewer.queries import describe_run_options

TASK, MODEL = "shapes/existence", "scripted/random"
Raise = Callable[[], None]


@pytest.fixture
def raise_version(monkeypatch: pytest.MonkeyPatch) -> Raise:
    """Changes the version of the task."""

    def change() -> None:
        task_class = registry.load_task_class(TASK)
        monkeypatch.setattr(task_class, "version", f"{task_class.version}.changed")

    return change


def exam(**options: Any) -> Report:
    return package.evaluate(TASK, MODEL, **({"limit": 20} | options))


@pytest.fixture
def both(raise_version: Raise) -> tuple[Run, Run]:
    old = exam().run
    raise_version()
    return old, exam().run


def test_resume_refuses_an_old_task_version(raise_version: Raise) -> None:
    old = exam(generation_only=True).run
    raise_version()
    with pytest.raises(
        UsageError, match=rf"used version {old.version} of {TASK}, which is now version {old.version}\.changed"
    ):
        resume(old.id, {"generation_only": False})


def test_compare_refuses_different_versions(both: tuple[Run, Run], proctor: Command) -> None:
    old, new = both
    with pytest.raises(NotComparableError, match=f"between version {old.version} and version {new.version}"):
        package.compare(old.id, new.id)
    assert proctor("compare", old.id, new.id, "--shared", "--by-id").returncode == 2


def test_each_version_has_a_leaderboard(both: tuple[Run, Run], proctor: Command) -> None:
    boards = json.loads(proctor("leaderboard", "--json").stdout)["boards"]
    assert [(board["version"], len(board["entries"])) for board in boards] == [(run.version, 1) for run in both]


def test_list_of_runs_shows_versions(both: tuple[Run, Run]) -> None:
    assert describe_run_options(both) == {run.id: f"version={run.version}" for run in both}
    assert describe_run_options(both[:1]) == {both[0].id: ""}


def test_each_version_has_a_curve(raise_version: Raise) -> None:
    sizes: list[dict[str, Any]] = [{"shapes": 3}, {"shapes": 5}]
    reports = [exam(settings=settings) for settings in sizes]
    raise_version()
    reports += [exam(settings=settings) for settings in sizes]
    curves = gather_curves(reports)
    versions = [report.run.version for report in reports[::2]]
    assert [curve.label for curve in curves] == [f"{TASK} (version {version}) · {MODEL}" for version in versions]
    assert [len(curve.points) for curve in curves] == [2, 2]
