import hashlib
import re
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.shapes_settings import extreme, find, settings_of, sizes, slow, text_of
from proctor.core.config import build_config
from proctor.core.errors import TaskError
from proctor.core.random import Stream
from proctor.core.task import create_task, take_samples
from proctor.core.types import Message, Sample
from proctor.shapes import Shape, Task, typed
from proctor.shapes import task as task_module
from proctor.shapes.canvas import FORMS, HALF_WIDTH, LARGE, SIZES, SMALL, Board, board_for, draw_canvas
from proctor.shapes.descriptions import DESCRIPTIONS, Kind
from proctor.shapes.reading import places_in_text
from proctor.shapes.tasks.existence import ExistenceTask
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS
from proctor.shapes.typed import ShapeTask


def samples(n: int, name: str = "existence", settings: dict[str, Any] | None = None, **options: object) -> list[Sample]:
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", settings or {})
    config = build_config({"task": task.name, "model": "scripted/oracle", "limit": n} | options)
    return list(take_samples(task, config))


WORDS = (*SIZES, *LARGE.colours, *FORMS)
SHAPE = rf"(?:{'|'.join(SIZES)}) (?:{'|'.join(LARGE.colours)}) (?:{'|'.join(FORMS)})"
TASKS = pytest.mark.parametrize("name", REGISTERED_TASKS)
# Of the others, the answer is one of the shapes shown: they have a test of their own.
TASKS_WITH_FIXED_ANSWERS = pytest.mark.parametrize(
    "name", [name for name, cls in REGISTERED_TASKS.items() if not issubclass(cls, ShapeTask)]
)


@given(st.integers(2, 48), st.integers())
def test_canvas_in_bounds_distinct_and_never_touching(n: int, seed: int) -> None:
    board = board_for(n)
    shapes = draw_canvas(n, Stream(seed), board)
    assert len({(s.size, s.colour, s.form) for s in shapes}) == n
    for shape in shapes:
        half = HALF_WIDTH[shape.size]
        assert abs(shape.x) + half <= board.bound
        assert abs(shape.y) + half <= board.bound
    for a, b in combinations(shapes, 2):
        assert max(abs(a.x - b.x), abs(a.y - b.y)) > HALF_WIDTH[a.size] + HALF_WIDTH[b.size]
        assert a.x != b.x, "no two are level"
        assert a.y != b.y, "no two are level"


def test_all_kinds_are_drawn_alike() -> None:
    counts = Counter(str(shape) for i in range(4000) for shape in draw_canvas(6, Stream(i)))
    assert len(counts) == len(SMALL.kinds)
    assert max(counts.values()) < 1.2 * min(counts.values())


def prove_answers(name: str, data: st.DataObject, seed: int, few_shot: int) -> None:
    chosen = data.draw(settings_of(name))
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", chosen)
    for sample in samples(3, name, seed=seed, few_shot=few_shot, settings=chosen):
        assert list(task.proofs(sample)) == []
        assert sample.target in sample.choices


@TASKS
@settings(max_examples=5)
@given(data=st.data(), seed=st.integers(0, 1000), few_shot=st.integers(0, 2))
def test_the_answer_is_entailed_by_the_text(name: str, data: st.DataObject, seed: int, few_shot: int) -> None:
    prove_answers(name, data, seed, few_shot)


@pytest.mark.slow
@TASKS
@settings(max_examples=100)
@given(data=st.data(), seed=st.integers(0, 1000), few_shot=st.integers(0, 2))
def test_many_answers_are_entailed_by_the_text(name: str, data: st.DataObject, seed: int, few_shot: int) -> None:
    prove_answers(name, data, seed, few_shot)


