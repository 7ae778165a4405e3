"""HumanEval+ and MBPP+: both forms of their rows, and how answers are compared where rows have inputs alone."""

from __future__ import annotations

from typing import Any

import pytest

import proctor
from helpers.code_tasks import ROWS, make_task, results, rows, score_of
from proctor.core.errors import MissingDataError

pytestmark = pytest.mark.usefixtures("one_sandbox")

INPUTS = {row["entry_point"]: row for row in rows("humanevalplus-inputs")}


def passes(entry_point: str, body: str) -> bool:
    row = INPUTS[entry_point]
    return results(make_task("humanevalplus", row), f"{row['prompt']}    {body}\n")["pass@1"] == 1


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_rows_of_evalplus_are_judged_by_their_reference(api: str) -> None:
    options: dict[str, Any] = {
        "data": str(ROWS / "humanevalplus-inputs.jsonl"),
        "allow_code_execution": True,
        "api": api,
    }
    right = proctor.evaluate("code/humanevalplus", "scripted/oracle", **options)
    assert [score_of(record).value for record in right.records()] == [1, 1, 1, 1]
    assert {trial["testing"] for record in right.records() for trial in score_of(record).answer} == {"split"}
    assert proctor.evaluate("code/humanevalplus", "scripted/blank", **options).metrics["pass@1"].value == 0


def test_a_program_that_only_meets_the_original_inputs_fails() -> None:
    assert not passes("half", "return (text[:1], text[1:]) if len(text) < 4 and text else (text[:2], text[2:])")
    assert passes("half", "cut = len(text) // 2; return text[:cut], text[cut:]")


@pytest.mark.parametrize(
    ("body", "right"),
    [
        ("return min(values) / 2 + max(values) / 2", True),  # rounded in another way
        ("return (min(values) + max(values)) / 2 + 1e-7", True),  # within the tolerance for floating-point numbers
        ("return (min(values) + max(values)) / 2 + 1e-4", False),
        ("return str((min(values) + max(values)) / 2)", False),
        ("return [(min(values) + max(values)) / 2]", False),
    ],
)
def test_floating_point_numbers_may_differ_a_little(body: str, right: bool) -> None:
    assert passes("middle", body) is right


@pytest.mark.parametrize(
    ("body", "right"),
    [
        ("return sum(abs(n) % 10 for n in numbers)", True),
        ("return float(sum(abs(n) % 10 for n in numbers))", True),  # equal to the whole number
        ("return sum(abs(n) % 10 for n in numbers) + 1e-7", False),  # near is not enough for whole numbers
        ("numbers.clear(); return 0", False),
    ],
)
def test_other_answers_must_be_equal(body: str, right: bool) -> None:
    assert passes("last_digit_sum", body) is right


def test_inputs_that_a_program_changes_are_not_the_references() -> None:
    assert passes("last_digit_sum", "total = 0\n    while numbers: total += abs(numbers.pop()) % 10\n    return total")


@pytest.mark.parametrize(
    ("body", "right"),
    [
        ("return {2: -0.5, 4: {-6: 2.0, 8: -2.0}.get(xs[0])}[len(xs)]", True),  # another zero than the reference's
        ("return {2: -0.5, 4: {-6: 2.1, 8: -2.0}.get(xs[0])}[len(xs)]", False),
        ("return None", False),
    ],
)
def test_any_zero_of_a_polynomial_is_right(body: str, right: bool) -> None:
    assert passes("find_zero", body) is right


def test_mbpp_can_be_judged_by_its_original_tests() -> None:
    row = rows("mbppplus")[0]
    only_original = "def shared_items(one, other):\n    return (4, 5) if 5 in one else ()\n"
    assert results(make_task("mbppplus", row), only_original)["pass@1"] == 0
    assert results(make_task("mbppplus", row, original_tests=True), only_original)["pass@1"] == 1


@pytest.mark.parametrize(
    ("name", "asked"), [("mbpp", [11, 510, "mine"]), ("mbpp-sanitized", [1, 10, 11, 510, 511, 974, "mine"])]
)
def test_of_all_of_mbpp_its_test_split_is_asked(name: str, asked: list[Any]) -> None:
    row = rows("mbpp")[0]
    task = make_task(name, *({**row, "task_id": number} for number in (1, 10, 11, 510, 511, 974, "mine")))
    assert [row["task_id"] for row in task.rows()] == asked


def test_problems_to_learn_from_are_not_asked() -> None:
    with pytest.raises(MissingDataError, match="no problem from 11 to 510, which are those of code/mbpp"):
        make_task("mbpp", rows("mbpp")[0] | {"task_id": 601}).rows()


def test_mbpp_shows_one_of_the_original_tests() -> None:
    row = rows("mbppplus")[0]
    prompt = make_task("mbppplus", row).get_prompt(row)
    assert prompt == f'"""\n{row["prompt"]}\n{row["test_list"][0]}\n"""\n'
