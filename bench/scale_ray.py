"""Programs on a Ray cluster of two nodes with one CPU each, against a local pool of two workers.

    python bench/scale_ray.py [--programs N] [--rounds N]

Both stay open and judge the same programs in turn: HumanEval's reference solutions,
repeatedly. Their start is not counted. The nodes are processes of this machine; the head
node has no CPU.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from typing import Any

from process import HERE, print_status, short
from proctor.code import TASK_REGISTRY
from proctor.core.task import SAMPLES_PER_SLOT, create_task
from proctor.distributed.cluster import join_cluster
from proctor.sandbox import Limits, Program, Sandbox, open_sandbox
from proctor.sandbox.cluster import ClusterSandbox

PROGRAMS, ROUNDS, NODES, TARGET = 2_000, 3, 2, 0.8


def references(number: int) -> list[Program]:
    task = create_task(TASK_REGISTRY["humaneval"], "code/humaneval", {})
    solved = [task.program(doc, doc["prompt"] + doc["canonical_solution"]) for doc in task.rows()]
    return list(islice(cycle(solved), number))


async def judge(sandbox: Sandbox, programs: list[Program]) -> float:
    """Seconds for all programs, at the concurrency of a run."""
    waiting = iter(programs)

    async def work() -> None:
        for program in waiting:
            verdict = await sandbox.judge(program, Limits())
            assert verdict.passed, verdict

    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(SAMPLES_PER_SLOT * max(16, sandbox.slots)):
            group.create_task(work())
    return time.perf_counter() - started


@contextmanager
def nodes(number: int) -> Iterator[str]:
    """Starts a cluster and yields its address."""
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.ERROR)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    folder = tempfile.mkdtemp(prefix="bench-", dir="/tmp")
    # Ray gives its workers the lowest priority; here both sides get the same share of the CPU.
    head = {"num_cpus": 0, "temp_dir": folder, "include_dashboard": False, "_system_config": {"worker_niceness": 0}}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(number):
            cluster.add_node(num_cpus=1)
        yield cluster.address
    finally:
        cluster.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


async def measure(address: str, programs: list[Program], rounds: int) -> dict[str, list[float]]:
    seconds: dict[str, list[float]] = {"local": [], "ray": []}
    async with (
        join_cluster(address, 0),
        ClusterSandbox(NODES, unsafe=False, engine="") as ray,
        await open_sandbox(workers=NODES) as local,
    ):
        for sandbox in (local, ray):
            await judge(sandbox, programs[:200])
        for turn in range(rounds):
            for name, sandbox in (("local", local), ("ray", ray)):
                seconds[name].append(await judge(sandbox, programs))
                print_status(
                    f"round {turn + 1} of {rounds}, {name}: {short(len(programs) / seconds[name][-1])} programs/s"
                )
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=PROGRAMS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    args = parser.parse_args()
    load = os.getloadavg()[0]
    with nodes(NODES) as address:
        seconds = asyncio.run(measure(address, references(args.programs), args.rounds))
    speeds = {name: args.programs / statistics.median(taken) for name, taken in seconds.items()}
    ratios = [local / ray for local, ray in zip(seconds["local"], seconds["ray"], strict=True)]
    result: dict[str, Any] = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_before": load,
        "load_after": os.getloadavg()[0],
        "programs": args.programs,
        "seconds": seconds,
        "programs_per_second": speeds,
        "ratio": statistics.median(ratios),
    }
    (HERE / "results" / "scale_ray.json").write_text(json.dumps(result, indent=2) + "\n")
    print(f"| {args.programs:,} programs, median of {args.rounds}, load {load:.0f} | target | programs/s | ratio |")
    print("|---|---|---|---|")
    print(f"| local pool, {NODES} workers | | {short(speeds['local'])} | |")
    print(f"| Ray, {NODES} nodes of 1 CPU | ≥ {TARGET} | {short(speeds['ray'])} | {result['ratio']:.2f} |")


if __name__ == "__main__":
    main()