@TASKS
@pytest.mark.parametrize(
    ("limit", "count"),
    [
        ("minimum", 120),
        ("default", 120),
        *(slow(limit, 480) for limit in ("minimum", "default", "maximum")),
    ],
)
def test_answers_are_balanced_in_every_block(name: str, limit: str, count: int) -> None:
    settings = extreme(name, limit) if limit != "default" else {}
    made = samples(count, name, settings=settings)
    answers = create_task(REGISTERED_TASKS[name], name, settings).answers
    block = 10 * len(answers)
    for start in range(0, count // block * block, block):
        counts = Counter(sample.target for sample in made[start : start + block])
        assert counts == dict.fromkeys(answers, 10)
    assert [s.target for s in made] != sorted(s.target for s in made), "the order within a block is shuffled"
    other_seed = samples(40, name, seed=1, settings=settings)
    assert [s.target for s in made[:40]] != [s.target for s in other_seed]


@TASKS
@pytest.mark.parametrize("limit", ["minimum", "default", "maximum"])
def test_a_run_takes_whole_blocks_unless_told_otherwise(name: str, limit: str) -> None:
    task = create_task(REGISTERED_TASKS[name], name, extreme(name, limit) if limit != "default" else {})
    config = build_config({"task": name, "model": "scripted/oracle"})
    count = task.count(config)
    assert 100 <= count < 100 + 10 * len(task.answers)
    wanted = Counter(task.select_expected_answer(index, count) for index in range(count))
    assert set(wanted.values()) == {count // len(task.answers)}
    assert task.count(msgspec.structs.replace(config, limit=7)) == 7


def test_a_run_of_your_own_task_takes_as_many_as_it_says() -> None:
    class Balanced(Bringing):
        answers: tuple[str, ...] = ("a", "b", "c")

        def select_expected_answer(self, i: int, n: int) -> str:
            return self.balanced_answer(i)

    class Thousands(Balanced):
        answers = tuple(map(str, range(1000)))

    class Fixed(Balanced):
        default_limit = 50

    counts = {cls: create_task(cls, "mine", {}).default_limit for cls in (Bringing, Balanced, Thousands, Fixed)}
    assert counts == {Bringing: 100, Balanced: 120, Thousands: 100, Fixed: 50}


def guessed_right(pairs: list[tuple[str, str]]) -> float:
    """How often one guesses right who saw the first half of the pairs and knows only the cue of the others."""
    half = len(pairs) // 2
    seen: dict[str, Counter[str]] = {}
    for cue, answer in pairs[:half]:
        seen.setdefault(cue, Counter())[answer] += 1
    fallback = Counter({pairs[0][1]: 1})
    return sum(answer == seen.get(cue, fallback).most_common(1)[0][0] for cue, answer in pairs[half:]) / half


@sizes(600, 8000)
@TASKS_WITH_FIXED_ANSWERS
def test_neither_the_question_nor_the_canvas_alone_tells_the_answer(name: str, count: int) -> None:
    made = samples(count, name, settings={"shapes": 6})
    shape = rf"({'|'.join(SIZES)}) ({'|'.join(SMALL.colours)}) ({'|'.join(FORMS)})"
    listed = [re.findall(shape, text_of(sample).rpartition("\n\n")[0]) for sample in made]
    cues = {
        "question": [sample.metadata["question"] for sample in made],
        "attributes asked for": [re.sub("|".join(WORDS), "_", sample.metadata["question"]) for sample in made],
        "counts of colours": [str(sorted(Counter(c for _, c, _ in shapes).values())) for shapes in listed],
        "counts of sizes": [str(sorted(Counter(s for s, _, _ in shapes).values())) for shapes in listed],
        "counts of forms": [str(sorted(Counter(f for _, _, f in shapes).values())) for shapes in listed],
        "counts of sizes and forms": [str(sorted(Counter((s, f) for s, _, f in shapes).values())) for shapes in listed],
        "first shape": [" ".join(shapes[0]) for shapes in listed],
        "last shape": [" ".join(shapes[-1]) for shapes in listed],
        "last line": [re.sub("|".join(WORDS), "_", text_of(sample).split("\n")[-3]) for sample in made],
    }
    chance = 1 / len(made[0].choices)
    allowed = 4 * (chance * (1 - chance) / (count / 2)) ** 0.5  # four standard errors of a guess over half of them
    rates = {cue: guessed_right([(c, s.target) for c, s in zip(seen, made, strict=True)]) for cue, seen in cues.items()}
    assert {cue: rate for cue, rate in rates.items() if rate > chance + allowed} == {}


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("shuffle_tracking", lambda shown, named: shown),
        ("superlative", lambda shown, named: shown),
        ("move_tracking", lambda shown, named: shown),
        ("nearest", lambda shown, named: shown - set(named)),
        ("odd_one_out", lambda shown, named: set(named[1:])),
    ],
)
def test_the_choices_are_the_shapes_that_the_question_leaves_open(
    name: str, chosen: Callable[[set[str], list[str]], set[str]]
) -> None:
    for sample in samples(50, name, settings={"shapes": 6}):
        shown = set(re.findall(SHAPE, text_of(sample)))
        assert len(shown) == 6
        assert set(sample.choices) == chosen(shown, re.findall(SHAPE, sample.metadata["question"]))
        assert len(set(sample.choices)) == len(sample.choices)


