"""APPS: programs judged by what they print, functions by what they return, and the share of the tests they pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

import proctor
from helpers.code_tasks import (
    chat_prompt,
    make_task,
    prompt_parts,
    read,
    results,
    rows,
    score_of,
    solution_of,
    write_rows,
)
from proctor.code.tasks.apps import same_output
from proctor.core.errors import UsageError

pytestmark = pytest.mark.usefixtures("one_sandbox")


@pytest.mark.parametrize(
    ("found", "right", "same"),
    [
        ("1 2\n3\n", "1 2\n3", True),
        ("  1   2\r\n\n3  \n\n", "1 2\n3\n", True),
        ("1 2 3", "1 2\n3", False),  # lines are lines
        ("3\n1 2", "1 2\n3", False),
        ("Yes", "YES", False),
        ("", "0", False),
        ("0.3333333", "0.333333", True),
        ("2.5", "2.50", True),
        ("3", "3.0", True),
        ("1e-3", "0.001", True),
        ("0.34", "0.33", False),
        ("1000001", "1000000", False),  # whole numbers are never nearly equal
        ("007", "7", True),
        ("-0", "0", True),
        ("case 1: 0.50", "case 1: 0.5", True),
        ("nan", "0.5", False),
    ],
)
def test_what_counts_as_the_same_output(found: str, right: str, same: bool) -> None:
    assert same_output(found, right) is same


def test_another_order_counts_only_if_asked_for() -> None:
    assert same_output("b a\nc", "c\na b", any_order=True)
    assert not same_output("b a\nd", "c\na b", any_order=True)


def problem(number: int = 1, **tests: Any) -> dict[str, Any]:
    return {**rows("apps")[0], "problem_id": number, "input_output": json.dumps(tests)}


def test_the_share_of_the_tests_is_counted_beside_strict_accuracy() -> None:
    task = make_task("apps-introductory", problem(inputs=["1", "2", "3", "4"], outputs=["1", "2", "3", "4"]))
    assert results(task, "print(input())") == {"pass@1": 1, "avg_accuracy": 1}
    assert results(task, "print(min(3, int(input())))") == {"pass@1": 0, "avg_accuracy": 0.75}
    two = results(task, "print(input())", "print(min(2, int(input())))")
    assert two == {"pass@1": 0.5, "pass@2": 1, "avg_accuracy": 0.75}


def test_a_long_output_may_be_right() -> None:
    row = problem(inputs=["3000", "1"], outputs=[f"{'x' * 999}\n" * 3000, "x" * 999])
    task = make_task("apps-introductory", row)
    assert results(task, "print(('x' * 999 + '\\n') * int(input()))") == {"pass@1": 1, "avg_accuracy": 1}
    assert results(task, "while True: print('x' * 999)") == {"pass@1": 0, "avg_accuracy": 0}


def test_a_test_that_crashes_leaves_the_others_alone() -> None:
    task = make_task("apps-introductory", problem(inputs=["1", "2", "3"], outputs=["1", "2", "3"]), timeout=0.5)
    hurt = "import os\nn = int(input())\nif n == 1: os._exit(0)\nwhile n == 2: pass\nprint(n)"
    assert results(task, hurt)["avg_accuracy"] == pytest.approx(1 / 3)


def test_endless_programs_are_given_up_after_some_tests() -> None:
    inputs = [str(i) for i in range(20)]
    data = write_rows(problem(inputs=inputs, outputs=inputs))
    replay = {"id": "1", "outputs": [{"text": "while True: pass"}]}
    with open("replay.jsonl", "w") as file:
        file.write(json.dumps(replay))
    report = proctor.evaluate(
        "code/apps-introductory",
        "scripted/replay:replay.jsonl",
        data=data,
        allow_code_execution=True,
        settings={"timeout": 0.1},
    )
    (record,) = report.records()
    assert (score_of(record).value, score_of(record).outcome) == (0, "timeout")
    assert len(score_of(record).answer["trials"]) == 8


def test_the_same_program_in_two_problems_is_judged_by_each() -> None:
    data = write_rows(problem(1, inputs=["5"], outputs=["5"]), problem(2, inputs=["5"], outputs=["25"]))
    with open("replay.jsonl", "w") as file:
        for number in ("1", "2"):
            file.write(json.dumps({"id": number, "outputs": [{"text": "print(input())"}]}) + "\n")
    report = proctor.evaluate(
        "code/apps-introductory", "scripted/replay:replay.jsonl", data=data, allow_code_execution=True
    )
    assert [score_of(record).value for record in report.records()] == [1, 0]
    assert report.metrics["pass@1"].value == 0.5
    (failed,) = (record for record in report.records() if score_of(record).value == 0)
    assert score_of(failed).why == "It printed '5\\n' instead of '25'."


@pytest.mark.parametrize(
    ("program", "printed"),
    [
        ("print(sum(map(int, open(0))))", "3"),
        ("import sys\nprint(sum(map(int, sys.stdin.readlines())))", "3"),
        ("def main():\n    print(int(input()) + int(input()))\nif __name__ == '__main__':\n    main()", "3"),
        ("print(int(input()) + int(input()))\nexit()\nprint('more')", "3"),
        ("import os\nos.write(1, str(sum(map(int, os.read(0, 99).split()))).encode())", "3"),
        ("print(max(accumulate(map(int, [input(), input()]))))", "3"),  # imports may be left out
        ("print(np.sum([int(input()), int(input())]))", "3"),
        ("from __future__ import annotations\nprint(int(input()) + int(input()))", "3"),
        ("print(Fraction(int(input()), int(input())))", "1/2"),
    ],
)
def test_programs_run_as_contestants_write_them(program: str, printed: str) -> None:
    task = make_task("apps-introductory", problem(inputs=["1\n2\n"], outputs=[printed]))
    assert results(task, program)["pass@1"] == 1


@pytest.mark.parametrize(
    ("outputs", "body", "right"),
    [
        ([[1, 2]], "return 1, 2", True),  # there are no tuples in the file
        ([[[1, 2]]], "return [1, 2]", True),  # most answers are the only item of a list
        ([[[1, 2]]], "return [(1, 2)]", True),
        ([{"1": "a"}], "return {1: 'a'}", True),  # nor keys that are numbers
        ([[1, 2]], "return [2, 1]", False),
        ([True], "return 'True'", False),
        ([[1]], "print(1)", False),
    ],
)
def test_what_a_function_may_return(outputs: list[Any], body: str, right: bool) -> None:
    task = make_task("apps-introductory", problem(fn_name="f", inputs=[[{"3": 4}]], outputs=outputs))
    assert results(task, f"def f(table):\n    assert table == {{3: 4}}\n    {body}")["pass@1"] == right


def test_a_method_of_a_class_is_called_too() -> None:
    row = rows("apps")[2]
    task = make_task("apps-interview", row)
    assert prompt_parts(task, row)["instruction"].endswith("Use Call-Based format\nANSWER:")
    assert results(task, solution_of(task, row))["pass@1"] == 1
    assert results(task, "def largestProduct(numbers):\n    return max(a * b for a, b in combinations(numbers, 2))")[
        "pass@1"
    ] == 1  # fmt: skip


def test_an_object_that_equals_everything_passes_nothing() -> None:
    task = make_task("apps-introductory", problem(fn_name="f", inputs=[[1]], outputs=[2]))
    liar = "class Yes:\n    def __eq__(self, other): return True\ndef f(x): return Yes()"
    assert results(task, liar)["pass@1"] == 0


@pytest.mark.parametrize("level", ["introductory", "interview", "competition"])
def test_all_levels_come_from_one_file_and_pass_by_their_solutions(level: str) -> None:
    task = make_task(f"apps-{level}", *rows("apps"))
    assert {row["difficulty"] for row in task.rows()} == {level}
    solutions = [[solution_of(task, row)] for row in task.rows()]
    references = [task.get_reference(row) for row in task.rows()]
    assert task.process_results(solutions, references) == {"pass@1": 1, "avg_accuracy": 1}


def test_a_level_that_is_not_in_the_file_is_named() -> None:
    with pytest.raises(UsageError, match="competition"):
        make_task("apps-competition", rows("apps")[0]).rows()


def test_a_problem_without_tests_is_an_error_not_a_failure() -> None:
    bare = {**problem(2), "input_output": ""}
    data = write_rows(problem(1, inputs=["1"], outputs=["1"]), bare)
    with open("replay.jsonl", "w") as file:
        for number in ("1", "2"):
            file.write(json.dumps({"id": number, "outputs": [{"text": "print(input())"}]}) + "\n")
    report = proctor.evaluate(
        "code/apps-introductory", "scripted/replay:replay.jsonl", data=data, allow_code_execution=True
    )
    assert (report.run.errors, report.metrics["pass@1"].value) == (1, 1)


def test_both_ways_of_asking() -> None:
    stdin, function = rows("apps")[:2]
    task = make_task("apps-introductory", stdin, function)
    assert "reads stdin" in chat_prompt(task, stdin)
    assert "function swap_ends" in chat_prompt(task, function)
    reply = "Say:\n```\nnot this, though it is longer than the function below, by far\n```\nThen:\n"
    reply += "```python\ndef swap_ends(items):\n    return items\n```"
    assert read(task, reply, 1) == "def swap_ends(items):\n    return items"
