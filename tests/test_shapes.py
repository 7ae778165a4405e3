import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.config import build_config
from proctor.randomness import Stream
from proctor.shapes.answers import parse_yes_no
from proctor.shapes.canvas import BOUND, HALF_WIDTH, KINDS, draw_canvas
from proctor.shapes.tasks.existence import ExistenceTask, solve
from proctor.task import create_task
from proctor.types import Sample


def samples(n: int, **options: object) -> list[Sample]:
    settings = options.pop("settings", {})
    task = create_task(ExistenceTask, "shapes/existence", settings)
    config = build_config({"task": "shapes/existence", "model": "scripted/oracle", "limit": n} | options)
    return list(task.samples(config))


@given(st.integers(2, 24), st.integers())
def test_canvas_in_bounds_distinct_and_never_touching(n: int, seed: int):
    shapes = draw_canvas(n, Stream(seed))
    assert len({(s.size, s.colour, s.form) for s in shapes}) == n
    for shape in shapes:
        half = HALF_WIDTH[shape.size]
        assert abs(shape.x) + half <= BOUND
        assert abs(shape.y) + half <= BOUND
    for i, a in enumerate(shapes):
        for b in shapes[:i]:
            reach = HALF_WIDTH[a.size] + HALF_WIDTH[b.size]
            assert max(abs(a.x - b.x), abs(a.y - b.y)) > reach


def test_all_kinds_are_drawn_alike():
    counts = Counter(str(shape) for i in range(4000) for shape in draw_canvas(6, Stream(i)))
    assert len(counts) == len(KINDS)
    assert max(counts.values()) < 1.2 * min(counts.values())


@given(st.integers(2, 23), st.integers(0, 1000), st.integers(0, 3))
def test_the_answer_is_entailed_by_the_text(shapes: int, seed: int, few_shot: int):
    for sample in samples(5, seed=seed, few_shot=few_shot, settings={"shapes": shapes}):
        prompts = [sample.input] if isinstance(sample.input, str) else [m.content for m in sample.input]
        answers = [*prompts[1::2], sample.target]
        assert [solve(prompt) for prompt in prompts[::2]] == answers


def test_answers_are_balanced_in_every_block():
    made = samples(200)
    for start in range(0, 200, 20):
        counts = Counter(sample.target for sample in made[start : start + 20])
        assert counts == {"Yes": 10, "No": 10}
    first_half = Counter(sample.target for sample in made[:10])
    assert first_half["Yes"] not in (0, 10), "the order within a block is shuffled"
    assert [s.target for s in made] != [s.target for s in samples(200, seed=1)]


def guess_by_majority(pairs: list[tuple[str, str]]) -> float:
    """How often the answer is guessed right by one who saw half of the pairs and knows only the cue."""
    half = len(pairs) // 2
    seen: dict[str, Counter[str]] = {}
    for cue, answer in pairs[:half]:
        seen.setdefault(cue, Counter())[answer] += 1
    right = sum(answer == seen.get(cue, Counter({"Yes": 1})).most_common(1)[0][0] for cue, answer in pairs[half:])
    return right / half


def test_neither_the_question_nor_the_canvas_alone_tells_the_answer():
    made = samples(8000, settings={"shapes": 5})
    question_only = [(s.metadata["question"], s.target) for s in made]
    listed = [(re.findall(r"- (\w+) (\w+) (\w+) at", s.metadata["description"]), s.target) for s in made]
    cues = {
        "question": question_only,
        "number of colours": [(str(len({c for _, c, _ in shapes})), answer) for shapes, answer in listed],
        "number of sizes and forms": [
            (f"{len({z for z, _, _ in shapes})} {len({f for _, _, f in shapes})}", answer) for shapes, answer in listed
        ],
        "first shape": [(" ".join(shapes[0]), answer) for shapes, answer in listed],
    }
    # Four standard errors of a guess over 4,000 items.
    assert {cue: rate for cue, pairs in cues.items() if abs((rate := guess_by_majority(pairs)) - 0.5) > 0.032} == {}


def test_worked_examples_know_nothing_of_the_answer():
    made = samples(4000, few_shot=1)
    agree = sum(sample.input[1].content == sample.target for sample in made)
    assert abs(agree / 4000 - 0.5) < 0.032


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Yes", "Yes"),
        ("no.", "No"),
        ("**No**", "No"),
        ("Answer: Yes.", "Yes"),
        ("YES, there is a red square.", "Yes"),
        ("No, there is not; yes would be wrong.", "No"),
        ("There is no such shape.", "No"),
        ("I do not know.", None),
        ("It could be yes or no.", None),
        ("Nothing known. Yesterday, maybe.", None),
        ("", None),
        ("<think>yes? no?</think>No", "No"),
        ("<think>it must be yes", None),
    ],
)
def test_yes_no(text: str, answer: str | None):
    assert parse_yes_no(text) == answer


def test_unparsed_is_kept_apart_from_wrong():
    task = create_task(ExistenceTask, "shapes/existence", {})
    (sample,) = samples(1)
    other = "No" if sample.target == "Yes" else "Yes"
    scores = [task.score_text(sample, text) for text in (sample.target, other, "perhaps")]
    assert [(s.value, s.outcome) for s in scores] == [(1, "correct"), (0, "wrong"), (0, "unparsed")]


def test_pinned_sample():
    """A change here is a change of the data set: raise the version of the task."""
    (sample,) = samples(1, seed=42)
    assert sample.metadata["question"] == "Is there a large blue square?"
    assert sample.target == "No"