@sizes(2000, 8000)
def test_no_mention_tells_whether_a_shape_is_still_there(count: int) -> None:
    made = samples(count, "existence_tracking")
    cues: dict[str, list[str]] = {
        "mentioned": [],
        "last mention": [],
        "named in events": [],
        "verb": [],
        "in group": [],
    }
    for sample in made:
        text = text_of(sample).rpartition("\n\n")[0]
        name = find(r"Is there a (\w+ \w+ \w+) on", sample.metadata["question"])[1]
        naming = [line for line in text.splitlines() if name in line]
        last = text.splitlines()[-1]
        group = set(re.findall("|".join(WORDS), last))
        cues["mentioned"].append(str(bool(naming)))
        cues["last mention"].append(naming[-1].replace(name, "_").split(" at ")[0])
        cues["named in events"].append(str(sum(name in line for line in text.splitlines()[-5:])))
        cues["verb"].append(last.split()[-1])
        cues["in group"].append(str(group <= set(name.split())))
    allowed = 4 * (0.25 / (count / 2)) ** 0.5
    rates = {cue: guessed_right([(c, s.target) for c, s in zip(seen, made, strict=True)]) for cue, seen in cues.items()}
    assert set(cues["mentioned"]) == {"True"}
    assert {cue: rate for cue, rate in rates.items() if rate > 0.5 + allowed} == {}


@sizes(2000, 6000)
def test_no_cue_tells_which_shape_was_shuffled_where(count: int) -> None:
    made = samples(count, "shuffle_tracking", settings={"shapes": 6})
    hits: Counter[str] = Counter()
    for sample in made:
        first, *events = text_of(sample).partition("\n\n")[0].splitlines()
        line = first.partition(": ")[2].rstrip(".").split(", ")
        named = [shape for event in events for shape in re.findall(r"[Tt]he (\w+ \w+ \w+)", event)]
        often = Counter(named).most_common(1)[0][0]
        cues = {"top": line[0], "bottom": line[-1], "named first": named[0], "named last": named[-1], "often": often}
        cues["never named"] = next((shape for shape in line if shape not in named), line[0])
        hits.update(cue for cue, shape in cues.items() if shape == sample.target)
    allowed = 4 * (1 / 6 * 5 / 6 / count) ** 0.5
    assert {cue: n / count for cue, n in hits.items() if abs(n / count - 1 / 6) > allowed} == {}


def squared_distance(a: tuple[int, int], b: tuple[int, int]) -> int:
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2


def hit_rates(made: list[Sample], guess: Callable[[Sample], dict[str, str]]) -> dict[str, float]:
    """How often each of several guessers names the right shape."""
    hits: Counter[str] = Counter()
    for sample in made:
        hits.update({cue: shape == sample.target for cue, shape in guess(sample).items()})
    return {cue: n / len(made) for cue, n in hits.items()}


