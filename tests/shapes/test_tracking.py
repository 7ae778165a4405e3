"""Shapes that come and go, swap, move or turn to other colours: what happens is possible, no cue tells how it ends."""

import re
from collections import Counter
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_shapes import guessed_right, samples

from helpers.shapes_settings import find, settings_of, sizes, slow, text_of
from proctor.core.random import Stream
from proctor.core.task import create_task
from proctor.core.types import Sample
from proctor.shapes import Task
from proctor.shapes.canvas import HALF_WIDTH, board_for, draw_canvas
from proctor.shapes.tasks.existence_tracking import ExistenceTrackingTask, links_among
from proctor.shapes.tasks.move_tracking import MoveTrackingTask, free_moves
from proctor.shapes.tasks.recolour_tracking import EVENT, RecolourTrackingTask
from proctor.shapes.tasks.shuffle_tracking import ShuffleTrackingTask

PLACE = r"- (.+) at \((-?\d+), (-?\d+)\)"
MOVE = r"The (.+) moves (\d+) (?:to the )?(left|right|up|down)\."
EXCHANGE = r"^All (\w+) shapes turn (\w+), and at the same time all \2 shapes turn \1\.$"
SWITCH = (
    r"If there is a (.+) on the canvas, a (.+) is added and the (.+) is removed; if not, the \2 is removed and a \3 is"
)


def places(text: str) -> dict[str, tuple[int, int]]:
    return {name: (int(x), int(y)) for name, x, y in re.findall(PLACE, text)}


def without_events(sample: Sample) -> str:
    return "\n".join(line for line in text_of(sample).rpartition("\n\n")[0].splitlines() if not line.startswith("The "))


def assert_fits(where: dict[str, tuple[int, int]], bound: int) -> None:
    half = {name: HALF_WIDTH[name.split()[0]] for name in where}
    for name, (x, y) in where.items():
        assert max(abs(x), abs(y)) + half[name] <= bound
    for (a, (ax, ay)), (b, (bx, by)) in combinations(where.items(), 2):
        assert max(abs(ax - bx), abs(ay - by)) > half[a] + half[b], "they touch"
        assert ax != bx, "they are level"
        assert ay != by, "they are level"


def opposite(event: str) -> str:
    """The event with the contrary effect."""
    if parts := re.match(SWITCH, event):
        _, added, removed = parts.groups()
        return event.replace(added, "*").replace(removed, added).replace("*", removed)
    if event.startswith("A "):
        return event.replace("A ", "The ").replace("added", "removed")
    return f"A {event.removeprefix('The ').replace('removed', 'added')}"


def events_that_matter(description: str, question: str) -> int:
    """How many events would change the answer if their effect were the contrary."""
    lines = description.splitlines()
    answer = ExistenceTrackingTask.solve(description, question)
    changed = 0
    for number, line in enumerate(lines):
        if number and not line.startswith(("- ", "All ")):
            other = "\n".join([*lines[:number], opposite(line), *lines[number + 1 :]])
            changed += ExistenceTrackingTask.solve(other, question) != answer
    return changed


@settings(max_examples=40)
@given(settings_of("existence_tracking"), st.integers(0, 1000))
def test_whether_a_shape_is_there_depends_on_more_than_half_of_the_events(chosen: dict[str, object], seed: int) -> None:
    (sample,) = samples(1, "existence_tracking", seed=seed, settings=chosen)
    events = int(str(chosen["events"]))
    text = text_of(sample).rpartition("\n\n")[0]
    assert events_that_matter(text, sample.metadata["question"]) == links_among(events) > events / 2


@settings(max_examples=40)
@given(settings_of("existence_tracking"), st.integers(0, 1000))
def test_whether_a_shape_is_there_depends_on_the_canvas(chosen: dict[str, object], seed: int) -> None:
    (sample,) = samples(1, "existence_tracking", seed=seed, settings=chosen | {"description": "coordinates"})
    lines = text_of(sample).rpartition("\n\n")[0].splitlines()
    asked = find(r"Is there a (\w+ \w+ \w+) on", sample.metadata["question"])[1]
    for event in reversed(lines):
        if (parts := re.match(SWITCH, event)) and asked in parts.groups()[1:]:
            asked = parts[1]
    without = [line for line in lines if asked not in line or not line.startswith("- ")]
    other = without if len(without) < len(lines) else [lines[0], f"- {asked} at (0, 0)", *lines[1:]]
    answer = ExistenceTrackingTask.solve("\n".join(other), sample.metadata["question"])
    assert {answer, sample.target} == {"Yes", "No"}


