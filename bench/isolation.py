"""Overhead of an agent's isolation per action, against no isolation, in one run.

    python bench/isolation.py

In a window: a key through the display filter, against the display itself. In steps: an
observation and an action between two processes, against an agent in the environment's
process. The target is at most 0.2 ms.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from proctor.agents.desktop.display import VirtualDisplay
from proctor.agents.display_filter.display import FilteredDisplay
from proctor.agents.envs.event_log import Header
from proctor.agents.envs.referee import EnvSession
from proctor.agents.envs.types import Episode
from proctor.agents.runtime.hosting.isolation import AgentSandbox, Isolation
from proctor.agents.runtime.hosting.process import HostProcess
from proctor.agents.runtime.hosting.recipe import Recipe, with_arguments
from proctor.sandbox.isolated import Permissions, find_level

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "isolation.json"
ACTOR = HERE / "isolation_actor.py"
ROUNDS, ACTIONS, STEPS = 10, 200, 2_000
TARGET = 0.2  # milliseconds


def isolation() -> Isolation:
    level = find_level(Permissions(binds=(("", ""),)), "the measurement")
    return Isolation(level, network=False, gpu=False, files=(), variables={})


async def measure_window(folder: Path, held: Isolation) -> dict[str, Any]:
    """Milliseconds per action, with isolation and without: the median of the rounds' medians."""
    display = VirtualDisplay(log=folder / "display.log")
    display.start()
    environment = display.environment
    filtered = FilteredDisplay(display.name, folder / "filter.log", environment)
    recipe = Recipe(str(ACTOR), "IdleAgent")
    sandbox = AgentSandbox(held, recipe, [(filtered.socket, filtered.inside)])
    role = "isolation_actor:MeasuringRole"
    free = await HostProcess.start(role, recipe, folder / "free.log", environment)
    isolated = await HostProcess.start(
        role, recipe, folder / "isolated.log", {"DISPLAY": display.name}, sandbox=sandbox
    )
    try:
        medians: dict[str, dict[str, list[float]]] = {}
        for _ in range(ROUNDS):
            for name, process in (("without", free), ("with", isolated)):
                for what, times in (await process.call("act", ACTIONS)).items():
                    medians.setdefault(what, {}).setdefault(name, []).append(statistics.median(times))
        return {what: summarise(times) for what, times in medians.items()}
    finally:
        await free.end()
        await isolated.end()
        sandbox.close()
        filtered.close()
        display.close()


async def measure_steps(folder: Path, held: Isolation) -> dict[str, Any]:
    """Milliseconds per step."""
    env = with_arguments("proctor.agents.envs.catch", "Catch", things=10_000)
    agent = Recipe(str(ACTOR), "idle_policy")
    tables = {
        "without": EnvSession(env, agent, "step", folder / "not-isolated.log"),
        "with": EnvSession(env, agent, "step", folder / "isolated.log", isolation=held),
    }
    times: dict[str, list[float]] = {name: [] for name in tables}
    try:
        for number in range(ROUNDS + 1):
            for name, table in tables.items():
                log = folder / f"{name}-{number}" / "episode.jsonl"
                log.parent.mkdir()
                header = Header("catch", {}, "idle_policy", number, time.time(), {})
                ending = await table.play(Episode(header, str(log), number, 60.0, max_steps=STEPS))
                assert ending.outcome.is_play, ending
                if number:  # the first is a warm-up
                    times[name].append(ending.seconds / ending.length * 1e3)
        return summarise(times)
    finally:
        for table in tables.values():
            await table.close()


def summarise(times: dict[str, list[float]]) -> dict[str, Any]:
    free, isolated = (statistics.median(times[name]) for name in ("without", "with"))
    added = [a - b for a, b in zip(times["with"], times["without"], strict=True)]
    return {
        "without_ms": round(free, 4),
        "with_ms": round(isolated, 4),
        "ratio": round(isolated / free, 2),
        "added_ms": round(statistics.median(added), 4),
        "added_ms_worst_round": round(max(added), 4),
    }


def main() -> None:
    held = isolation()
    with tempfile.TemporaryDirectory() as name:
        result = {
            "level": str(held),
            "cores": os.cpu_count(),
            "target_ms": TARGET,
            "window": asyncio.run(measure_window(Path(name), held)),
            "steps": asyncio.run(measure_steps(Path(name), held)),
        }
    print(json.dumps(result, indent=2))
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
