"""The command line of all subjects of sandbox.py: `FILE WORKERS SECONDS [--fastest]`; prints JSON.

FILE has one program per line, and SECONDS is the limit of each. The time is from the first
program to the last verdict, with the start of workers but without imports.
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
    """The input of a subject; rows are `programs.ProgramRow`."""

    rows: list[dict[str, Any]]
    workers: int
    seconds: float
    prepared: Path
    """A file beside FILE, for a subject that needs more than the rows."""


@dataclass(frozen=True)
class Judgement:
    passed: list[bool]
    notes: dict[str, Any]
    """Printed with the times."""


def run_command(judge: Callable[[Job], Judgement], command: str | None = None) -> None:
    """Runs the command line. `command` is the module of the harness's own command, which its processes inherit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("workers", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--fastest", action="store_true", help="without the module of the harness's own command")
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