@sizes(2000, 20_000)
@pytest.mark.parametrize(("shapes", "events"), [(7, 15), (7, 5), (3, 1), slow(12, 20), slow(24, 5)])
def test_of_n_shapes_one_in_n_is_where_it_was_before_the_swaps(shapes: int, events: int, count: int) -> None:
    made = samples(count, "shuffle_tracking", settings={"shapes": shapes, "events": events})
    stayed = sum(
        ShuffleTrackingTask.solve(text_of(sample).splitlines()[0], sample.metadata["question"]) == sample.target
        for sample in made
    )
    assert abs(stayed / count - 1 / shapes) < 4 * (1 / shapes * (1 - 1 / shapes) / count) ** 0.5


@settings(max_examples=30)
@given(st.integers(2, 48), st.integers(1, 40), st.integers(0, 1000))
def test_shapes_move_without_touching_or_leaving_the_canvas_or_standing_level(
    shapes: int, events: int, seed: int
) -> None:
    (sample,) = samples(1, "move_tracking", seed=seed, settings={"shapes": shapes, "events": events})
    where = places(text_of(sample))
    steps = {"left": (-1, 0), "right": (1, 0), "up": (0, 1), "down": (0, -1)}
    moves = re.findall(MOVE, text_of(sample))
    assert len(moves) == events
    for name, distance, way in moves:
        assert int(distance) > 0
        (x, y), (dx, dy) = where[name], steps[way]
        where[name] = x + dx * int(distance), y + dy * int(distance)
        assert_fits(where, board_for(shapes).bound)


@given(st.integers(2, 48), st.integers())
def test_every_shape_of_a_new_canvas_can_move(n: int, seed: int) -> None:
    board = board_for(n)
    shapes = draw_canvas(n, Stream(seed), board)
    assert all(free_moves(shapes, index, board.bound) for index in range(n))


@sizes(2000, 6000)
def test_every_shape_is_moved_as_often_and_every_way(count: int) -> None:
    made = samples(count, "move_tracking", settings={"shapes": 6, "events": 1})
    movers: Counter[int] = Counter()
    ways: Counter[str] = Counter()
    for sample in made:
        ((name, _, way),) = re.findall(MOVE, text_of(sample))
        movers[list(places(text_of(sample))).index(name)] += 1
        ways[way] += 1
    for counts, chance in ((movers, 1 / 6), (ways, 1 / 4)):
        assert len(counts) == round(1 / chance)
        assert all(abs(n / count - chance) < 4 * (chance * (1 - chance) / count) ** 0.5 for n in counts.values())


@sizes(1500, 6000)
def test_no_cue_tells_which_shape_moved_where(count: int) -> None:
    made = samples(count, "move_tracking", settings={"shapes": 6})
    hits: Counter[str] = Counter()
    for sample in made:
        listed = list(places(text_of(sample)))
        moves = re.findall(MOVE, text_of(sample))
        named = [name for name, _, _ in moves]
        cues = {"listed first": listed[0], "listed last": listed[-1], "moved first": named[0], "moved last": named[-1]}
        cues["moved most often"] = Counter(named).most_common(1)[0][0]
        cues["moved furthest"] = max(moves, key=lambda move: int(move[1]))[0]
        cues["never moved"] = next((name for name in listed if name not in named), listed[0])
        hits.update(cue for cue, name in cues.items() if name == sample.target)
    allowed = 4 * (1 / 6 * 5 / 6 / count) ** 0.5
    assert {cue: n / count for cue, n in hits.items() if abs(n / count - 1 / 6) > allowed} == {}


@sizes(500, 2000)
def test_after_many_moves_the_list_no_longer_tells_where_a_shape_is(count: int) -> None:
    made = samples(count, "move_tracking", settings={"shapes": 4, "events": 60})
    right = sum(
        MoveTrackingTask.solve(without_events(sample), sample.metadata["question"]) == sample.target for sample in made
    )
    assert abs(right / count - 1 / 4) < 4 * (1 / 4 * 3 / 4 / count) ** 0.5


