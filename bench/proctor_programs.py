"""Judges programs with Proctor's sandbox, for sandbox.py."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from judge_command import Job, Judgement, run_command
from proctor.sandbox import Limits, Program, run


def program(row: dict[str, Any]) -> Program:
    return Program(
        source=row["prompt"] + row["completion"],
        tests=f"{row['test']}\ncheck({row['entry_point']})\n",
        entry_point=row["entry_point"],
        prelude=row["prompt"],
    )


def judge(job: Job) -> Judgement:
    programs = [program(row) for row in job.rows]
    verdicts = asyncio.run(run(programs, Limits(seconds=job.seconds), workers=job.workers))
    notes = {
        "levels": Counter(verdict.level for verdict in verdicts),
        "testing": Counter(verdict.testing for verdict in verdicts),
    }
    return Judgement([verdict.passed for verdict in verdicts], notes)


if __name__ == "__main__":
    run_command(judge)
