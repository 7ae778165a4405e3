"""The starter set of code problems: its rows are complete, their references pass, and what only looks right fails."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import proctor
from conftest import RunInLanguages
from helpers.toolchains import marks, needs_language
from proctor.code import TASK_REGISTRY
from proctor.sandbox import Limits, Mode, Outcome, Program, Verdict
from proctor.sandbox.languages import find_language

Row = dict[str, Any]
FILE = Path(proctor.__file__).parent / "code" / "tasks" / "starter.jsonl"
ROWS: list[Row] = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
FIELDS = [
    "task_id",
    "problem",
    "language",
    "difficulty",
    "prompt",
    "canonical_solution",
    "test",
    "entry_point",
    "stop",
    "wrong",
]
OTHERS = ["javascript", "java", "c", "cpp", "go", "rust", "php", "ruby", "lua", "perl", "bash"]

# Ends a function that does nothing, where such a function can be run at all.
NOTHING = {
    "python": "    pass\n",
    "javascript": "}\n",
    "php": "}\n",
    "ruby": "end\n",
    "lua": "end\n",
    "perl": "}\n",
    "bash": "    :\n}\n",
}
# Ends the function, and leaves with exit status 0 before the tests are over.
LEAVING = {
    "python": "    raise SystemExit(0)\n",
    "javascript": "  process.exit(0);\n}\n",
    "java": "        System.exit(0);\n        throw new RuntimeException();\n    }\n",
    "c": "    __builtin_exit(0);\n}\n",
    "cpp": "    __builtin_exit(0);\n}\n",
    "rust": "    std::process::exit(0)\n}\n",
    "php": "    exit(0);\n}\n",
    "ruby": "  exit(0)\nend\n",
    "lua": "    os.exit(0)\nend\n",
    "perl": "    exit 0;\n}\n",
    "bash": "    :\n}\nexit 0\n",
}
by_row = pytest.mark.parametrize("row", ROWS, ids=[row["task_id"] for row in ROWS])


def as_program(row: Row, completion: str) -> Program:
    name = "starter" if row["language"] == "python" else f"starter-{row['language']}"
    return TASK_REGISTRY[name]().program(row, row["prompt"] + completion)


@pytest.fixture
def judge(run_in_languages: RunInLanguages) -> RunInLanguages:
    def judge(language: str, programs: list[Program]) -> list[Verdict]:
        needs_language(language)
        return run_in_languages(programs, Limits(seconds=10.0))

    return judge


@pytest.mark.parametrize("language", [pytest.param(name, marks=marks(name)) for name in ("python", *OTHERS)])
def test_references_pass_and_nothing_else_does(language: str, judge: RunInLanguages) -> None:
    rows = [row for row in ROWS if row["language"] == language]
    completions = [(row, "reference", row["canonical_solution"]) for row in rows]
    completions += [(row, "blank", "") for row in rows]
    completions += [(row, "nothing", NOTHING[language]) for row in rows if language in NOTHING]
    completions += [(row, "wrong", wrong) for row in rows for wrong in row["wrong"]]
    completions += [(rows[0], "leaving", LEAVING[language])] if language in LEAVING else []
    verdicts = judge(language, [as_program(row, completion) for row, _, completion in completions])
    for (row, kind, completion), verdict in zip(completions, verdicts, strict=True):
        told = f"{row['task_id']}, {kind}:\n{completion}\n{verdict}"
        if kind == "reference":
            assert verdict.outcome is Outcome.PASSED, told
        elif kind == "leaving":
            assert verdict.outcome is Outcome.EXITED, told
        else:
            assert verdict.outcome in (Outcome.FAILED, Outcome.CRASHED), told
        if kind == "wrong":  # for what it does, not because it cannot be run
            assert "While compiling" not in verdict.detail, told
            assert "SyntaxError" not in verdict.detail, told
        if language == "python":
            assert verdict.testing is Mode.SPLIT, told


def test_the_examples_in_python_prompts_are_true(judge: RunInLanguages) -> None:
    rows = [row for row in ROWS if row["language"] == "python"]
    examples = "\nimport doctest\nfailed, tried = doctest.testmod()\nassert tried and not failed\n"
    programs = [Program(source=row["prompt"] + row["canonical_solution"] + examples) for row in rows]
    for row, verdict in zip(rows, judge("python", programs), strict=True):
        assert verdict.passed, (row["task_id"], verdict)


@by_row
def test_a_row_is_complete(row: Row) -> None:
    assert list(row) == FIELDS
    assert row["task_id"] == f"starter/{row['problem']}/{row['language']}"
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", row["problem"])
    assert find_language(row["language"]).name == row["language"]
    assert row["difficulty"] in ("easy", "medium", "hard")
    for field in ("prompt", "canonical_solution", "test"):
        assert row[field].strip()
        assert row[field].endswith("\n")
    assert row["stop"]
    assert len(set(row["stop"])) == len(row["stop"])
    assert row["wrong"]
    completions = [row["canonical_solution"], *row["wrong"]]
    assert len(set(completions)) == len(completions)
    for completion in completions:
        assert not [stop for stop in row["stop"] if stop in completion]


@by_row
def test_the_python_rows_are_functions_with_a_check(row: Row) -> None:
    if row["language"] != "python":
        assert row["entry_point"] == ""
        return
    *_, function = ast.parse(row["prompt"]).body
    assert isinstance(function, ast.FunctionDef)
    assert function.name == row["entry_point"] == row["problem"]
    assert ast.get_docstring(function)
    assert len(function.body) == 1  # the docstring
    assert row["prompt"].endswith('"""\n')
    (check,) = ast.parse(row["test"]).body
    assert isinstance(check, ast.FunctionDef)
    assert check.name == "check"
    assert [argument.arg for argument in check.args.args] == ["candidate"]
    assert sum(isinstance(node, ast.Assert) for node in ast.walk(check)) >= 8
    assert "random.Random(" in row["test"]
    assert len(row["wrong"]) >= 2


def test_the_set_as_a_whole() -> None:
    assert len({row["task_id"] for row in ROWS}) == len(ROWS)
    difficulty_of = {row["problem"]: row["difficulty"] for row in ROWS}
    assert all(row["difficulty"] == difficulty_of[row["problem"]] for row in ROWS)
    assert len(difficulty_of) >= 40
    assert set(difficulty_of.values()) == {"easy", "medium", "hard"}
    languages = Counter(row["language"] for row in ROWS)
    assert set(languages) == {"python", *OTHERS}
    assert languages["python"] >= 24
    assert min(languages.values()) >= 2
    stops: dict[str, list[str]] = {}
    assert all(row["stop"] == stops.setdefault(row["language"], row["stop"]) for row in ROWS)
    in_several = [problem for problem, count in Counter(row["problem"] for row in ROWS).items() if count > 1]
    assert len(in_several) >= 10