@sizes(2000, 6000)
def test_no_place_tells_which_shape_is_asked_for_by_its_distance(count: int) -> None:
    def guess(sample: Sample) -> dict[str, str]:
        places = places_in_text(text_of(sample))
        reference = find(SHAPE, sample.metadata["question"])[0]
        others = [name for name in places if name != reference]
        from_reference = sorted(others, key=lambda name: squared_distance(places[name], places[reference]))
        from_middle = sorted(others, key=lambda name: squared_distance(places[name], (0, 0)))
        after = (others * 2)[list(places).index(reference)]
        alike = max(others, key=lambda name: len(set(name.split()) & set(reference.split())))
        return {
            "listed first": others[0],
            "listed last": others[-1],
            "listed after the reference": after,
            "most like the reference": alike,
            "nearest": from_reference[0],
            "in the middle of the ranks": from_reference[2],
            "farthest": from_reference[-1],
            "most central": from_middle[0],
            "outermost": from_middle[-1],
            "leftmost": min(others, key=places.__getitem__),
        }

    made = samples(count, "nearest", settings={"shapes": 6})
    allowed = 4 * (1 / 5 * 4 / 5 / count) ** 0.5
    rates = hit_rates(made, guess)
    assert {cue: rate for cue, rate in rates.items() if abs(rate - 1 / 5) > allowed} == {}


@given(st.integers(3, 48), st.integers(0, 1000))
def test_no_two_shapes_are_equally_far_from_the_reference(shapes: int, seed: int) -> None:
    for sample in samples(3, "nearest", seed=seed, settings={"shapes": shapes}):
        places = places_in_text(text_of(sample))
        reference = places[find(SHAPE, sample.metadata["question"])[0]]
        assert len({squared_distance(reference, place) for place in places.values()}) == shapes


