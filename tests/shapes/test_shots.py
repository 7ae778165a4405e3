"""Worked examples: the remaining pairs of the canvas, and others of other canvases."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

import proctor as package
from conftest import Command
from helpers.shapes_settings import sizes
from proctor.core.config import build_config
from proctor.core.errors import UsageError
from proctor.core.task import create_task, take_samples
from proctor.core.types import Message, Sample
from proctor.shapes import Shape, Task
from proctor.shapes.loader import load_item, load_shots
from proctor.shapes.pixels import read_png
from proctor.shapes.questions import asks_alike, things_in
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS


class Corners(Task):
    """A user's task, as the guide wants it: three pairs about one canvas."""

    instruction = "Answer with one word."

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        return [
            ("Which form is first?", shapes[0].form),
            ("Which colour is second?", shapes[1].colour),
            ("Which size is third?", shapes[2].size),
        ]


def samples(cls: type[Task], n: int = 5, settings: dict[str, Any] | None = None, **options: Any) -> list[Sample]:
    task = create_task(cls, "mine", settings or {})
    return list(take_samples(task, build_config({"task": "mine", "model": "scripted/oracle", "limit": n} | options)))


def turns(sample: Sample) -> list[tuple[str, str]]:
    assert not isinstance(sample.input, str)
    return [(message.role, message.text) for message in sample.input]


def test_the_remaining_pairs_of_the_canvas_are_the_worked_examples() -> None:
    task = create_task(Corners, "mine", {})
    for sample in samples(Corners, few_shot=2):
        item = load_item(task, sample.index, 5)
        assert turns(sample) == [
            ("user", f"{item.description}\n\nWhich colour is second? Answer with one word."),
            ("assistant", item.shapes[1].colour),
            ("user", "Which size is third? Answer with one word."),
            ("assistant", item.shapes[2].size),
            ("user", "Which form is first? Answer with one word."),
        ]
        assert sample.target == item.shapes[0].form


def test_one_worked_example_is_the_second_pair() -> None:
    for sample in samples(Corners, few_shot=1):
        assert [text.partition("?")[0].rpartition("\n")[2] for role, text in turns(sample) if role == "user"] == [
            "Which colour is second",
            "Which form is first",
        ]


def test_what_the_canvas_does_not_have_comes_from_other_canvases_first() -> None:
    for sample, fewer in zip(samples(Corners, few_shot=4), samples(Corners, few_shot=2), strict=True):
        shown = turns(sample)
        assert shown[4:] == turns(fewer), "the canvas asked about comes last, undivided"
        described = [text.partition("\n\n")[0] for _, text in shown if "\n\n" in text]
        assert len(described) == len(set(described)) == 3
        assert [text.endswith("Which form is first? Answer with one word.") for _, text in shown[:4:2]] == [True] * 2


def test_worked_examples_of_other_canvases_can_be_asked_for() -> None:
    for sample in samples(Corners, few_shot=2, shots="other"):
        described = [text.partition("\n\n")[0] for role, text in turns(sample) if role == "user"]
        assert len(set(described)) == 3
        assert all(text.startswith("A canvas shows") for text in described)


def test_no_worked_example_asks_the_evaluated_question_again() -> None:
    class Repeating(Task):
        def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
            a, b = sorted(shapes[:2], key=lambda shape: shape.x)
            return [
                (f"Is the {a} to the left of the {b}?", "Yes"),
                (f"Is the {a} to the left of the {b}?", "Yes"),
                (f"Is the {b} to the left of the {a}?", "No"),
                (f"Is the {b} to the right of the {a}?", "Yes"),
                (f"Is the {shapes[2]} on the canvas?", "Yes"),
                (f"Is the {shapes[2]} on the canvas?", "Yes"),
            ]

    task = create_task(Repeating, "mine", {})
    for index in range(20):
        item = load_item(task, index, 20)
        *others, last = load_shots(task, index, 3, item)
        assert last.question == f"Is the {item.shapes[2]} on the canvas?"
        assert [shot.shapes is item.shapes for shot in others] == [False, False]


