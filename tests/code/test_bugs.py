"""Python Bugs: how the buggy function is shown, and what counts as the original."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import proctor
from helpers.code_tasks import ROWS, chat_prompt, make_task, prompt_text, read, rows, solution_of
from proctor.code import get_task
from proctor.core.errors import UsageError

FILE = str(ROWS / "python_bugs.jsonl")
AREA, LAST = rows("python_bugs")


@pytest.mark.parametrize(
    ("style", "before", "after"),
    [
        ("prompt", "#!/usr/bin/python3\n# A buggy implementation\n", "\n# Fixed {bug}\ndef"),
        ("prompt_carper", "# A buggy implementation\n#!/usr/bin/python3\n", "\n# Fixed {bug}\ndef"),
        ("edit", "<commit_before>", "<commit_msg>Fix {bug}<commit_after>"),
    ],
)
def test_how_the_function_is_shown(style: str, before: str, after: str) -> None:
    task = get_task("python_bugs", SimpleNamespace(prompt=style), data=FILE)
    for index, (row, bug) in enumerate([(AREA, "binary operator"), (LAST, "incorrect variable name")]):
        prompt = prompt_text(task, row)
        assert prompt == before + row["prompt_code"] + after.format(bug=bug)
        # What follows the function does not count, as it is cut to the length of the original.
        generation = f"{prompt}{solution_of(task, row)}\n\ndef more(): pass"
        assert task.postprocess_generation(generation, index) == row["correct_code"]
        assert task.postprocess_generation(f"{prompt}<|endoftext|>{row['correct_code']}", index) in ("", "def")


def test_only_the_original_is_right() -> None:
    task = make_task("python_bugs", AREA, LAST)
    texts = [[AREA["correct_code"], AREA["prompt_code"]], [LAST["prompt_code"], f"{LAST['correct_code']} "]]
    found = task.process_results(texts, [task.get_reference(row) for row in (AREA, LAST)])
    assert found == {"mean exact match": 0.25}


@pytest.mark.parametrize("text", ["{code}", "```python\n{code}\n```", "Fixed:\n```\n{code}\n```\nIt was wrong."])
def test_a_chat_model_replies_with_the_function(text: str) -> None:
    task = make_task("python_bugs", AREA)
    assert "Fix the binary operator in this Python function" in chat_prompt(task, AREA)
    assert read(task, text.format(code=AREA["correct_code"])) == AREA["correct_code"]


def test_bugs_are_counted_by_their_class() -> None:
    options: dict[str, Any] = {"api": "completions", "data": FILE}
    report = proctor.evaluate("code/python_bugs", "scripted/oracle", **options)
    assert report.metrics["mean exact match"].value == 1
    assert set(report.run.groups["bug_class"]) == {"bin-op", "var-misuse"}
    with pytest.raises(UsageError, match="expected prompt or prompt_carper or edit, got 'x'"):
        proctor.evaluate("code/python_bugs", "scripted/oracle", settings={"prompt": "x"}, **options)
