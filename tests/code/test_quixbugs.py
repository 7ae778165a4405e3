"""QuixBugs: how the fixed function is asked for, and that it keeps the imports of the buggy one."""

from __future__ import annotations

from typing import Any

import pytest

import proctor
from helpers.paths import DATA
from proctor.code import get_task
from proctor.code.bugs import bug_class
from proctor.code.rows import read_rows
from proctor.core.errors import UsageError

FILE = str(DATA / "code_rows" / "quixbugs.jsonl")


@pytest.mark.parametrize("prompt", ["prompt", "prompt_codex", "edit"])
def test_every_way_of_asking_has_its_right_answer(prompt: str) -> None:
    options: dict[str, Any] = {"api": "completions", "settings": {"prompt": prompt}, "allow_code_execution": True}
    report = proctor.evaluate("code/quixbugs", "scripted/oracle", data=FILE, **options)
    assert report.metrics["pass@1"].value == 1


def test_the_buggy_program_fails() -> None:
    task = get_task("quixbugs", data=FILE)
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
    task = get_task("quixbugs", data=FILE)
    generation = task.read_chat(task.rows()[1], task._form(1), f"```python\n{reply}\n```", 1)
    assert generation.strip() == (
        "from collections import deque as Queue\n\ndef reachable(start, goal):\n    return Queue"
    )


def test_bugs_are_counted_by_their_class() -> None:
    options: dict[str, Any] = {"api": "completions", "allow_code_execution": True, "workers": 1}
    report = proctor.evaluate("code/quixbugs", "scripted/oracle", data=FILE, **options)
    expected = {bug_class(row["buggy_program"], row["solution"]) for row in read_rows(FILE)}
    assert set(report.run.groups["bug_class"]) == expected
    assert "other" not in expected


@pytest.mark.parametrize(
    ("buggy", "mended", "kind"),
    [
        ("n ^= n - 1", "n &= n - 1", "wrong operator"),
        ("x = not a", "x = -a", "wrong operator"),
        ("f(a % b, b)", "f(b, a % b)", "swapped arguments"),
        ("x = a - b", "x = b - a", "swapped parts"),
        ("f(low, high)", "f(low + 1, high)", "missing arithmetic"),
        ("x = abs(a - b)", "x = a - b", "needless call"),
        ("x = a", "x = sorted(a)", "missing call"),
        ("while a < b: f()", "while a <= b: f()", "wrong comparison"),
        ("while True: f()", "while queue: f()", "missing condition"),
        ("if a: f()", "if a and b: f()", "missing condition"),
        ("if a or b: f()", "if a and b: f()", "wrong condition"),
        ("if a and b and c: f()", "if a and b: f()", "needless condition"),
        ("x = a if b else c", "x = a", "needless condition"),
        ("if a: f()", "if b: f()", "wrong variable"),
        ("x = a.left", "x = a.right", "wrong attribute"),
        ("x = 1", "x = 2", "wrong constant"),
        ("a()", "a()\nb()", "missing statement"),
        ("a()\nb()", "b()", "needless statement"),
        ("x = []", "x = [n]", "missing expression"),
        ("return_ = 1", "pass", "wrong statement"),
        ("'''One.'''\nx = 1", "'''Two.'''\nx = 0", "wrong constant"),
        ("x = 1  # one", "x = 1", "other"),
        ("x = (", "x = 1", "other"),
    ],
)
def test_what_kind_of_bug_it_is(buggy: str, mended: str, kind: str) -> None:
    assert bug_class(buggy, mended) == kind


def test_an_unknown_prompt() -> None:
    with pytest.raises(UsageError, match=r"'x' is not one of prompt, prompt_codex, edit"):
        get_task("quixbugs", type("Arguments", (), {"prompt": "x"}), data=FILE)