@sizes(2000, 6000)
def test_a_shape_that_could_be_the_reference_is_not_asked_for_more_often(
    monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """From two of these four places all distances differ; from the others some are equal."""
    places = [(0, 0), (1, 4), (2, 3), (4, 6)]
    assert [len({squared_distance(a, b) for b in places}) == 4 for a in places] == [True, True, False, False]

    def place_there(kinds: list[tuple[str, str, str]], random: Stream, board: Board) -> list[Shape]:
        return [Shape(*kind, x, y) for kind, (x, y) in zip(kinds, places, strict=True)]

    monkeypatch.setattr(typed, "place_kinds", place_there)
    monkeypatch.setattr(task_module, "BATCHED", count + 1)  # batches have a place_kinds of their own
    counts: Counter[tuple[int, int]] = Counter()
    for sample in samples(count, "nearest", settings={"shapes": 4}):
        listed = list(places_in_text(text_of(sample)))
        reference = find(SHAPE, sample.metadata["question"])[0]
        counts[listed.index(reference), listed.index(sample.target)] += 1
    assert sorted(counts) == [(0, 1), (0, 2), (0, 3), (1, 0), (1, 2), (1, 3)]
    assert all(abs(n / count - 1 / 6) < 4 * (1 / 6 * 5 / 6 / count) ** 0.5 for n in counts.values())


@sizes(2000, 8000)
def test_no_place_alone_tells_whether_a_shape_is_between_others(count: int) -> None:
    made = samples(count, "between", settings={"shapes": 6})
    cues: dict[str, list[str]] = {}
    for sample in made:
        places = places_in_text(text_of(sample))
        axis = int("above" in sample.metadata["question"])
        asked, *ends = re.findall(SHAPE, sample.metadata["question"])
        ranks = {name: rank for rank, name in enumerate(sorted(places, key=lambda name: places[name][axis]))}
        other_way = {name: rank for rank, name in enumerate(sorted(places, key=lambda name: places[name][1 - axis]))}
        listed = list(places)
        seen = {
            "place": (axis, ranks[asked]),
            "places of the ends": (axis, *(ranks[end] for end in ends)),
            "side of the first end": ranks[asked] < ranks[ends[0]],
            "side of the second end": ranks[asked] < ranks[ends[1]],
            "places the other way": [other_way[asked] < other_way[end] for end in ends],
            "order in the list": [listed.index(asked) < listed.index(end) for end in ends],
        }
        for cue, value in seen.items():
            cues.setdefault(cue, []).append(str(value))
    allowed = 4 * (0.25 / (count / 2)) ** 0.5
    rates = {cue: guessed_right([(c, s.target) for c, s in zip(seen, made, strict=True)]) for cue, seen in cues.items()}
    assert {cue: rate for cue, rate in rates.items() if rate > 0.5 + allowed} == {}


@pytest.mark.parametrize(("shapes", "count"), [(6, 1500), slow(6, 4000), slow(7, 4000), slow(20, 4000)])
def test_the_places_of_three_shapes_do_not_tell_which_is_the_odd_one(shapes: int, count: int) -> None:
    def guess(sample: Sample) -> dict[str, str]:
        places = places_in_text(text_of(sample))
        pivot, *three = re.findall(SHAPE, sample.metadata["question"])
        across = sorted(three, key=lambda name: places[name][0])
        upwards = sorted(three, key=lambda name: places[name][1])
        in_list = [name for name in places if name in three]
        from_middle = sorted(three, key=lambda name: squared_distance(places[name], (0, 0)))
        apart = sorted(three, key=lambda name: sum(squared_distance(places[name], places[other]) for other in three))
        orders = {"named": three, "listed": in_list, "across": across, "upwards": upwards}
        orders |= {"from the middle": from_middle, "apart from the others": apart}
        return {f"{order}, {i}": name for order, names in orders.items() for i, name in enumerate(names)} | {
            "most like the pivot": max(three, key=lambda name: len(set(name.split()) & set(pivot.split())))
        }

    made = samples(count, "odd_one_out", settings={"shapes": shapes})
    allowed = 4 * (1 / 3 * 2 / 3 / count) ** 0.5
    rates = hit_rates(made, guess)
    assert {cue: rate for cue, rate in rates.items() if abs(rate - 1 / 3) > allowed} == {}


@TASKS
def test_an_answer_may_be_left_to_chance(name: str) -> None:
    def leave_it_open(self: Task, i: int, n: int) -> None:
        return None

    cls: type[Task] = type("LeftToChance", (REGISTERED_TASKS[name],), {"select_expected_answer": leave_it_open})
    task = create_task(cls, name, {})
    made = list(take_samples(task, build_config({"task": name, "model": "scripted/oracle", "limit": 50})))
    assert [fault for sample in made for fault in task.proofs(sample)] == []
    assert len({sample.target for sample in made}) > 1


@sizes(200, 4000)
@TASKS_WITH_FIXED_ANSWERS
def test_worked_examples_know_nothing_of_the_answer(name: str, count: int) -> None:
    def shown_answer(sample: Sample) -> object:
        example = sample.input[1]
        assert isinstance(example, Message)
        return example.content

    made = samples(count, name, few_shot=1, shots="other")
    chance = 1 / len(create_task(REGISTERED_TASKS[name], name, {}).answers)
    agree = sum(shown_answer(sample) == sample.target for sample in made)
    assert abs(agree / count - chance) < 4 * (chance * (1 - chance) / count) ** 0.5


@given(st.integers(2, 48), st.integers())
def test_all_descriptions_say_the_same(n: int, seed: int) -> None:
    """Positions put into words pair by pair, checked against the coordinates by reading both texts back."""
    shapes = draw_canvas(n, Stream(seed), board_for(n))
    places = {
        name: (int(x), int(y))
        for name, x, y in re.findall(r"- (.+) at \((-?\d+), (-?\d+)\)", DESCRIPTIONS["coordinates"](shapes))
    }
    pattern = r"- the (.+) is (above|below) and to the (left|right) of the (.+)"
    expected: dict[Kind, int] = {"full": n * (n - 1), "partial": n * (n - 1) // 2}
    for kind, pairs in expected.items():
        said = re.findall(pattern, DESCRIPTIONS[kind](shapes))
        assert len(said) == len({frozenset((a, b)) if kind == "partial" else (a, b) for a, _, _, b in said}) == pairs
        for a, vertical, horizontal, b in said:
            assert (places[a][1] > places[b][1]) == (vertical == "above")
            assert (places[a][0] > places[b][0]) == (horizontal == "right")


class Bringing(Task):
    """A user's task: brings its own description, or adds to the base one; says nothing else."""

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        self.description = f"There are {len(shapes)} shapes."
        return [("How many?", str(len(shapes)))]


def test_a_task_brings_its_own_description_or_adds_to_the_base_one() -> None:
    class Adding(Bringing):
        extends_description = True

    config = build_config({"task": "t", "model": "scripted/oracle", "limit": 1})
    (brought,) = take_samples(create_task(Bringing, "bringing", {}), config)
    assert brought.input == "There are 7 shapes.\n\nHow many?"
    (added,) = take_samples(create_task(Adding, "adding", {}), config)
    assert re.fullmatch(r"A canvas shows.*\nThere are 7 shapes\.\n\nHow many\?", text_of(added), re.DOTALL)


def test_a_task_that_says_nothing_else_credits_an_answer_that_contains_the_expected_one() -> None:
    task = create_task(Bringing, "bringing", {})
    (sample,) = take_samples(task, build_config({"task": "t", "model": "scripted/oracle", "limit": 1}))
    assert [task.score_text(sample, text).value for text in ("There are 7.", "eight", "")] == [1, 0, 0]


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([], "item 3: generate_questions returned no pair"),
        ([("Really?", "")], "item 3: the answer to 'Really?' is empty"),
        ([("Really?", "No")], "item 3: wanted the answer 'Yes', generate_questions gave 'No'"),
    ],
)
def test_a_task_that_breaks_the_rules_is_named_with_its_item(pairs: list[tuple[str, str]], said: str) -> None:
    class Broken(Bringing):
        def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
            return pairs

        def select_expected_answer(self, i: int, n: int) -> str:
            return "Yes"

    config = build_config({"task": "t", "model": "scripted/oracle", "limit": 1, "limit_start": 3})
    with pytest.raises(TaskError) as caught:
        list(take_samples(create_task(Broken, "broken", {}), config))
    assert said in str(caught.value)


