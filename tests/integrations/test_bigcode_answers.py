"""Right answers in the rows of task files, wherever a data set keeps them: judged by --check_references."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conftest import Command
from helpers.bigcode_tasks import ROWS, write_rows, write_task
from proctor.code import Task
from proctor.core import registry
from proctor.integrations.bigcode.answers import find_answer

# As the harness has MBPP, QuixBugs, Parity, PAL and its instructions: none says get_solution.
FILE = """
    from bigcode_eval.base import Task
    from bigcode_eval.tasks.custom_metrics.code_eval import compute_code_eval
    from bigcode_eval.tasks.custom_metrics.pal_metric.pal_code_exec import compute

    class Mbpp(Task):
        def __init__(self):
            super().__init__(stop_words=["\\nclass", "\\nassert", "\\nprint", "\\nif"], requires_execution=True)

        def get_dataset(self):
            return self.dataset["test"]

        def get_prompt(self, doc):
            return doc.get("begun") or f"'{doc['sentence']}'\\n"

        def get_reference(self, doc):
            return doc["test"]

        def postprocess_generation(self, generation, idx):
            prompt = self.get_prompt(self.get_dataset()[idx])
            return prompt + self._stop_at_stop_token(generation[len(prompt):], self.stop_words)

        def process_results(self, generations, references):
            return compute_code_eval(references=references, predictions=generations)[0]

    class QuixBugs(Mbpp):
        def get_prompt(self, doc):
            return f"# Buggy function\\n{doc['buggy_program']}\\n# Fixed function\\ndef"

        def get_reference(self, doc):
            return (doc["task_id"], doc["test"])

        def postprocess_generation(self, generation, idx):
            raise ValueError("a right answer is judged as it is")

        def process_results(self, generations, references):
            return compute_code_eval(references=[test for _, test in references], predictions=generations)[0]

    class Parity(Mbpp):
        def get_dataset(self):
            return [1, 2]

        def get_prompt(self, doc):
            return f"# A buggy implementation\\ndef parity(b1,b2,b3,b4):\\n    return {doc}\\n# Fixed bugs\\ndef"

        def get_reference(self, doc):
            return []

        def process_results(self, generations, references):
            tests = "assert parity(1, 0, 1, 1) == 1 and parity(1, 1, 0, 0) == 0"
            return compute_code_eval(references=[tests] * len(generations), predictions=generations)[0]

    class Pal(Mbpp):
        def get_reference(self, doc):
            return 28.5

        def process_results(self, generations, references):
            return compute(generations, references)

    class Stripped(Mbpp):
        def get_prompt(self, doc):
            return doc["prompt"].strip()

    class Instructed(Mbpp):
        def get_prompt(self, doc):
            return f"Complete this:\\n{doc['prompt']}\\n### Response:"

        def postprocess_generation(self, generation, idx):
            return generation.split("### Response:")[-1]
"""
PROGRAMS = [
    {key: row[key] for key in ("task_id", "test", "sentence")} | {"program": row["prompt"] + row["canonical_solution"]}
    for row in ROWS
]


def rows_with(key: str, **others: Any) -> list[dict[str, Any]]:
    return [{**row, key: row["program"], "program": "", **others} for row in PROGRAMS]


@pytest.mark.parametrize(
    ("name", "rows", "metric"),
    [
        ("Mbpp", rows_with("code"), "pass@1"),
        ("QuixBugs", rows_with("solution", buggy_program="def f(): 0"), "pass@1"),
        pytest.param("Parity", None, "pass@1", marks=pytest.mark.slow),
        ("Pal", rows_with("nothing"), "accuracy"),
        ("Instructed", ROWS, "pass@1"),
        pytest.param("Stripped", ROWS, "pass@1", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("api", ["completions", pytest.param("chat", marks=pytest.mark.slow)])
def test_right_answers_pass(proctor: Command, name: str, rows: Any, metric: str, api: str) -> None:
    data = ["--data", write_rows(rows)] if rows else []
    options = ["--check_references", "--allow_code_execution", "--api", api, "--workers", "1", "--json", "-q"]
    done = proctor("run", f"{write_task(FILE)}:{name}", *data, *options)
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert (run["metrics"][metric]["value"], run["errors"]) == (1.0, 0)


@pytest.mark.parametrize(
    ("row", "text", "whole"),
    [
        ({"correct_code": "def f(): 1"}, "def f(): 1", True),
        ({"reference_solution": "def f(): 1"}, "def f(): 1", True),
        ({"solutions": '["def f(): 1", "def f(): 2"]'}, "def f(): 1", True),
        ({"solutions": [{"solution": "def f(): 1", "runtime": "1ms"}]}, "def f(): 1", True),
        ({"solutions": "def f(): 1"}, "def f(): 1", True),
        ({"solution": "", "code": "def f(): 1"}, "def f(): 1", True),
        # A prompt that begins the function goes on with what does not define it.
        ({"prompt": "def f():\n", "solution": "    return 1"}, "    return 1", False),
        ({"prompt": "def f():\n", "solution": "def f():\n    return 1"}, "def f():\n    return 1", True),
        ({"prompt": "def f():\n", "canonical_solution": "    return 1"}, "    return 1", False),
        ({"prompt": "def f():\n", "completion": "    return 1", "is_success": True}, "    return 1", False),
        ({"prompt": "fn f() {\n", "canonical_solution": "1\n}"}, "1\n}", False),
        ({"completion": "    return 1", "is_success": False}, None, None),
        ({"solutions": "[]", "code": None}, None, None),
    ],
)
def test_where_rows_keep_their_answers(row: dict[str, Any], text: str | None, whole: bool | None) -> None:
    cls = registry.load_task_class(f"{write_task(FILE)}:Mbpp")
    assert issubclass(cls, Task)
    task = cls.build(cls.Settings(), write_rows([row | {"test": "", "sentence": "", "begun": row.get("prompt")}]))
    answer = find_answer(task, task.rows()[0])
    assert (answer.text, answer.whole) == (text, whole) if answer else (text, whole) == (None, None)
