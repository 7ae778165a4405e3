"""Worked examples: the remaining pairs of the canvas, and others of other canvases."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

import pytest
from scipy.stats import chi2, chi2_contingency

import proctor as package
from conftest import Command
from helpers.shapes_settings import sizes
from proctor.core.config import build_config
from proctor.core.errors import UsageError
from proctor.core.random import Stream
from proctor.core.task import create_task, take_samples
from proctor.core.types import Message, Sample
from proctor.shapes import Shape, Task, loader
from proctor.shapes.loader import Item, load_item, load_shots
from proctor.shapes.pixels import read_png
from proctor.shapes.questions import asks_alike, names_same, things_in
from proctor.shapes.relational import read_view, relate
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
        ("Is there a red circle?", "Is there a small red shape?", False),
        ("What colour is the shape at (3, 4) now?", "What colour is the shape at (4, 3) now?", False),
    ],
)
def test_which_questions_are_alike(question: str, other: str, alike: bool) -> None:
    assert asks_alike(question, other) == asks_alike(other, question) == alike


def test_which_questions_are_about_the_same_shapes() -> None:
    assert names_same("Is there a red circle?", "Is there a small red shape?")
    assert names_same("How many small shapes are there?", "Is there a blue circle?")
    assert not names_same("Is there a red circle?", "Is there a small blue shape?")
    left_of = "Is the {} to the left of the {}?"
    a, b, c, d = (f"small {colour} circle" for colour in ("red", "blue", "yellow", "green"))
    assert names_same(left_of.format(a, b), left_of.format(b, c))
    assert not names_same(left_of.format(a, b), left_of.format(c, d))


def test_the_things_that_a_question_names() -> None:
    assert things_in("Are there more small red circles than shapes that are large and green?") == [
        {"small", "red", "circle"},
        {"large", "green"},
    ]
    assert things_in("Two squares on squared paper, one redder") == [{"square"}]


# -- the tasks of the family -----------------------------------------------------------------------


# Of 20 samples, how many have an example of their own canvas, at least, and how many have two.
OWN = dict.fromkeys(REGISTERED_TASKS, (20, 18)) | {
    "between": (2, 0),
    "comparison": (12, 1),
    "move_tracking": (18, 14),
    "odd_one_out": (18, 10),
    "shuffle_tracking": (0, 0),  # in a line, each place holds one shape
    "transitivity": (12, 1),
    "undetermined": (2, 0),
}


@pytest.mark.parametrize("name", REGISTERED_TASKS)
def test_worked_examples_of_the_same_canvas_are_proven(name: str) -> None:
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", {})
    found = samples(REGISTERED_TASKS[name], 20, few_shot=2)
    assert [fault for sample in found for fault in task.proofs(sample)] == []
    asked = [[text for role, text in turns(sample) if role == "user"] for sample in found]
    own = [sum("\n\n" not in text for text in texts) for texts in asked]
    assert all(
        sum(number >= wanted for number in own) >= fewest for wanted, fewest in zip((1, 2), OWN[name], strict=True)
    )


@pytest.mark.parametrize("name", [name for name, task in REGISTERED_TASKS.items() if task.examples_apart])
def test_worked_examples_of_the_same_canvas_are_about_other_shapes(name: str) -> None:
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", {})
    for index in range(40):
        item = load_item(task, index, 40)
        own = [shot for shot in load_shots(task, index, 2, item) if shot.shapes is item.shapes]
        assert not any(names_same(shot.question, item.question) for shot in own)


Shown = tuple[Item, list[Item]]  # what is asked, and its worked examples


Case = tuple[Hashable, Hashable, str]  # what may be answered, what the examples show, and the answer


def case_of(shown: Shown, shots: int) -> Case:
    """Of the first examples, what they answer, and whether their canvas is the same."""
    item, examples = shown
    return item.choices, tuple((shot.answer, shot.shapes is item.shapes) for shot in examples[:shots]), item.answer


def related_case(shown: Shown) -> Case:
    """Of the first example, its answer and what its question has to do with the evaluated one."""
    item, (shot, *_) = shown
    asked, other = (read_view("", question, ()) for question in (item.question, shot.question))
    roles = tuple(relate(values, asked.asked) for values in other.asked)
    return item.choices, (asked.question, other.question, roles, shot.answer, shot.shapes is item.shapes), item.answer


def probability_of(cases: Iterable[Case]) -> float:
    """How likely answers would go so well with what is shown by luck, if it told nothing: by the test of chi-square.

    Whatever the way in which they go together: that an example has the same answer, or another, or that after each
    there is one that comes more often.
    """
    tables: dict[Hashable, dict[Hashable, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for choices, shown, answer in cases:
        tables[choices][shown][answer] += 1
    statistic, freedom = 0.0, 0
    for table in tables.values():
        answers = sorted({answer for counts in table.values() for answer in counts})
        often = [counts for counts in table.values() if counts.total() >= 5 * len(answers)]
        columns = [[counts[answer] for counts in often] for answer in answers]
        if len(often) > 1 and len(columns) > 1 and all(map(any, columns)):
            result = chi2_contingency(columns, correction=False)
            statistic, freedom = statistic + result.statistic, freedom + result.dof
    return float(chi2.sf(statistic, freedom)) if freedom else 1.0


def hits_of_choice(shown: Iterable[Shown], same_canvas: bool) -> tuple[int, list[float]]:
    """How often the answer of the first example is right, and how often by chance, where it is one of the choices."""
    found = [
        (shots[0].answer == item.answer, 1 / len(item.choices))
        for item, shots in shown
        if shots[0].answer in item.choices and (shots[0].shapes is item.shapes) == same_canvas
    ]
    return sum(hit for hit, _ in found), [chance for _, chance in found]


# What the first example has in common with the question tells 16 % (chance 12.5 %) and 54 % (chance 50 %), as the guide
# says: examples about other shapes alone would hardly ever be of the same canvas.
PARTLY_TOLD = ("coordinate", "multi_hop")
MANY_ANSWERS = 10  # of a task that asks for a shape, of which each sample shows a few
BY_LUCK = 1e-6  # of a family without a fault, about one run of this test in 10,000 fails


@sizes(300, 20_000)
@pytest.mark.parametrize("name", REGISTERED_TASKS)
def test_no_worked_example_tells_the_answer(name: str, count: int) -> None:
    """Neither by being the answer, nor by being another, nor by where it comes from; and no two of them together."""
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", {})
    items = [load_item(task, index, count) for index in range(count)]
    shown = [(item, load_shots(task, index, 2, item)) for index, item in enumerate(items)]
    for same_canvas in (True, False):
        hits, chances = hits_of_choice(shown, same_canvas)
        luck = 5 * sum(chance * (1 - chance) for chance in chances) ** 0.5
        assert abs(hits - sum(chances)) <= luck, "the answer of an example is the right one"
    if len(task.answers) < MANY_ANSWERS:
        assert min(probability_of(case_of(pair, shots) for pair in shown) for shots in (1, 2)) > BY_LUCK
        assert name in PARTLY_TOLD or probability_of(map(related_case, shown)) > BY_LUCK


def test_a_small_leak_of_worked_examples_is_found() -> None:
    """After each of three answers, another one is right in 36 %: the same one as often as chance has it."""
    random, answers = Stream(1), ("Yes", "No", "Cannot be determined")
    cases: list[Case] = []
    for _ in range(20_000):
        shot, number = random.below(3), random.below(300)
        step = 0 if number < 100 else 1 if number < 208 else 2
        cases.append((answers, answers[shot], answers[(shot + step) % 3]))
    assert abs(sum(shot == answer for _, shot, answer in cases) / len(cases) - 1 / 3) < 0.01
    assert probability_of(cases) < BY_LUCK
    assert probability_of((answers, shot, answers[random.below(3)]) for _, shot, _ in cases) > BY_LUCK


def test_what_an_example_has_in_common_with_the_question_would_tell_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(REGISTERED_TASKS["transitivity"], "examples_apart", "")
    with pytest.raises(AssertionError):
        test_no_worked_example_tells_the_answer("transitivity", 300)


def test_without_rival_questions_the_examples_would_tell_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_rivals", lambda item: [])
    with pytest.raises(AssertionError):
        test_no_worked_example_tells_the_answer("count", 300)


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