@given(st.integers(4, 48), st.integers(1, 100), st.integers(0, 1000))
def test_all_colours_are_there_at_every_moment(shapes: int, events: int, seed: int) -> None:
    task = create_task(RecolourTrackingTask, "shapes/recolour_tracking", {"shapes": shapes, "events": events})
    (sample,) = samples(1, "recolour_tracking", seed=seed, settings={"shapes": shapes, "events": events})
    names = list(places(text_of(sample)))
    assert len(set(names)) == shapes
    assert {name.split()[1] for name in names} == set(task.answers) == set(sample.choices)
    exchanges = re.findall(EXCHANGE, text_of(sample), re.M)
    assert len(exchanges) == events
    assert all(a != b and {a, b} <= set(task.answers) for a, b in exchanges)


@settings(max_examples=40)
@given(settings_of("recolour_tracking"), st.integers(0, 1000))
def test_any_other_event_would_have_led_to_another_colour(chosen: dict[str, Any], seed: int) -> None:
    """So none can be left out: not at the beginning, not at the end, not one that does not name the shape's colour."""
    (sample,) = samples(1, "recolour_tracking", seed=seed, settings=chosen)
    description, question = text_of(sample).rpartition("\n\n")[0], sample.metadata["question"]
    lines = description.splitlines()
    for number in range(1 + chosen["shapes"], len(lines)):
        colour = RecolourTrackingTask.solve("\n".join(lines[:number]), question)
        effect = dict(pair for a, b in re.findall(EXCHANGE, lines[number]) for pair in ((a, b), (b, a)))
        other = next(c for c in sample.choices if c not in (colour, effect.get(colour, colour)))
        changed = [*lines[:number], EVENT.format(colour, other), *lines[number + 1 :]]
        assert RecolourTrackingTask.solve("\n".join(changed), question) != sample.target


@sizes(2000, 8000)
def test_no_cue_tells_which_colour_a_shape_has_in_the_end(count: int) -> None:
    made = samples(count, "recolour_tracking")
    cues: dict[str, list[str]] = {}
    for sample in made:
        where = places(text_of(sample))
        exchanges = re.findall(EXCHANGE, text_of(sample), re.M)
        x, y = map(int, find(r"\((-?\d+), (-?\d+)\)", sample.metadata["question"]).groups())
        seen = {
            "place in the list": list(where.values()).index((x, y)),
            "side": (x < 0, y < 0),
            "colour in the list": next(name.split()[1] for name, place in where.items() if place == (x, y)),
            "first event": exchanges[0],
            "last event": exchanges[-1],
            "most common colour of the events": Counter(c for pair in exchanges for c in pair).most_common(1)[0][0],
            "most common colour of the list": Counter(name.split()[1] for name in where).most_common(1)[0][0],
            "first listed": next(iter(where)).split()[1],
        }
        for cue, value in seen.items():
            cues.setdefault(cue, []).append(str(value))
    allowed = 4 * (1 / 4 * 3 / 4 / (count / 2)) ** 0.5
    rates = {cue: guessed_right([(c, s.target) for c, s in zip(seen, made, strict=True)]) for cue, seen in cues.items()}
    assert {cue: rate for cue, rate in rates.items() if rate > 1 / 4 + allowed} == {}


@sizes(1000, 4000)
@pytest.mark.parametrize("events", [1, 2, slow(5)])
def test_the_list_alone_tells_the_colour_after_few_events_only(events: int, count: int) -> None:
    """A colour stays in half of the events and goes to each other one in a sixth: 1/4 + 3/4 · (1/3) ** events."""
    made = samples(count, "recolour_tracking", settings={"events": events})
    right = 0
    for sample in made:
        place = find(r"\(.+?\)", sample.metadata["question"])[0]
        right += find(rf"- \w+ (\w+) \w+ at {re.escape(place)}", text_of(sample))[1] == sample.target
    expected = 1 / 4 + 3 / 4 / 3**events
    assert abs(right / count - expected) < 4 * (expected * (1 - expected) / count) ** 0.5


@pytest.mark.parametrize(
    ("name", "cls"), [("move_tracking", MoveTrackingTask), ("recolour_tracking", RecolourTrackingTask)]
)
def test_what_is_neither_a_shape_nor_a_colour_is_unparsed(name: str, cls: type[Task]) -> None:
    task = create_task(cls, f"shapes/{name}", {})
    (sample,) = samples(1, name)
    other = next(choice for choice in sample.choices if choice != sample.target)
    scores = [task.score_text(sample, text) for text in (f"It is {sample.target}.", other, "perhaps")]
    assert [(s.value, s.outcome) for s in scores] == [(1, "correct"), (0, "wrong"), (0, "unparsed")]
