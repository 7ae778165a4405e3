"""What isolation of an agent adds to each of its actions, in turns with the same without them, in one run.

    python bench/isolation.py

In a window: a key through the filter of the display, against the display itself. In steps: an observation and an action
over the line between two processes, against an agent in the environment's own process. The target is 0.2 ms at most.
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
from proctor.agents.envs.referee import EpisodeTable
from proctor.agents.envs.types import Episode
from proctor.agents.runtime.hosting.isolation import Isolation, Room
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


async def in_a_window(folder: Path, held: Isolation) -> dict[str, Any]:
    """Milliseconds of each action: the median of the rounds' medians, with isolation and without."""
    display = VirtualDisplay(log=folder / "display.log")
    display.start()
    environment = display.environment
    filtered = FilteredDisplay(display.name, folder / "filter.log", environment)
    recipe = Recipe(str(ACTOR), "Nobody")
    room = Room(held, recipe, [(filtered.socket, filtered.inside)])
    role = "isolation_actor:Actor"
    free = await HostProcess.start(role, recipe, folder / "free.log", environment)
    walled = await HostProcess.start(role, recipe, folder / "walled.log", {"DISPLAY": display.name}, room=room)
    try:
        found: dict[str, dict[str, list[float]]] = {}
        for _ in range(ROUNDS):
            for name, process in (("without", free), ("with", walled)):
                for what, times in (await process.call("act", ACTIONS)).items():
                    found.setdefault(what, {}).setdefault(name, []).append(statistics.median(times))
        return {what: compared(times) for what, times in found.items()}
    finally:
        await free.end()
        await walled.end()
        room.close()
        filtered.close()
        display.close()


async def in_steps(folder: Path, held: Isolation) -> dict[str, Any]:
    """Milliseconds of a step."""
    world = with_arguments("proctor.agents.envs.catch", "Catch", things=10_000)
    agent = Recipe(str(ACTOR), "still")
    tables = {
        "without": EpisodeTable(world, agent, "step", folder / "free-world.log"),
        "with": EpisodeTable(world, agent, "step", folder / "walled-world.log", isolation=held),
    }
    found: dict[str, list[float]] = {name: [] for name in tables}
    try:
        for number in range(ROUNDS + 1):
            for name, table in tables.items():
                log = folder / f"{name}-{number}" / "episode.jsonl"
                log.parent.mkdir()
                header = Header("catch", {}, "still", number, time.time(), {})
                ending = await table.play(Episode(header, str(log), number, 60.0, max_steps=STEPS))
                assert ending.outcome.is_play, ending
                if number:  # the first is to get warm
                    found[name].append(ending.seconds / ending.length * 1e3)
        return compared(found)
    finally:
        for table in tables.values():
            await table.close()


def compared(times: dict[str, list[float]]) -> dict[str, Any]:
    free, walled = (statistics.median(times[name]) for name in ("without", "with"))
    added = [a - b for a, b in zip(times["with"], times["without"], strict=True)]
    return {
        "without_ms": round(free, 4),
        "with_ms": round(walled, 4),
        "ratio": round(walled / free, 2),
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
            "window": asyncio.run(in_a_window(Path(name), held)),
            "steps": asyncio.run(in_steps(Path(name), held)),
        }
    print(json.dumps(result, indent=2))
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
