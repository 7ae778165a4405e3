"""Resident memory while judging: `FILE WORKERS N` judges N programs, those of FILE repeatedly.

Verdicts are dropped, so that only the pool can grow.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from proctor.sandbox import Limits, Program, open_sandbox
from proctor_programs import program

EVERY = 100  # programs between two measurements


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


async def judge_all(programs: Iterator[Program], workers: int) -> list[float]:
    seen = [resident_mib()]
    done = 0

    async def judge_next() -> None:
        nonlocal done
        for each in programs:
            verdict = await pool.judge(each, Limits())
            if not verdict.passed:
                sys.exit(f"not passed: {verdict}")
            done += 1
            if done % EVERY == 0:
                seen.append(resident_mib())

    async with await open_sandbox(workers=workers) as pool, asyncio.TaskGroup() as group:
        for _ in range(2 * workers):  # so that no worker is idle
            group.create_task(judge_next())
    return seen


if __name__ == "__main__":
    file, workers, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    distinct = [program(json.loads(line)) for line in file.read_text().splitlines()]
    programs = itertools.islice(itertools.cycle(distinct), count)
    print(json.dumps({"every": EVERY, "resident_mib": asyncio.run(judge_all(programs, workers))}))
