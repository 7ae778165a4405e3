import re
from collections import Counter
from itertools import combinations
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.config import build_config
from proctor.errors import TaskError, UsageError
from proctor.randomness import Stream
from proctor.shapes import Shape, Task
from proctor.shapes.canvas import FORMS, HALF_WIDTH, LARGE, SIZES, SMALL, board_for, draw_canvas
from proctor.shapes.descriptions import DESCRIPTIONS
from proctor.shapes.tasks.existence import ExistenceTask
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS
from proctor.shapes.typed import ShapeTask
from proctor.task import create_task, take_samples
from proctor.types import Sample


def samples(n: int, name: str = "existence", **options: object) -> list[Sample]:
    settings = options.pop("settings", {})
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", settings)
    config = build_config({"task": task.name, "model": "scripted/oracle", "limit": n} | options)
    return list(take_samples(task, config))


WORDS = (*SIZES, *LARGE.colours, *FORMS)
TASKS = pytest.mark.parametrize("name", REGISTERED_TASKS)
# Of the others, the answer is one of the shapes shown: they have a test of their own.
TASKS_WITH_FIXED_ANSWERS = pytest.mark.parametrize(
    "name", [name for name, cls in REGISTERED_TASKS.items() if not issubclass(cls, ShapeTask)]
)


def settings_schema(name: str) -> dict[str, dict[str, Any]]:
    schema = msgspec.json.schema(REGISTERED_TASKS[name].Settings)
    return next(iter(schema["$defs"].values()))["properties"]


def extreme(name: str, limit: str) -> dict[str, int]:
    """Every number among the settings of a task at its minimum or maximum."""
    return {key: field[limit] for key, field in settings_schema(name).items() if limit in field}


def settings_of(name: str) -> st.SearchStrategy[dict[str, object]]:
    """Any settings that a task takes, together."""

    def fit(settings: dict[str, object]) -> bool:
        try:
            create_task(REGISTERED_TASKS[name], name, settings)
        except UsageError:
            return False
        return True

    return st.fixed_dictionaries(
        {
            key: st.sampled_from(field["enum"]) if "enum" in field else st.integers(field["minimum"], field["maximum"])
            for key, field in settings_schema(name).items()
        }
    ).filter(fit)


@given(st.integers(2, 48), st.integers())
def test_canvas_in_bounds_distinct_and_never_touching(n: int, seed: int):
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


def test_all_kinds_are_drawn_alike():
    counts = Counter(str(shape) for i in range(4000) for shape in draw_canvas(6, Stream(i)))
    assert len(counts) == len(SMALL.kinds)
    assert max(counts.values()) < 1.2 * min(counts.values())


@TASKS
@given(data=st.data(), seed=st.integers(0, 1000), few_shot=st.integers(0, 2))
def test_the_answer_is_entailed_by_the_text(name: str, data: st.DataObject, seed: int, few_shot: int):
    settings = data.draw(settings_of(name))
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", settings)
    for sample in samples(3, name, seed=seed, few_shot=few_shot, settings=settings):
        assert list(task.proofs(sample)) == []
        assert sample.target in sample.choices


