"""Steps on squared paper and lines that leave something open: all of it true of the canvas, and no cue tells."""

import math
import re
from collections.abc import Callable
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_shapes import guessed_right, samples

from helpers.shapes_settings import find, settings_of, sizes, slow, text_of
from proctor.core.errors import UsageError
from proctor.core.random import Stream
from proctor.core.task import create_task
from proctor.core.types import Sample
from proctor.shapes.canvas import HALF_WIDTH, board_for, draw_canvas
from proctor.shapes.loader import load_item
from proctor.shapes.patterns import shapes_in_text, words_of_values
from proctor.shapes.reading import places_in_text
from proctor.shapes.tasks.comparison import TWICE, comparable
from proctor.shapes.tasks.multi_hop import MultiHopTask
from proctor.shapes.tasks.undetermined import UndeterminedTask

Line = tuple[str, str, str]  # a shape, the word for where it is, another shape

NAME = r"(\w+ \w+ \w+)"
LINE = rf"- the {NAME} is (?:one step )?(?:to the )?(left|right|above|below)(?: of)? the {NAME}"
OPPOSITES = {"left": "right", "right": "left", "above": "below", "below": "above"}


def allowed(answers: int, count: int) -> float:
    """How often a guesser may be right who knows but one thing, over half of the samples: four standard errors."""
    chance = 1 / answers
    return chance + 4 * math.sqrt(chance * (1 - chance) / (count / 2))


def lines_of(text: str) -> list[Line]:
    return re.findall(LINE, text)


def asked_in(question: str) -> tuple[str, str]:
    first, second = re.findall(rf"the {NAME}", re.sub("to the (left|right)", "", question))
    return first, second


def distances(lines: list[Line], start: str) -> dict[str, int]:
    """How many lines there are between a shape and each that hangs together with it."""
    neighbours: dict[str, list[str]] = {}
    for a, _, b in lines:
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    found, ahead = {start: 0}, [start]
    for name in ahead:
        for other in neighbours[name]:
            if other not in found:
                found[other] = found[name] + 1
                ahead.append(other)
    return found


def words_for(name: str, lines: list[Line]) -> list[str]:
    """Where a shape is, by each of the lines that name it."""
    return [word if a == name else OPPOSITES[word] for a, word, b in lines if name in (a, b)]


def rates(made: list[Sample], see: Callable[[Sample], dict[str, object]]) -> dict[str, float]:
    """How often a guesser is right who knows nothing but one of the cues."""
    seen = [see(sample) for sample in made]
    return {
        cue: guessed_right([(str(s[cue]), sample.target) for s, sample in zip(seen, made, strict=True)])
        for cue in seen[0]
    }


def cues(sample: Sample) -> dict[str, object]:
    """What can be seen without following lines from shape to shape."""
    lines = lines_of(text_of(sample))
    a, b = asked_in(sample.metadata["question"])
    axis = find("left|right|above|below", sample.metadata["question"])[0]
    about_a, about_b = words_for(a, lines), words_for(b, lines)
    named = [i for i, (one, _, other) in enumerate(lines) if {one, other} & {a, b}]
    return {
        "word of the question": axis,
        "first line": (axis, lines[0][1]),
        "last line": (axis, lines[-1][1]),
        "words of the question among all": (axis, sum(word == axis for _, word, _ in lines)),
        "first mention of the first shape": (axis, about_a[0]),
        "last mention of the first shape": (axis, about_a[-1]),
        "last mention of the second shape": (axis, about_b[-1]),
        "last mentions of both": (axis, about_a[-1], about_b[-1]),
        "all mentions of the first shape": (axis, sorted(about_a)),
        "all mentions of both": (axis, sorted(about_a), sorted(about_b)),
        "numbers of mentions": (len(about_a), len(about_b)),
        "where they are mentioned": (named[0], named[-1]),
        "distance": distances(lines, a)[b],
    }


@given(settings_of("multi_hop"), st.integers(0, 1000))
def test_the_steps_are_true_of_the_canvas_and_lead_from_one_shape_to_the_other(
    settings: dict[str, int], seed: int
) -> None:
    task = create_task(MultiHopTask, "shapes/multi_hop", settings)
    task.seed = seed
    item = load_item(task, 0, 1)
    lines = lines_of(item.description)
    assert len(lines) == settings["shapes"] - 1
    shapes = {str(shape): shape for shape in item.shapes}
    for shape in item.shapes:
        assert max(abs(shape.x), abs(shape.y)) + HALF_WIDTH[shape.size] <= task.board.bound
    for one, other in combinations(item.shapes, 2):
        assert max(abs(one.x - other.x), abs(one.y - other.y)) > HALF_WIDTH[one.size] + HALF_WIDTH[other.size]
    for a, word, b in lines:
        dx, dy = shapes[a].x - shapes[b].x, shapes[a].y - shapes[b].y
        assert word == {(-7, 0): "left", (7, 0): "right", (0, 7): "above", (0, -7): "below"}[dx, dy]
    first, second = asked_in(item.question)
    between = distances(lines, first)
    assert len(between) == settings["shapes"], "all hangs together"
    assert between[second] == settings["hops"]
    assert shapes[first].x != shapes[second].x
    assert shapes[first].y != shapes[second].y


def test_a_question_of_steps_leaves_the_choice_between_two() -> None:
    for sample in samples(40, "multi_hop"):
        assert set(sample.choices) == (
            {"Left", "Right"} if "left" in sample.metadata["question"] else {"Above", "Below"}
        )


