"""Runs the attack table: python -m helpers.sandbox_driver LEVEL BACKEND. Prints what became of it, as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from helpers.hostile_programs import ATTACKS, CLAIMS, HONEST, Case
from proctor.sandbox import Pool
from proctor.sandbox.inside import kernel, process_tree
from proctor.sandbox.isolation import IsolationLevel, levels

WORKERS = 2
DYING = 60.0  # seconds


def find_level(name: str, backend: str) -> IsolationLevel | None:
    return next((level for level in levels() if (level.name, level.namespace_backend) == (name, backend)), None)


def _is_bomb(case: Case) -> bool:
    return "bomb" in case.name


async def hold(level: IsolationLevel) -> dict[str, object]:
    cases = [case for case in (*ATTACKS, *HONEST) if case.needs <= CLAIMS[level.name]]
    cases.sort(key=_is_bomb)
    async with Pool(level, WORKERS) as pool:
        verdicts = await asyncio.gather(*(case.judge(pool) for case in cases if not _is_bomb(case)))
        # One by one: where all programs are one user, a bomb takes the processes of the program beside it.
        verdicts += [await case.judge(pool) for case in cases if _is_bomb(case)]
        ready = pool._idle.qsize()
    return {
        "level": pool.level,
        "wrong": [
            f"{case.name}: {verdict.outcome} ({verdict.testing}) {verdict.detail}"
            for case, verdict in zip(cases, verdicts, strict=True)
            if verdict.outcome not in case.right
        ],
        "held": len(cases),
        "ready": ready,
    }


def find_strays() -> list[int]:
    """Processes that are still there. One that was killed takes a moment to end, on a busy machine a long one."""
    deadline = time.monotonic() + DYING
    while (strays := [process for process, _ in process_tree.descendants(set())]) and time.monotonic() < deadline:
        time.sleep(0.01)
    return strays


if __name__ == "__main__":
    kernel.adopt_orphans()  # whatever gets away comes to us
    level = find_level(*sys.argv[1:])
    result: dict[str, object] = asyncio.run(hold(level)) if level else {"missing": True}
    print(json.dumps({**result, "strays": find_strays()}))