@pytest.mark.parametrize(
    ("question", "other", "alike"),
    [
        ("Is there a red circle?", "Is there a red circle?", True),
        ("Is there a red circle?", "Is there a shape that is red?", True),
        ("How many small red shapes are there?", "How many red shapes are there?", True),
        ("Is there a red circle?", "Is there a blue circle?", False),
        ("Is there a red shape?", "Is there a circle?", False),
        ("How many large circles are there?", "How many large squares are there?", False),
        ("Are there more red shapes than circles?", "Are there more circles than red shapes?", True),
        ("Is A between B and C?", "Is B between A and C?", True),
        ("Where is the small red circle relative to the large blue square?",) * 2 + (True,),
        (
            "Where is the small red circle relative to the large blue square?",
            "Where is the large blue square relative to the small red circle?",
            True,
        ),
        (
            "Is the small red circle to the left of the large blue square?",
            "Is the large blue square to the right of the small red circle?",
            True,
        ),
        (
            "Where is the small red circle relative to the large blue square?",
            "Where is the small red circle relative to the large green square?",
            False,
        ),
        ("Which shape is leftmost?", "Which shape is second from the top?", False),
        ("What colour is the shape at (3, 4) now?", "What colour is the shape at (4, 3) now?", False),
    ],
)
def test_which_questions_are_alike(question: str, other: str, alike: bool) -> None:
    assert asks_alike(question, other) == asks_alike(other, question) == alike


def test_the_things_that_a_question_names() -> None:
    assert things_in("Are there more small red circles than shapes that are large and green?") == [
        {"small", "red", "circle"},
        {"large", "green"},
    ]
    assert things_in("Two squares on squared paper, one redder") == [{"square"}]


# -- the tasks of the family -----------------------------------------------------------------------


# How many of 20 samples have both examples from their own canvas, at least. In a line, each place holds one shape.
BOTH = {"shuffle_tracking": 0, "undetermined": 7} | dict.fromkeys(("between", "move_tracking", "odd_one_out"), 10)


@pytest.mark.parametrize("name", REGISTERED_TASKS)
def test_worked_examples_of_the_same_canvas_are_proven(name: str) -> None:
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", {})
    found = samples(REGISTERED_TASKS[name], 20, few_shot=2)
    assert [fault for sample in found for fault in task.proofs(sample)] == []
    both = sum(
        [("\n\n" in text) for role, text in turns(sample) if role == "user"] == [True, False, False] for sample in found
    )
    assert both >= BOTH.get(name, 18)


@sizes(150, 20_000)
@pytest.mark.parametrize("name", REGISTERED_TASKS)
def test_no_worked_example_tells_the_answer(name: str, count: int) -> None:
    """Neither by being the answer, nor by being another one, nor by where it comes from."""
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", {})
    hits: Counter[bool] = Counter()
    chances: dict[bool, list[float]] = {True: [], False: []}
    for index in range(count):
        item = load_item(task, index, count)
        (shot,) = load_shots(task, index, 1, item)
        if shot.answer in item.choices:
            same_canvas = shot.shapes is item.shapes
            hits[same_canvas] += shot.answer == item.answer
            chances[same_canvas].append(1 / len(item.choices))
    for same_canvas, expected in chances.items():
        luck = 4 * sum(chance * (1 - chance) for chance in expected) ** 0.5
        assert abs(hits[same_canvas] - sum(expected)) <= 0.01 * count + luck, "not more than a point of all items"


# -- pictures and runs -----------------------------------------------------------------------------


@pytest.mark.parametrize("modality", ["image", "both"])
def test_each_canvas_is_shown_once(modality: str) -> None:
    for sample in samples(Corners, few_shot=3, modality=modality):
        assert not isinstance(sample.input, str)
        asked = [message for message in sample.input if message.role == "user"]
        assert [len(message.images) for message in asked] == [1, 1, 0, 0]
        canvases = [read_png(message.images[0].data) for message in asked[:2]]
        assert canvases[0] != canvases[1]
    assert list(create_task(Corners, "mine", {}).proofs(sample)) == []


def test_the_source_of_worked_examples_is_part_of_a_run(proctor: Command) -> None:
    flags = ["--model", "scripted/oracle", "--limit", "3", "--few-shot", "2"]
    assert proctor("run", "shapes/count", *flags, "--shots", "other").returncode == 0
    refused = proctor("resume", "latest", "--shots", "same")
    assert refused.returncode == 2
    assert "shots 'other' → 'same'" in refused.stderr
    shown = proctor("show", "shapes/count", "--few-shot", "2", "--shots", "other").stdout
    assert len(re.findall("A canvas shows", shown)) == 3
    assert proctor("show", "shapes/count", "--few-shot", "2").stdout.count("A canvas shows") < 3
    with pytest.raises(UsageError, match="shots"):
        package.evaluate("shapes/count", "scripted/oracle", shots="mine")


def test_stored_messages_are_what_was_asked() -> None:
    report = package.evaluate("shapes/count", "scripted/oracle", limit=3, few_shot=2)
    for record in report.records():
        assert all(isinstance(message, Message) for message in record.sample.input)
        assert record.score is not None
        assert record.score.value == 1