@sizes(1500, 8000)
@pytest.mark.parametrize(("shapes", "hops"), [(7, 4), slow(7, 5), slow(14, 4), (14, 9)])
def test_no_single_line_tells_where_many_steps_lead(shapes: int, hops: int, count: int) -> None:
    made = samples(count, "multi_hop", settings={"shapes": shapes, "hops": hops})
    assert {cue: rate for cue, rate in rates(made, cues).items() if rate > allowed(2, count)} == {}


@pytest.mark.parametrize(("shapes", "hops"), [(3, 3), (7, 7), (12, 47)])
def test_more_hops_than_shapes_are_refused(shapes: int, hops: int) -> None:
    with pytest.raises(UsageError) as caught:
        create_task(MultiHopTask, "shapes/multi_hop", {"shapes": shapes, "hops": hops})
    assert str(caught.value) == (
        f"shapes/multi_hop: settings: hops={hops} needs shapes={hops + 1} or more, got shapes={shapes}."
    )


@given(st.integers(4, 48), st.integers(0, 1000))
def test_the_lines_are_true_of_the_canvas_and_leave_something_open(n: int, seed: int) -> None:
    task = create_task(UndeterminedTask, "shapes/undetermined", {"shapes": n})
    task.seed = seed
    item = load_item(task, 0, 1)
    lines = lines_of(item.description)
    assert len(lines) == n - 1
    assert len({word in ("left", "right") for _, word, _ in lines}) == 1, "all of one axis"
    shapes = {str(shape): shape for shape in item.shapes}
    for a, word, b in lines:
        dx, dy = shapes[a].x - shapes[b].x, shapes[a].y - shapes[b].y
        assert {"left": dx < 0, "right": dx > 0, "above": dy > 0, "below": dy < 0}[word]
    first, second = asked_in(item.question)
    between = distances(lines, first)
    assert len(between) == n, "all hangs together"
    assert between[second] > 1, "no line names both"
    words = find("to the left of|to the right of|above|below", item.question)[0]
    at_that_distance = [(a, b) for a in shapes for b, d in distances(lines, a).items() if d == between[second]]
    answers = {UndeterminedTask.solve(item.description, f"Is the {a} {words} the {b}?") for a, b in at_that_distance}
    assert answers == {"Yes", "No", "Cannot be determined"}


@sizes(1500, 8000)
@pytest.mark.parametrize("shapes", [7, slow(9), slow(16)])
def test_no_single_line_and_no_distance_tells_what_is_undetermined(shapes: int, count: int) -> None:
    made = samples(count, "undetermined", settings={"shapes": shapes})
    assert {cue: rate for cue, rate in rates(made, cues).items() if rate > allowed(3, count)} == {}


@sizes(1500, 8000)
@pytest.mark.parametrize("shapes", [4, slow(6)])
def test_neither_the_words_nor_the_distance_tells_what_is_undetermined_among_few_shapes(
    shapes: int, count: int
) -> None:
    """Too few for a shape to have a neighbour on either side: there, a line that names it does tell something."""
    made = samples(count, "undetermined", settings={"shapes": shapes})
    few = {"word of the question", "first line", "last line", "words of the question among all", "distance"}
    assert {cue: rate for cue, rate in rates(made, cues).items() if cue in few and rate > allowed(3, count)} == {}


def test_cannot_be_determined_is_an_answer_and_perhaps_is_none() -> None:
    task = create_task(UndeterminedTask, "shapes/undetermined", {})
    sample = next(sample for sample in samples(30, "undetermined") if sample.target == "Cannot be determined")
    scores = [task.score_text(sample, text) for text in ("It cannot be determined.", "Yes", "perhaps")]
    assert [(s.value, s.outcome) for s in scores] == [(1, "correct"), (0, "wrong"), (0, "unparsed")]


@given(st.integers(2, 46), st.integers())
def test_every_canvas_has_two_numbers_that_several_values_share(n: int, seed: int) -> None:
    board = board_for(n + 2)
    options = comparable(board, draw_canvas(n, Stream(seed), board))
    assert options
    for _, values in options:
        assert len(values) >= 2
        assert all(len(having) >= TWICE for having in values.values())


def numbers_compared(sample: Sample) -> tuple[int, int]:
    names = shapes_in_text(text_of(sample).rpartition("\n\n")[0])
    sides = sample.metadata["question"].split(" as ")[1:]
    first, second = (sum(words_of_values(side) <= set(name.split()) for name in names) for side in sides)
    return first, second


@sizes(2000, 8000)
@pytest.mark.parametrize("shapes", [7, slow(2), slow(12), slow(24)])
def test_neither_number_alone_tells_whether_both_are_equal(shapes: int, count: int) -> None:
    made = samples(count, "comparison", settings={"shapes": shapes})
    numbers = [numbers_compared(sample) for sample in made]
    assert sum(one == other for one, other in numbers) == count / 2
    if shapes == 7:
        assert sum(one > other for one, other in numbers) > count / 5
        assert sum(min(pair) > 0 for pair in numbers) > count / 2, "mostly not of things that are not there"
    for side in (0, 1):
        rate = guessed_right([(str(pair[side]), s.target) for pair, s in zip(numbers, made, strict=True)])
        assert rate <= allowed(2, count)


@sizes(3000, 20_000)
@pytest.mark.parametrize("shapes", [7, slow(5), slow(12)])
def test_the_order_along_the_other_axis_does_not_tell_what_is_between(shapes: int, count: int) -> None:
    cues = []
    for sample in samples(count, "between", settings={"shapes": shapes}):
        places = places_in_text(text_of(sample))
        other = int("left" in sample.metadata["question"])
        named = re.findall(rf"the {NAME}", sample.metadata["question"])
        cues.append((str(sorted(range(3), key=lambda i: places[named[i]][other])), sample.target))
    assert guessed_right(cues) <= allowed(2, count)
