"""PAL: how a question is asked, how an answer is read and compared, and how answers are put to the vote."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from helpers.code_tasks import chat_prompt, make_task, prompt_text, read, results, rows
from helpers.paths import CHECKOUT
from proctor.code.tasks.gsm import same_number, vote

pytestmark = pytest.mark.usefixtures("one_sandbox")

REAL = CHECKOUT.parent / "shared" / "data" / "gsm8k-test.jsonl"
GREEDY, VOTING = "pal-gsm8k-greedy-own-shots", "pal-gsm8k-majority_voting-own-shots"
PENCILS = rows("pal-gsm8k")[0]


def solution(value: str) -> str:
    return f"def solution():\n    return {value}\n"


@pytest.mark.parametrize(
    ("program", "accuracy"),
    [
        (solution("28"), 1),
        (solution("3 * 12 - 8.0"), 1),
        (solution("28.0009"), 1),  # within a thousandth
        (solution("28.002"), 0),
        (solution("'28'"), 1),
        (solution("'1,000'"), 0),
        (solution("None"), 0),
        (solution("True"), 0),
        (solution("[28]"), 0),
        (solution("float('nan')"), 0),
        (solution("1 / 0"), 0),
        ("def solution():\n    print('so', 3 * 12)\n    return 28\n", 1),  # the last line counts
        ("def solution():\n    print(28)\n", 0),
        ("print(28)", 0),
        ("", 0),
        ("def solution():\n    return 28\nexit(3)", 0),
    ],
)
def test_how_answers_are_read(program: str, accuracy: float) -> None:
    assert results(make_task(GREEDY, PENCILS), program)["accuracy"] == accuracy


@pytest.mark.parametrize("name", [GREEDY, VOTING])
def test_problems_without_a_number_are_counted(name: str) -> None:
    task = make_task(name, PENCILS)
    programs = [[solution("27")], ["1 / 0"], [solution("'many'"), ""], ["1 / 0", solution("28")]]
    found = task.process_results(programs, [28.0] * 4)
    assert found["num_failed_execution"] == 2
    assert isinstance(found["num_failed_execution"], int)


@pytest.mark.parametrize(
    ("answer", "target", "same"),
    [
        (18.0, 18, True),
        (18.0011, 18, False),
        (-2.0, 2, False),
        (None, 0, False),
        (4.503599627370498e15, 4.503599627370497e15, True),  # neighbours among numbers of this size
        (4503599627371000.0, 4503599627370497.0, False),
        (0.3333, 0.334, True),
    ],
)
def test_numbers_are_compared_with_a_tolerance(answer: float | None, target: float, same: bool) -> None:
    assert same_number(answer, target) is same


@pytest.mark.parametrize(
    ("answers", "elected"),
    [
        ([1.0, 2.0, 2.0], 2.0),
        ([3.0, 1.0, 1.0, 3.0], 3.0),  # the first of two
        ([None, None, None, 5.0], 5.0),  # who fails has no vote
        ([1 / 3, 0.33333, 0.5], 0.333),
        ([None], None),
    ],
)
def test_votes(answers: list[float | None], elected: float | None) -> None:
    assert vote(answers) == elected


def test_the_majority_decides() -> None:
    programs = [solution("28"), solution("27"), "1 / 0", solution("28.0"), solution("26"), "1 / 0", "1 / 0"]
    assert results(make_task(VOTING, PENCILS), *programs)["accuracy"] == 1
    assert results(make_task(GREEDY, PENCILS), *programs)["accuracy"] == pytest.approx(2 / 7)
    assert results(make_task(VOTING, PENCILS), solution("27"), "")["accuracy"] == 0


@pytest.mark.parametrize(("row", "target"), [*zip(rows("pal-gsm8k"), [28, 16200, -2], strict=True)])
def test_targets_stand_behind_the_reasoning(row: dict[str, Any], target: float) -> None:
    assert make_task(GREEDY, row).get_reference(row) == target


def test_the_prompt_has_eight_examples_and_ends_where_the_program_begins() -> None:
    task = make_task(GREEDY, PENCILS)
    prompt = prompt_text(task, PENCILS)
    assert prompt.count("# solution in Python:\n\n\ndef solution():") == 8
    assert prompt.endswith(f"Q: {PENCILS['question']}\n\n# solution in Python:\n\n\n")
    assert chat_prompt(task, PENCILS).count("```python\ndef solution():") == 8
    assert prompt_text(make_task(GREEDY, PENCILS, shots=2), PENCILS).count("Q: ") == 3


def test_the_examples_are_right() -> None:
    examples = make_task(GREEDY, PENCILS).fewshot_examples()
    answers = []
    for lines in examples["solutions"]:
        space: dict[str, Any] = {}
        exec(f"def solution():\n{lines}", space)
        answers.append(space["solution"]())
    assert answers == pytest.approx([76, 14, 160, 252, 6, 12, 480, 98])


def test_the_function_is_found_in_a_reply() -> None:
    task = make_task(GREEDY, PENCILS)
    reply = f"First:\n```\n3 * 12 = 36, and then 36 - 8 = 28, which is the answer\n```\n```python\n{solution('28')}```"
    assert read(task, reply).strip() == solution("28").rstrip()


@pytest.mark.skipif(not REAL.exists(), reason="there is no ../shared/data/gsm8k-test.jsonl beside the project")
def test_the_real_questions() -> None:
    """The reasoning of the rows has its sums in brackets; the last one, computed by a program, is the right answer."""
    real = [json.loads(line) for line in REAL.read_text().splitlines()]
    task = make_task(GREEDY, *real)
    assert len({prompt_text(task, row) for row in real}) >= 1318
    targets = [task.get_reference(row) for row in real]
    sums = [re.findall(r"<<([\d+*/().-]+)=[^>]*>>", row["answer"]) for row in real]
    computed = [(found[-1], target) for found, target in zip(sums, targets, strict=True) if found]
    assert len(computed) > 1200
    step = 12  # a hundred of them are run
    programs = [[solution(expression)] for expression, _ in computed[::step]]
    right = task.process_results(programs, [target for _, target in computed[::step]])
    assert right["accuracy"] > 0.9
    wrong = task.process_results(programs, [target + 1 for _, target in computed[::step]])
    assert wrong["accuracy"] < 0.1
