"""Runs the honest programs: python -m helpers.honest_driver LEVEL BACKEND. Prints what became of them, as JSON."""

from __future__ import annotations

import asyncio
import json
import sys

from helpers.honest_programs import ALL
from helpers.sandbox_driver import find_level
from proctor.sandbox import Limits, Pool
from proctor.sandbox.worker import WorkerError

LIMITS = Limits(seconds=20.0)


async def hold(name: str, backend: str) -> dict[str, object]:
    level = find_level(name, backend)
    if level is None:
        return {"missing": "this machine has no such level"}
    cases = [case for case in ALL if name != "confined" or not case.needs]
    try:
        async with Pool(level, 2) as pool:
            verdicts = await asyncio.gather(*(pool.judge(case.program, LIMITS) for case in cases))
    except WorkerError as error:
        return {"missing": str(error)}
    judged = zip(cases, verdicts, strict=True)
    return {
        "held": len(cases),
        "failed": [f"{case.name}: {v.outcome} {v.detail}\n{v.stderr[-500:]}" for case, v in judged if not v.passed],
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(hold(*sys.argv[1:]))))
