"""DS-1000: answers put into the tests' own programs, both kinds of prompts, and libraries that may not be there."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

import proctor
from helpers.code_tasks import ROWS, chat_prompt, make_task, prompt_parts, read, results, rows, score_of, solution_of
from proctor.code.tasks.ds1000 import DS1000, SUBJECTS
from proctor.core.errors import UsageError

pytestmark = pytest.mark.usefixtures("one_sandbox")

BY_LIBRARY = {row["metadata"]["library"]: row for row in reversed(rows("ds1000"))}
MODULES = {"Sklearn": "sklearn", "Pytorch": "torch"}
QUICK = ("Numpy",)  # to import
COLUMNS, SCALED, LENGTHS = rows("ds1000")[:3]


@pytest.mark.parametrize(
    "subject", [subject if subject in QUICK else pytest.param(subject, marks=pytest.mark.slow) for subject in SUBJECTS]
)
def test_the_reference_passes_if_the_library_is_there(subject: str) -> None:
    module = MODULES.get(subject, subject.lower())
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"there is no {module}: pip install {DS1000.LIBRARIES[module]}")
    task = make_task(f"ds1000-{subject.lower()}-completion", BY_LIBRARY[subject])
    assert results(task, solution_of(task, BY_LIBRARY[subject]))["pass@1"] == 1


@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        ("result = a.sum(axis=0)", 1),
        ("result = a.sum(axis=1)", 0),
        ("result = np.array([sum(column) for column in a.T])", 0),  # right, but test_string forbids loops
        ("result = a.sum(axis=0)\nexit()", 0),
        ("import os\nresult = a.sum(axis=0)\nos._exit(0)", 0),
        ("import sys\nsys.exit(0)", 0),
        ("result = a.sum(axis=0", 0),
        ("x = '''\"\"\"[insert]'''\nresult = a.sum(axis=0)", 1),
    ],
)
def test_answers_are_judged_by_both_tests_of_a_row(answer: str, passes: float) -> None:
    assert results(make_task("ds1000-numpy-completion", COLUMNS), answer)["pass@1"] == passes


def test_the_records_say_that_a_pass_could_be_faked() -> None:
    report = proctor.evaluate(
        "code/ds1000-numpy-completion",
        "scripted/oracle",
        data=str(ROWS / "ds1000.jsonl"),
        allow_code_execution=True,
    )
    assert {trial["testing"] for record in report.records() for trial in score_of(record).answer} == {"in-process"}
    assert report.run.groups["library"]["Numpy"]["pass@1"].value == 1


def test_a_prompt_to_go_on_with_is_the_rows_own() -> None:
    prompt = make_task("ds1000-numpy-completion", COLUMNS).get_prompt(COLUMNS)
    assert prompt == {"instruction": COLUMNS["prompt"].removesuffix("\n"), "context": ""}


def test_insertion_from_a_row_of_the_original_format() -> None:
    row = {**LENGTHS, "prompt": "Problem:\n...\n<code>\n[insert]\n</code>\nEND SOLUTION\n<code>\nprint(df)\n</code>\n"}
    task = make_task("ds1000-pandas-insertion", row)
    assert task.get_prompt(row) == {
        "prefix": "Problem:\n...\n<code>\n",
        "suffix": "\n</code>\nEND SOLUTION\n<code>\nprint(df)\n</code>\n",
    }


def test_insertion_from_a_row_of_the_hub_ends_with_what_follows_the_answer() -> None:
    task = make_task("ds1000-pandas-insertion", LENGTHS)
    prompt = prompt_parts(task, LENGTHS)
    assert prompt["prefix"].endswith("BEGIN SOLUTION\n<code>\n")
    assert prompt["suffix"] == "\n</code>\nEND SOLUTION\n<code>\nresult = df\n</code>\n"


def test_an_inserted_answer_is_taken_out_of_its_surroundings() -> None:
    task = make_task("ds1000-pandas-insertion", LENGTHS)
    prompt = prompt_parts(task, LENGTHS)
    answer = "df['length'] = 1"
    whole = f"{prompt['prefix']}{answer}\n</code>\nand more{prompt['suffix']}"
    assert task.postprocess_generation(whole, 0) == answer


def test_there_is_no_insertion_for_plots() -> None:
    both = rows("ds1000")
    assert {row["metadata"]["library"] for row in make_task("ds1000-all-completion", *both).rows()} == set(SUBJECTS)
    inserted = make_task("ds1000-all-insertion", *both).rows()
    assert {row["metadata"]["library"] for row in inserted} == set(SUBJECTS) - {"Matplotlib"}
    plot = BY_LIBRARY["Matplotlib"]
    assert set(make_task("ds1000-matplotlib-insertion", plot).get_prompt(plot)) == {"instruction", "context"}


def test_a_library_without_rows_is_named() -> None:
    with pytest.raises(UsageError, match="Scipy"):
        make_task("ds1000-scipy-completion", COLUMNS).rows()


@pytest.mark.parametrize(
    "reply",
    [
        "Like this:\n```python\nresult = x / x.max()\nreturn result\n```",
        "```python\n    result = x / x.max()\n    return result\n```",
        "```python\ndef f(x):\n    # the largest becomes 1\n    return x / x.max()\n```",
        "    return x / x.max()",
    ],
)
def test_the_body_of_a_function_is_found_in_a_reply(reply: str) -> None:
    task = make_task("ds1000-numpy-completion", SCALED)
    assert results(task, read(task, reply))["pass@1"] == 1


def test_a_function_in_an_answer_is_left_whole() -> None:
    task = make_task("ds1000-numpy-completion", COLUMNS)
    answer = "def g(a):\n    return a.sum(axis=0)\n\nresult = g(a)"
    assert read(task, f"So:\n```python\n{answer}\n```\nDone.") == answer
    assert results(task, answer)["pass@1"] == 1


def test_a_chat_model_sees_where_its_answer_goes() -> None:
    shown = chat_prompt(make_task("ds1000-numpy-completion", SCALED), SCALED)
    assert "def f(x):\n[insert]\nresult = f(x)" in shown
    assert "generate_ans" not in shown


def test_tests_without_a_place_for_an_answer_are_a_fault_of_the_row() -> None:
    row: dict[str, Any] = {**COLUMNS, "code_context": COLUMNS["code_context"].replace("[insert]", "")}
    with pytest.raises(ValueError, match="problem 300"):
        make_task("ds1000-numpy-completion", row).chat_prompt(row)
