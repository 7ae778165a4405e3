"""QuixBugs: how the fixed function is asked for, and that it keeps the imports of the buggy one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.code import get_task
from proctor.errors import UsageError

DATA = str(Path(__file__).parent / "code_rows" / "quixbugs.jsonl")


@pytest.mark.parametrize("prompt", ["prompt", "prompt_codex", "edit"])
def test_every_way_of_asking_has_its_right_answer(prompt: str) -> None:
    options: dict[str, Any] = {"api": "completions", "settings": {"prompt": prompt}, "allow_code_execution": True}
    report = proctor.evaluate("code/quixbugs", "scripted/oracle", data=DATA, **options)
    assert report.metrics["pass@1"].value == 1


def test_the_buggy_program_fails() -> None:
    task = get_task("quixbugs", data=DATA)
    for index, row in enumerate(task.rows()):
        asked = task.get_prompt(row)
        assert asked == f"# Buggy function\n{row['buggy_program']}\n# Fixed function\ndef"
        buggy = row["buggy_program"].partition("def")[2]
        generation = task.postprocess_generation(f"{asked}{buggy}\n# Another function\nclass A:\n    pass", index)
        assert generation == row["buggy_program"]


@pytest.mark.parametrize(
    "reply", ["def reachable(start, goal):\n    return Queue", " reachable(start, goal):\n    return Queue"]
)
def test_imports_are_kept(reply: str) -> None:
    task = get_task("quixbugs", data=DATA)
    generation = task.read_chat(task.rows()[1], task._form(1), f"```python\n{reply}\n```", 1)
    assert generation.strip() == (
        "from collections import deque as Queue\n\ndef reachable(start, goal):\n    return Queue"
    )


def test_an_unknown_prompt() -> None:
    with pytest.raises(UsageError, match=r"'x' is not one of prompt, prompt_codex, edit"):
        get_task("quixbugs", type("Arguments", (), {"prompt": "x"}), data=DATA)
