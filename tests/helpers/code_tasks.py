"""Code tasks on rows of a test's own, for the tests of single benchmarks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from helpers.paths import DATA
from proctor.code import TASK_REGISTRY, Task
from proctor.core.task import create_task
from proctor.core.types import Record, Score

ROWS = DATA / "code_rows"


def rows(file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ROWS / f"{file}.jsonl").read_text().splitlines()]


def write_rows(*given: dict[str, Any]) -> str:
    """In the working directory, which each test has for itself."""
    path = Path("rows.jsonl").absolute()
    path.write_text("".join(json.dumps(row) + "\n" for row in given))
    return str(path)


def make_task(name: str, *given: dict[str, Any], **settings: Any) -> Task:
    return create_task(TASK_REGISTRY[name], f"code/{name}", settings, data=write_rows(*given))


def results(task: Task, *generations: str) -> dict[str, float]:
    """What the generations for the first row are worth."""
    return task.process_results([list(generations)], [task.get_reference(task.rows()[0])])


def read(task: Task, reply: str, index: int = 0) -> str:
    """What is judged of a chat model's reply."""
    doc = task.rows()[index]
    return task.read_chat(doc, task._form(index), reply, index)


def score_of(record: Record) -> Score:
    assert record.score is not None
    return record.score


def prompt_text(task: Task, doc: dict[str, Any]) -> str:
    """The prompt of a problem that is one text."""
    prompt = task.get_prompt(doc)
    assert isinstance(prompt, str)
    return prompt


def prompt_parts(task: Task, doc: dict[str, Any]) -> dict[str, str]:
    """The prompt of a problem with a text before and after, or with an instruction."""
    prompt = task.get_prompt(doc)
    assert isinstance(prompt, dict)
    return prompt


def solution_of(task: Task, doc: dict[str, Any]) -> str:
    solution = task.solution(doc)
    assert solution is not None
    return solution


def chat_prompt(task: Task, doc: dict[str, Any]) -> str:
    prompt = task.chat_prompt(doc)
    assert prompt is not None
    return prompt