@TASKS
@pytest.mark.parametrize("limit", ["minimum", "default", "maximum"])
def test_answers_are_balanced_in_every_block(name: str, limit: str):
    settings = extreme(name, limit) if limit != "default" else {}
    made = samples(480, name, settings=settings)
    answers = create_task(REGISTERED_TASKS[name], name, settings).answers
    block = 10 * len(answers)
    for start in range(0, 480 // block * block, block):
        counts = Counter(sample.target for sample in made[start : start + block])
        assert counts == dict.fromkeys(answers, 10)
    assert [s.target for s in made] != sorted(s.target for s in made), "the order within a block is shuffled"
    assert [s.target for s in made] != [s.target for s in samples(480, name, seed=1, settings=settings)]


def guessed_right(pairs: list[tuple[str, str]]) -> float:
    """How often one guesses right who saw the first half of the pairs and knows only the cue of the others."""
    half = len(pairs) // 2
    seen: dict[str, Counter[str]] = {}
    for cue, answer in pairs[:half]:
        seen.setdefault(cue, Counter())[answer] += 1
    fallback = Counter({pairs[0][1]: 1})
    return sum(answer == seen.get(cue, fallback).most_common(1)[0][0] for cue, answer in pairs[half:]) / half


@TASKS_WITH_FIXED_ANSWERS
def test_neither_the_question_nor_the_canvas_alone_tells_the_answer(name: str):
    made = samples(8000, name, settings={"shapes": 6})
    shape = rf"({'|'.join(SIZES)}) ({'|'.join(SMALL.colours)}) ({'|'.join(FORMS)})"
    listed = [re.findall(shape, sample.input.rpartition("\n\n")[0]) for sample in made]
    cues = {
        "question": [sample.metadata["question"] for sample in made],
        "attributes asked for": [re.sub("|".join(WORDS), "_", sample.metadata["question"]) for sample in made],
        "counts of colours": [str(sorted(Counter(c for _, c, _ in shapes).values())) for shapes in listed],
        "counts of sizes": [str(sorted(Counter(s for s, _, _ in shapes).values())) for shapes in listed],
        "counts of forms": [str(sorted(Counter(f for _, _, f in shapes).values())) for shapes in listed],
        "counts of sizes and forms": [str(sorted(Counter((s, f) for s, _, f in shapes).values())) for shapes in listed],
        "first shape": [" ".join(shapes[0]) for shapes in listed],
        "last shape": [" ".join(shapes[-1]) for shapes in listed],
        "last line": [re.sub("|".join(WORDS), "_", sample.input.split("\n")[-3]) for sample in made],
    }
    chance = 1 / len(made[0].choices)
    allowed = 4 * (chance * (1 - chance) / 4000) ** 0.5  # four standard errors of a guess over 4,000 items
    rates = {cue: guessed_right([(c, s.target) for c, s in zip(seen, made, strict=True)]) for cue, seen in cues.items()}
    assert {cue: rate for cue, rate in rates.items() if rate > chance + allowed} == {}


@pytest.mark.parametrize("name", ["move_tracking", "shuffle_tracking", "superlative"])
def test_the_choices_are_the_shapes_shown(name: str):
    for sample in samples(50, name, settings={"shapes": 5}):
        assert len(set(sample.choices)) == 5
        assert all(shape in sample.input for shape in sample.choices)


def test_no_mention_tells_whether_a_shape_is_still_there():
    made = samples(8000, "existence_tracking")
    cues: dict[str, list[str]] = {
        "mentioned": [],
        "last mention": [],
        "named in events": [],
        "verb": [],
        "in group": [],
    }
    for sample in made:
        text = sample.input.rpartition("\n\n")[0]
        name = re.search(r"Is there a (\w+ \w+ \w+) on", sample.metadata["question"])[1]
        naming = [line for line in text.splitlines() if name in line]
        last = text.splitlines()[-1]
        group = set(re.findall("|".join(WORDS), last))
        cues["mentioned"].append(str(bool(naming)))
        cues["last mention"].append(naming[-1].replace(name, "_").split(" at ")[0])
        cues["named in events"].append(str(sum(name in line for line in text.splitlines()[-5:])))
        cues["verb"].append(last.split()[-1])
        cues["in group"].append(str(group <= set(name.split())))
    allowed = 4 * (0.25 / 4000) ** 0.5
    rates = {cue: guessed_right([(c, s.target) for c, s in zip(seen, made, strict=True)]) for cue, seen in cues.items()}
    assert set(cues["mentioned"]) == {"True"}
    assert {cue: rate for cue, rate in rates.items() if rate > 0.5 + allowed} == {}


def test_no_cue_tells_which_shape_was_shuffled_where():
    made = samples(6000, "shuffle_tracking", settings={"shapes": 6, "events": 4})
    hits: Counter[str] = Counter()
    for sample in made:
        first, *events = sample.input.partition("\n\n")[0].splitlines()
        line = first.partition(": ")[2].rstrip(".").split(", ")
        named = [shape for event in events for shape in re.findall(r"[Tt]he (\w+ \w+ \w+)", event)]
        often = Counter(named).most_common(1)[0][0]
        cues = {"top": line[0], "bottom": line[-1], "named first": named[0], "named last": named[-1], "often": often}
        cues["never named"] = next((shape for shape in line if shape not in named), line[0])
        hits.update(cue for cue, shape in cues.items() if shape == sample.target)
    allowed = 4 * (1 / 6 * 5 / 6 / 6000) ** 0.5
    assert {cue: n / 6000 for cue, n in hits.items() if abs(n / 6000 - 1 / 6) > allowed} == {}


@TASKS_WITH_FIXED_ANSWERS
def test_worked_examples_know_nothing_of_the_answer(name: str):
    made = samples(4000, name, few_shot=1)
    chance = 1 / len(create_task(REGISTERED_TASKS[name], name, {}).answers)
    agree = sum(sample.input[1].content == sample.target for sample in made)
    assert abs(agree / 4000 - chance) < 4 * (chance * (1 - chance) / 4000) ** 0.5


@given(st.integers(2, 48), st.integers())
def test_all_descriptions_say_the_same(n: int, seed: int):
    """Positions put into words pair by pair, checked against the coordinates by reading both texts back."""
    shapes = draw_canvas(n, Stream(seed), board_for(n))
    places = {
        name: (int(x), int(y))
        for name, x, y in re.findall(r"- (.+) at \((-?\d+), (-?\d+)\)", DESCRIPTIONS["coordinates"](shapes))
    }
    pattern = r"- the (.+) is (above|below) and to the (left|right) of the (.+)"
    for kind, pairs in (("full", n * (n - 1)), ("partial", n * (n - 1) // 2)):
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


def test_a_task_brings_its_own_description_or_adds_to_the_base_one():
    class Adding(Bringing):
        extends_description = True

    config = build_config({"task": "t", "model": "scripted/oracle", "limit": 1})
    (brought,) = take_samples(create_task(Bringing, "bringing", {}), config)
    assert brought.input == "There are 7 shapes.\n\nHow many?"
    (added,) = take_samples(create_task(Adding, "adding", {}), config)
    assert re.fullmatch(r"A canvas shows.*\nThere are 7 shapes\.\n\nHow many\?", added.input, re.DOTALL)


def test_a_task_that_says_nothing_else_credits_an_answer_that_contains_the_expected_one():
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
def test_a_task_that_breaks_the_rules_is_named_with_its_item(pairs: list[tuple[str, str]], said: str):
    class Broken(Bringing):
        def generate_questions(self, shapes, selected_answer=None):
            return pairs

        def select_expected_answer(self, i, n):
            return "Yes"

    config = build_config({"task": "t", "model": "scripted/oracle", "limit": 1, "limit_start": 3})
    with pytest.raises(TaskError) as caught:
        list(take_samples(create_task(Broken, "broken", {}), config))
    assert said in str(caught.value)


def test_unparsed_is_kept_apart_from_wrong():
    task = create_task(ExistenceTask, "shapes/existence", {})
    (sample,) = samples(1)
    other = "No" if sample.target == "Yes" else "Yes"
    scores = [task.score_text(sample, text) for text in (sample.target, other, "perhaps")]
    assert [(s.value, s.outcome) for s in scores] == [(1, "correct"), (0, "wrong"), (0, "unparsed")]


def test_pinned_sample():
    """A change here is a change of the data set: raise the version of the task."""
    (sample,) = samples(1, seed=42)
    assert sample.metadata["question"] == "Is there a yellow square?"
    assert sample.target == "No"
