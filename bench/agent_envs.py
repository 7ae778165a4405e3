"""Environments: overhead of the harness per step, and accuracy of the clocks.

    python bench/agent_envs.py

Step mode is compared with a bare Gymnasium loop with the same policy, in turns. The clocks
are measured over HTTP with the small environment Catch, whose own cost is negligible.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from msgspec import structs

from process import print_status, short
from proctor.agents.envs.event_log import EpisodeEnding, Header, read_events
from proctor.agents.envs.referee import EnvSession
from proctor.agents.envs.types import Clock, Episode
from proctor.agents.outcome import EpisodeOutcome
from proctor.agents.runtime.hosting.recipe import Recipe, with_arguments

HERE = Path(__file__).resolve().parent
ROUNDS, EPISODES = 7, 40
FPS, THINGS, EVALUATIONS = 30.0, 60, 16
HUNG, HUNG_SECONDS = 20, 0.5
HANGING = Recipe(str(HERE / "policies.py"), "hang")
NS_PER_SECOND = 1e9

BARE = """
import sys, time
import gymnasium
sys.path.insert(0, {here!r})
from policies import policy

env = gymnasium.make("CartPole-v1", disable_env_checker=True)
steps, started = 0, time.perf_counter()
for seed in range({episodes}):
    observation, _ = env.reset(seed=seed)
    over = False
    while not over:
        observation, reward, terminated, truncated, info = env.step(policy(observation))
        over = terminated or truncated
        steps += 1
print(steps, time.perf_counter() - started)
"""


def run_bare_loop() -> tuple[int, float]:
    source = BARE.format(here=str(HERE), episodes=EPISODES)
    process = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    steps, seconds = process.stdout.split()
    return int(steps), float(seconds)


def make_episode(folder: Path, number: int, clock: Clock) -> Episode:
    header = Header("bench", {}, "bench", number, time.time(), {})
    return Episode(header, str(folder / f"{number}" / "events.jsonl"), number, 600.0, clock, fps=FPS)


async def play_steps(folder: Path) -> tuple[int, float, float]:
    """Steps, seconds of play, total seconds, for the episodes of the bare loop."""
    env = with_arguments("proctor.integrations.gymnasium", "GymnasiumEnv", id="CartPole-v1", in_words=False)
    table = EnvSession(env, Recipe(str(HERE / "policies.py"), "policy"), "step", folder / "process.log")
    await table.prepare()
    started = time.perf_counter()
    endings = [await table.play(make_episode(folder, number, "step")) for number in range(EPISODES)]
    seconds = time.perf_counter() - started
    await table.close()
    return sum(e.length for e in endings), sum(e.seconds for e in endings), seconds


async def play_realtime(folder: Path, evaluations: int) -> tuple[list[EpisodeEnding], list[float]]:
    """The endings, and for each action the milliseconds of its round trip."""
    env = with_arguments("proctor.agents.envs.catch", "Catch", things=THINGS)
    agent = Recipe("proctor.agents.envs.catch", "Catcher")
    tables = [EnvSession(env, agent, "realtime", folder / f"process-{number}.log") for number in range(evaluations)]
    for table in tables:
        await table.prepare()
    episodes = [make_episode(folder, number, "realtime") for number in range(evaluations)]
    endings = await asyncio.gather(*(table.play(e) for table, e in zip(tables, episodes, strict=True)))
    for table in tables:
        await table.close()
    round_trips = []
    for played in episodes:
        for line in read_events(Path(played.log)).lines:
            if "of" in (at := line.timing):
                round_trips.append((at["seen"] - at["made"] + at["arrived"] - at["sent"]) / NS_PER_SECOND * 1_000)
    return endings, round_trips


async def measure_hanging_agents(folder: Path) -> list[float]:
    """Seconds from the timeout of a hanging agent until its processes are gone."""
    table = EnvSession(with_arguments("proctor.agents.envs.catch", "Catch"), HANGING, "step", folder / "process.log")
    overshoots = []
    for number in range(HUNG):
        await table.prepare()
        started = time.perf_counter()
        ending = await table.play(structs.replace(make_episode(folder, number, "step"), timeout=HUNG_SECONDS))
        overshoots.append(time.perf_counter() - started - HUNG_SECONDS)
        assert ending.outcome is EpisodeOutcome.AGENT_HANG
    await table.close()
    return overshoots


def measure_clocks(folder: Path, evaluations: int) -> dict[str, Any]:
    endings, round_trips = asyncio.run(play_realtime(folder, evaluations))
    cuts = statistics.quantiles(round_trips, n=20)
    return {
        "ticks": sum(e.length for e in endings),
        "late_ticks": sum(e.late_ticks for e in endings),
        "slow_ticks": sum(e.slow_ticks for e in endings),
        "late_actions": sum(e.late for e in endings),
        "dropped_actions": sum(e.dropped for e in endings),
        "won": sum(bool(e.success) for e in endings),
        "overhead_ms": {"p50": statistics.median(round_trips), "p95": cuts[-1], "max": max(round_trips)},
    }


def main() -> None:
    rounds = []
    for number in range(ROUNDS):
        print_status(f"steps, round {number + 1} of {ROUNDS}")
        with tempfile.TemporaryDirectory() as folder:
            bare_steps, bare_seconds = run_bare_loop()
            steps, played, seconds = asyncio.run(play_steps(Path(folder)))
        assert steps == bare_steps
        rounds.append(
            {
                "bare_steps_per_s": steps / bare_seconds,
                "steps_per_s": steps / seconds,
                "overhead_us": (played - bare_seconds) / steps * 1e6,
                "ratio": seconds / bare_seconds,
            }
        )
    step = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
    print_status("hanging agents")
    with tempfile.TemporaryDirectory() as folder:
        overshoots = asyncio.run(measure_hanging_agents(Path(folder)))
    timed = {}
    for evaluations in (1, EVALUATIONS):
        print_status(f"realtime, {evaluations} at once")
        with tempfile.TemporaryDirectory() as folder:
            timed[evaluations] = measure_clocks(Path(folder), evaluations)
    results = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "settings": {"episodes": EPISODES, "fps": FPS, "things": THINGS},
        "step": step,
        "hung": {"median_s": statistics.median(overshoots), "max_s": max(overshoots)},
        "realtime": timed,
        "rounds": rounds,
    }
    target = HERE / "results" / "agents.json"
    before = json.loads(target.read_text()) if target.exists() else {}
    target.write_text(json.dumps(before | {"worlds": results}, indent=2) + "\n")
    one, many = timed[1], timed[EVALUATIONS]
    rows = [
        ("step mode: overhead per action", "≤ 50 µs", f"{short(step['overhead_us'])} µs"),
        (f"CartPole, {EPISODES} episodes, against a bare loop", "≤ 2×", f"{step['ratio']:.2f}×"),
        (
            f"a hanging agent is gone after its timeout, median of {HUNG}",
            "≤ 0.2 s",
            f"{statistics.median(overshoots):.2f} s",
        ),
        ("realtime over HTTP: overhead per action, p50", "≤ 2 ms", f"{one['overhead_ms']['p50']:.2f} ms"),
        (f"the same, {EVALUATIONS} at once", "", f"{many['overhead_ms']['p50']:.2f} ms"),
        (f"late ticks, {EVALUATIONS} at once", "0", f"{many['late_ticks']} of {many['ticks']:,}"),
    ]
    print(f"| measure, {os.cpu_count()} cores | target | proctor |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
