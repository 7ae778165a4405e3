"""Opens a sandbox and runs programs in it."""

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
    """The strongest sandbox of this machine, not yet open: use ``async with``.

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
    """Judges all programs, in their order; ``sandbox`` is an open one to use."""
    if sandbox is None:
        async with await open_sandbox(workers=workers, unsafe=unsafe, engine=engine, image=image) as opened:
            return await run(programs, limits, sandbox=opened)
    verdicts: dict[int, Verdict] = {}
    waiting = enumerate(programs)  # shared by all tasks

    async def work() -> None:
        for index, program in waiting:
            verdicts[index] = await sandbox.judge(program, limits or Limits())

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(sandbox.workers):
                group.create_task(work())
    except BaseExceptionGroup as errors:  # a mistake of the caller, possibly once per task
        raise errors.exceptions[0] from None
    return [verdicts[index] for index in sorted(verdicts)]