def test_unparsed_is_kept_apart_from_wrong() -> None:
    task = create_task(ExistenceTask, "shapes/existence", {})
    (sample,) = samples(1)
    other = "No" if sample.target == "Yes" else "Yes"
    scores = [task.score_text(sample, text) for text in (sample.target, other, "perhaps")]
    assert [(s.value, s.outcome) for s in scores] == [(1, "correct"), (0, "wrong"), (0, "unparsed")]


PINNED = {
    "between": "07c2033fdf3694e4",
    "comparison": "88e99708c587fc71",
    "coordinate": "9d30d63e5037593b",
    "count": "760c766cf1674e70",
    "existence": "e84bcd060569bdd9",
    "existence_tracking": "96ed36d224df3223",
    "logic": "79203db5b07e8ca8",
    "move_tracking": "26c146e74faf9420",
    "multi_hop": "45070aaaaf4756fb",
    "nearest": "bbe82507a96dcdef",
    "odd_one_out": "56e9ec07f1150a7a",
    "recolour_tracking": "4245faa5f693ac92",
    "shuffle_tracking": "b388d7d38a02ca27",
    "superlative": "33df5319d4ef8625",
    "transitivity": "69f1131b49bb2820",
    "undetermined": "987a065ae8d7f733",
}


@TASKS
def test_the_data_set_is_pinned(name: str) -> None:
    """A change here is a change of the data set: once it is released, raise the version of the task."""
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", {})
    config = build_config({"task": task.name, "model": "scripted/oracle", "limit": 20, "seed": 42})
    assert hashlib.sha256(b"".join(task.json_lines(config, range(20)))).hexdigest()[:16] == PINNED[name]
