"""InstructHumanEval: what is taken of an answer that a model explains, with the beginning given and without."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.code_tasks import make_task, prompt_text, read
from helpers.paths import DATA
from proctor.code import get_task

FILE = str(DATA / "code_rows" / "instruct-humaneval.jsonl")
BODY = "    return math.sqrt(square)"


@pytest.mark.parametrize(
    "end", ["", "\n", "\n\nThis is the root.\n", "\n```\nAs asked.", "\nif __name__ == '__main__':\n    x"]
)
def test_the_function_ends_where_its_indentation_does(end: str) -> None:
    task = get_task("instruct-humaneval", data=FILE)
    row = task.rows()[1]
    assert task.get_prompt(row) == {"instruction": row["instruction"], "context": row["context"]}
    generation = task.postprocess_generation(f"{row['context']}{BODY}{end}", 1)
    assert generation.rstrip() == f"{row['context']}{BODY}"


@pytest.mark.parametrize(
    "answer",
    [
        f"def side_of(square):\n{BODY}",
        f"The root:\n```python\nimport math\n\ndef side_of(square: float) -> float:\n{BODY}\n```\nThat is it.",
        f"```\ndef side_of(square):\n{BODY}\n\nprint(side_of(4))\n```",
    ],
)
def test_without_context_the_function_is_found_and_gets_its_helpers(answer: str) -> None:
    task = get_task("instruct-humaneval-nocontext", data=FILE)
    row = task.rows()[1]
    assert task.get_prompt(row) == {"instruction": row["instruction"], "context": ""}
    for generation in (task.postprocess_generation(answer, 1), task.read_chat(row, task._form(1), answer, 1)):
        namespace: dict[str, object] = {}
        exec(generation, namespace)
        assert namespace["side_of"](namespace["area"](3.0)) == 3.0  # type: ignore[operator]


WIZARD = {
    "task_id": "W/0",
    "prompt": 'import math\n\n\ndef root(x):\n    """The root."""\n',
    "canonical_solution": "    return math.sqrt(x)\n",
    "test": "def check(candidate):\n    assert candidate(9) == 3\n",
    "entry_point": "root",
}


@pytest.mark.parametrize(
    "answer",
    [
        "\n```python\nimport math\n\ndef root(x):\n\treturn math.sqrt(x)\n\nprint(root(4))\n```\nThat is it.</s>def",
        "\ndef root(x):\n    return math.sqrt(x)</s>",
        "Here's the script:\n\n```python\ndef root(x):\n    return x ** 0.5\n```",
    ],
)
def test_wizardcoder_is_asked_for_a_script(answer: str) -> None:
    task = make_task("instruct_wizard_humaneval", WIZARD)
    prompt = prompt_text(task, WIZARD)
    assert prompt == (
        "Below is an instruction that describes a task. Write a response that appropriately completes the request."
        "\n\n\n### Instruction:\nCreate a Python script for this problem:\n"
        'import math\n\n\ndef root(x):\n\t"""The root."""\n\n\n### Response:'
    )
    for generation in (task.postprocess_generation(prompt + answer, 0), read(task, answer.partition("</s>")[0])):
        namespace: dict[str, Any] = {}
        exec(task.program(WIZARD, generation).source, namespace)
        assert namespace["root"](9) == 3
