"""The short way: programs in, verdicts out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from proctor.sandbox.containers import IMAGE, ContainerPool
from proctor.sandbox.detection import best_level
from proctor.sandbox.pool import Pool
from proctor.sandbox.program import Limits, Program
from proctor.sandbox.sandbox import Sandbox
from proctor.sandbox.verdict import Verdict


async def open_sandbox(
    *, workers: int | None = None, unsafe: bool = False, engine: str = "", image: str = IMAGE
) -> Sandbox:
    """The strongest sandbox of this machine, not opened yet: use it with ``async with``.

    With ``engine``, docker or podman, programs run in containers of an image instead.
    """
    if engine:
        return ContainerPool(engine, image, workers)
    return Pool(await best_level(unsafe), workers)


async def run(
    programs: Iterable[Program],
    limits: Limits | None = None,
    *,
    workers: int | None = None,
    unsafe: bool = False,
    engine: str = "",
    image: str = IMAGE,
    sandbox: Sandbox | None = None,
) -> list[Verdict]:
    """The verdicts on all programs, in their order. With ``sandbox``, on one that is open already."""
    if sandbox is None:
        async with await open_sandbox(workers=workers, unsafe=unsafe, engine=engine, image=image) as opened:
            return await run(programs, limits, sandbox=opened)
    verdicts: dict[int, Verdict] = {}
    waiting = enumerate(programs)  # shared by all, so that each takes the next one

    async def work() -> None:
        for index, program in waiting:
            verdicts[index] = await sandbox.judge(program, limits or Limits())

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(sandbox.workers):
                group.create_task(work())
    except BaseExceptionGroup as errors:  # the caller's mistake, which all workers may have met
        raise errors.exceptions[0] from None
    return [verdicts[index] for index in sorted(verdicts)]
