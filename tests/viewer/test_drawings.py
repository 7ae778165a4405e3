"""Drawings of stored samples."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

import proctor
from proctor.core import registry
from proctor.core.task import create_task
from proctor.store import open_store
from proctor.viewer.drawings import Drawings

TASKS = [name for name in registry.task_names() if name.startswith("shapes/")]


@pytest.mark.parametrize("name", TASKS)
def test_drawing_matches_the_sample(name: str) -> None:
    report = proctor.evaluate(name, "scripted/oracle", limit=3, limit_start=4, seed=5, few_shot=1, shots="other")
    task = create_task(registry.load_task_class(name), name, report.run.config["settings"])
    drawings = Drawings()
    for record in report.records():
        drawn = drawings.draw(report.run, record.sample)
        assert (drawn is not None) == task.has_pictures()
        if drawn is not None:
            shapes = list(ElementTree.fromstring(drawn))[1:]  # without the ground
            question = record.sample.input[-1]
            assert not isinstance(question, str)
            described = re.findall(r"^- .* at \(", question.text, re.MULTILINE)
            assert len(shapes) == len(described)


def test_sample_of_another_version_is_not_drawn() -> None:
    report = proctor.evaluate("shapes/count", "scripted/oracle", limit=2)
    (first, second) = report.records()
    older = msgspec.structs.replace(report.run, version="0")
    assert Drawings().draw(report.run, first.sample) is not None
    assert Drawings().draw(older, first.sample) is None
    other = msgspec.structs.replace(first.sample, metadata=second.sample.metadata)
    assert Drawings().draw(report.run, other) is None


def test_task_files_are_not_run(tmp_path: Path) -> None:
    """A store may come from elsewhere, and a file of the same name may be here."""
    trap = tmp_path / "trap.py"
    trap.write_text("raise SystemExit('this was run')")
    store = open_store(str(tmp_path / "store"))
    run = proctor.evaluate("shapes/count", "scripted/oracle", limit=1, store=str(tmp_path / "store")).run
    (record,) = store.records(run)
    assert Drawings().draw(msgspec.structs.replace(run, task=f"{trap}:Trap"), record.sample) is None
    assert Drawings().draw(msgspec.structs.replace(run, task="nowhere/nothing"), record.sample) is None
