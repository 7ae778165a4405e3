"""The evidence of a sample: the fewest lines of its description that fix the answer."""

from itertools import combinations
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import proctor
from helpers.shapes_settings import settings_of, slow
from helpers.worlds import fixes, lines_of
from proctor.core.config import build_config
from proctor.core.errors import TaskError
from proctor.core.task import create_task
from proctor.shapes import Shape, ShapeDataset, Task
from proctor.shapes.loader import load_item, load_row, load_sample
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS

TRIES = 2000  # worlds, before a set of lines counts as fixing the answer; others are found out sooner

SMALL: list[tuple[str, dict[str, Any]]] = [
    *((name, {"shapes": 3}) for name in ("existence", "count", "comparison", "logic", "superlative", "nearest")),
    *((name, {"shapes": 3, "description": "partial"}) for name in ("existence", "count", "logic", "superlative")),
    ("coordinate", {"shapes": 4}),
    ("between", {"shapes": 5}),
    ("odd_one_out", {"shapes": 6}),
    ("transitivity", {"shapes": 5}),
    ("undetermined", {"shapes": 5}),
    ("multi_hop", {"shapes": 4, "hops": 3}),
    ("shuffle_tracking", {"shapes": 3, "events": 2}),
    ("shuffle_tracking", {"shapes": 2, "events": 2}),
    ("move_tracking", {"shapes": 3, "events": 2}),
    ("recolour_tracking", {"shapes": 4, "events": 2}),
    ("existence_tracking", {"shapes": 2, "events": 2}),
    ("existence_tracking", {"shapes": 3, "events": 1, "description": "partial"}),
]
LARGER: list[tuple[str, dict[str, Any]]] = [
    *((name, {"shapes": n}) for name in ("existence", "count", "comparison", "logic", "superlative") for n in (2, 5)),
    *(
        (name, {"shapes": 4, "description": kind})
        for name in ("existence", "count", "comparison", "logic", "superlative")
        for kind in ("full", "partial")
    ),
    ("nearest", {"shapes": 5}),
    ("coordinate", {"shapes": 5}),
    ("between", {"shapes": 5, "description": "partial"}),
    ("odd_one_out", {"shapes": 6, "description": "partial"}),
    ("transitivity", {"shapes": 8}),
    ("undetermined", {"shapes": 7}),
    ("multi_hop", {"shapes": 8, "hops": 5}),
    ("shuffle_tracking", {"shapes": 4, "events": 5}),
    ("move_tracking", {"shapes": 4, "events": 4}),
    ("recolour_tracking", {"shapes": 6, "events": 4}),
    ("existence_tracking", {"shapes": 4, "events": 4}),
    ("existence_tracking", {"shapes": 4, "events": 3, "description": "full"}),
]


def made(name: str, chosen: dict[str, Any]) -> Task:
    return create_task(REGISTERED_TASKS[name], f"shapes/{name}", chosen).seeded(5)


def check(task: Task, index: int, tries: int) -> None:
    item, random = load_item(task, index, 1000), Random(index)
    assert item.evidence is not None
    lines = range(len(lines_of(item)[1]))
    for kept in combinations(lines, item.evidence - 1):
        assert not fixes(task, item, kept, tries, random), f"{item.evidence - 1} lines are enough: {kept}\n{item}"
    enough = any(fixes(task, item, kept, tries, random) for kept in combinations(lines, item.evidence))
    assert enough, f"{item.evidence} lines are not enough\n{item}"


@pytest.mark.parametrize(("name", "chosen"), SMALL)
def test_as_many_lines_fix_the_answer_and_fewer_do_not(name: str, chosen: dict[str, Any]) -> None:
    for index in range(4):
        check(made(name, chosen), index, 400)


@pytest.mark.parametrize(("name", "chosen"), [slow(*case) for case in SMALL + LARGER])
def test_the_evidence_of_many_samples_is_proven(name: str, chosen: dict[str, Any]) -> None:
    for index in range(10, 20):
        check(made(name, chosen), index, TRIES)


@pytest.mark.parametrize("name", REGISTERED_TASKS)
@settings(max_examples=8)
@given(data=st.data(), index=st.integers(0, 10**6))
def test_no_sample_takes_fewer_lines_than_its_task(name: str, data: st.DataObject, index: int) -> None:
    """What probes go by holds for every sample, at any settings; and nothing takes more lines than there are."""
    task = made(name, data.draw(settings_of(name)))
    item = load_item(task, index, index + 1)
    assert item.evidence is not None
    assert 1 <= task.lines_needed <= item.evidence <= len(lines_of(item)[1])


def test_the_evidence_of_every_task_is_proven() -> None:
    assert {name for name, _ in SMALL} == REGISTERED_TASKS.keys()


@pytest.mark.parametrize(("name", "answer", "evidence"), [("existence", "Yes", 1), ("existence", "No", 7)])
def test_samples_rows_and_items_carry_it(name: str, answer: str, evidence: int) -> None:
    dataset = ShapeDataset(f"shapes/{name}", n=20)
    config = build_config({"task": f"shapes/{name}", "model": "scripted/oracle", "limit": 20})
    rows = [msgspec.json.decode(line) for line in b"".join(dataset.task.json_lines(config, range(20))).splitlines()]
    samples = list(dataset.task.samples(config))
    index = next(i for i, row in enumerate(rows) if row["answer"] == answer)
    assert rows[index]["evidence"] == dataset[index].evidence == samples[index].metadata["evidence"] == evidence


class Silent(Task):
    """Does not say how many lines it takes."""

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        return [(f"What colour is the {shapes[0].size} {shapes[0].form}?", shapes[0].colour)]


class Saying(Silent):
    lines: Any = 1

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        self.evidence = self.lines
        return super().generate_questions(shapes, selected_answer)


def test_a_task_of_ones_own_may_say_it() -> None:
    silent, saying = create_task(Silent, "own", {}), create_task(Saying, "own", {})
    assert "evidence" not in load_sample(silent, 0, 1, 0, "text").metadata
    assert b"evidence" not in msgspec.json.encode(load_row(silent, 0, 1, 0))
    assert load_sample(saying, 0, 1, 0, "text").metadata["evidence"] == 1
    assert saying.evidence is None, "what a method sets lasts for one item"
    saying.lines = "one"
    with pytest.raises(TaskError, match="evidence is 'one', not a number"):
        load_item(saying, 0, 1)


def test_a_report_is_grouped_by_evidence() -> None:
    groups = proctor.evaluate("shapes/existence", "scripted/oracle", limit=20).run.groups
    assert {value: metrics["accuracy"].n for value, metrics in groups["evidence"].items()} == {"1": 10, "7": 10}


def test_many_groups_take_one_line_unless_they_were_asked_for() -> None:
    chosen: dict[str, Any] = {"task": "shapes/transitivity", "settings": {"shapes": 40}, "limit": 60}
    short = proctor.evaluate(model="scripted/oracle", **chosen)
    assert "evidence = " not in str(short)
    assert f"evidence       {len(short.run.groups['evidence'])} groups" in str(short)
    long = proctor.evaluate(model="scripted/oracle", group_by=["evidence"], **chosen)
    assert str(long).count("evidence = ") == len(long.run.groups["evidence"])
