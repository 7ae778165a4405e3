"""The command line that all sides of the sandbox bench share: `FILE WORKERS SECONDS [--fastest]`, figures as JSON.

FILE holds the programs, one a line, and SECONDS is the limit of each. The clock runs from the first program handed over
to the last verdict, with whatever the side has to start for it, but without the imports.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PREPARED = "prepared"


@dataclass(frozen=True)
class Job:
    """What a side is given: rows as `programs.Row` describes them."""

    rows: list[dict[str, Any]]
    workers: int
    seconds: float
    prepared: Path
    """A file beside FILE, for a side that cannot start from the rows alone."""


@dataclass(frozen=True)
class Judgement:
    passed: list[bool]
    notes: dict[str, Any]
    """Printed with the figures."""


def answer(judge: Callable[[Job], Judgement], command: str | None = None) -> None:
    """``command`` names the module of the side's own command, whose size every process started from it inherits."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("workers", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--fastest", action="store_true", help="without the module of the side's own command")
    args = parser.parse_args()
    if command and not args.fastest:
        importlib.import_module(command)
    rows = [json.loads(line) for line in args.file.read_text().splitlines()]
    job = Job(rows, args.workers, args.seconds, args.file.parent / PREPARED)

    started = time.perf_counter()
    judgement = judge(job)
    seconds = time.perf_counter() - started

    wrong = sum(passed is not row["passes"] for row, passed in zip(rows, judgement.passed, strict=True))
    print(json.dumps({"seconds": seconds, "wrong": wrong} | judgement.notes))
