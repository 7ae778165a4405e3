"""Parity: the function with its bugs, the ways to show it, and what is run of an answer."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

import proctor
from helpers.code_tasks import prompt_text, solution_of
from proctor.code import Task, get_task
from proctor.core.errors import UsageError

STYLES = ["prompt", "prompt_carper", "diff", "edit"]


def make_parity(style: str) -> Task:
    return get_task("parity", SimpleNamespace(prompt=style))


def function(prompt: str) -> str:
    start = prompt.index("def parity")
    return prompt[start : prompt.index("\n    return bit_sum") + len("\n    return bit_sum % 2")]


@pytest.mark.parametrize("style", STYLES)
def test_each_problem_has_one_bug_more(style: str) -> None:
    task = make_parity(style)
    shown = [function(prompt_text(task, row)) for row in task.rows()]
    assert [code.count("c") - shown[0].count("c") for code in shown] == [0, 1, 2, 3, 3]
    assert [code.endswith("% 3") for code in shown] == [False, False, False, False, True]


def test_none_of_the_functions_shown_is_right() -> None:
    task = get_task("parity")
    for row in task.rows():
        space: dict[str, Any] = {}
        exec(function(prompt_text(task, row)), space)
        with pytest.raises(NameError):
            space["parity"](0, 0, 0, 0)


def test_the_report_tells_the_numbers_of_bugs_apart() -> None:
    options: dict[str, Any] = {"settings": {"prompt": "edit"}, "api": "completions", "allow_code_execution": True}
    report = proctor.evaluate("code/parity", "scripted/oracle", **options)
    assert report.metrics["pass@1"].value == 1
    assert [group["pass@1"].n for group in report.run.groups["bugs"].values()] == [1] * 5


@pytest.mark.parametrize("style", STYLES)
def test_every_way_of_showing_it(style: str, one_sandbox: None) -> None:
    task = make_parity(style)
    rows = task.rows()
    generations = [[prompt_text(task, row) + solution_of(task, row), prompt_text(task, row)] for row in rows]
    assert task.process_results(generations, [task.get_reference(row) for row in rows])["pass@1"] == 0.5


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        (" parity(b1,b2,b3,b4):\n    return b1 ^ b2 ^ b3 ^ b4\n", 1),
        (" parity(b1,b2,b3,b4):\n    return (b1 + b2 + b3 + b4) % 2\n# and so on\nnonsense here", 1),
        (" parity(b1,b2,b3,b4):\n    return (b1 + b2 + b3 + b4) % 3\n", 0),
        (" other(b1,b2,b3,b4):\n    return (b1 + b2 + b3 + b4) % 2\n", 0),
        (" parity(b1,b2,b3,b4):\n    return b1 or b2 or b3 or b4\n", 0),
    ],
)
def test_only_what_follows_the_prompt_is_run(text: str, passes: float, one_sandbox: None) -> None:
    task = get_task("parity")
    row = task.rows()[0]
    generation = task.postprocess_generation(prompt_text(task, row) + text, 0)
    assert task.process_results([[generation]], [task.get_reference(row)])["pass@1"] == passes


def test_the_tests_are_all_sixteen_cases() -> None:
    reference = get_task("parity").get_reference({"bugs": 1})
    space = {"parity": lambda *bits: bits.count(1) & 1}
    exec(reference, space)
    for wrong in itertools.product((0, 1), repeat=4):
        with pytest.raises(AssertionError):
            exec(reference, {"parity": lambda *bits, wrong=wrong: bits.count(1) & 1 ^ (bits == wrong)})


def test_an_unknown_way_is_named() -> None:
    with pytest.raises(UsageError, match="prompt_carper"):
        proctor.evaluate("code/parity", "scripted/oracle", settings={"prompt": "poem"}, allow_code_execution=True)
