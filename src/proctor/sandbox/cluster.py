"""The sandbox of a cluster: one worker per requested CPU, on any node."""

from __future__ import annotations

from functools import partial

from proctor.distributed.actor import Node, RemoteWorker
from proctor.distributed.cluster import free_cpus
from proctor.distributed.pool import ActorPool, WorkerLostError
from proctor.sandbox.program import Limits, Program
from proctor.sandbox.running import open_sandbox
from proctor.sandbox.sandbox import Sandbox
from proctor.sandbox.verdict import Outcome, Verdict

Task = tuple[Program, Limits]

MAX_CONCURRENCY = 128  # queued programs per worker
USUAL_CONCURRENCY = 32


class ClusterSandbox(Sandbox):
    """Each worker is the sandbox of its node. Programs of a lost worker go to another."""

    def __init__(self, workers: int | None, unsafe: bool, engine: str) -> None:
        self.workers = workers or max(1, free_cpus())
        self.level = ""
        self._levels: dict[str, set[str]] = {}  # level: names of its nodes
        self._actors = ActorPool(
            partial(_SandboxActor, unsafe, engine),
            self.workers,
            cpus=1,
            max_jobs=MAX_CONCURRENCY,
            paced=True,
            on_open=self._on_node_ready,
        )

    @property
    def slots(self) -> int:
        return self.workers * USUAL_CONCURRENCY

    async def open(self) -> None:
        await self._actors.open()

    async def close(self) -> None:
        await self._actors.close()

    async def judge(self, program: Program, limits: Limits) -> Verdict:
        try:
            return await self._actors.run((program, limits))
        except WorkerLostError as error:
            return Verdict(outcome=Outcome.ERROR, detail=str(error), level=self.level)

    def _on_node_ready(self, node: Node, level: str) -> None:
        """Records the level of the node: nodes may differ."""
        self._levels.setdefault(level, set()).add(node.name)
        if len(self._levels) == 1:
            self.level = level
        else:
            self.level = "; ".join(f"{each} (on {', '.join(sorted(on))})" for each, on in sorted(self._levels.items()))


class _SandboxActor(RemoteWorker[Task, Verdict]):
    """The sandbox of one node, with one worker."""

    max_concurrency = 1

    def __init__(self, unsafe: bool, engine: str) -> None:
        self._unsafe, self._engine = unsafe, engine
        self._sandbox: Sandbox | None = None

    async def open(self) -> str:
        sandbox = await open_sandbox(workers=1, unsafe=self._unsafe, engine=self._engine)
        await sandbox.open()
        self._sandbox = sandbox
        return sandbox.level

    async def process(self, item: Task) -> Verdict:
        assert self._sandbox is not None
        return await self._sandbox.judge(*item)

    async def close(self) -> None:
        if self._sandbox is not None:
            await self._sandbox.close()
