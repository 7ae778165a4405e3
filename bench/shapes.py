"""Generation of shapes samples, as text and as images, against other generators.

    python bench/shapes.py             everything (about 10 minutes)
    python bench/shapes.py --loops     only the loops of all tasks, without peers and files (about a minute)
    python bench/shapes.py --solvers   instead: each task's second solver against its targets, a million samples each

Text: samples generated in a loop as JSON lines, without writing, for Proctor and the peer;
and `proctor generate` as a whole process, with its start and its file. Both in CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from process import HERE, PEER_ENV, prepare_peers, print_status, run_measured, short
from proctor.core.config import build_config
from proctor.core.task import create_task
from proctor.shapes.loader import load_item
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS

PEER_SETS = ("shortest_path", "chain_sum", "family_relationships")
ITEMS, REPEAT = 1_000_000, 3
LOOPED, FLOOR = 100_000, 100_000  # items of a loop, and how many of every task a second there must be
PROVEN = 1_000_000
PART = 10_000  # items that a process proves at a time


def generate_seconds(work: Path, task: str, n: int, *settings: str) -> float:
    """CPU seconds of the whole command."""
    command = [str(Path(sys.executable).parent / "proctor"), "generate", f"shapes/{task}", "-n", str(n), "--quiet"]
    flags = [word for setting in settings for word in ("--set", setting)]
    costs = [run_measured([*command, *flags, "--out", str(work / "data.jsonl")]).cpu for _ in range(REPEAT)]
    return statistics.median(costs)


def text_rates(work: Path) -> dict[str, dict[str, float]]:
    rates = {}
    for name in REGISTERED_TASKS:
        print_status(f"shapes/{name}: {ITEMS:,} items at 7 shapes")
        command = ITEMS / generate_seconds(work, name, ITEMS, "shapes=7")
        rates[name] = {"loop": generation_rate(name, ITEMS), "command": command}
    return rates


def measure_loops() -> dict[str, float]:
    """Samples per CPU second of every task, checked against the floor."""
    rates = {name: generation_rate(name, LOOPED) for name in REGISTERED_TASKS}
    print(f"| items per CPU second, 7 shapes, median of {REPEAT} | in a loop | times {FLOOR:,} |\n|---|---|---|")
    for name, rate in sorted(rates.items(), key=lambda pair: -pair[1]):
        print(f"| `shapes/{name}` | {rate:,.0f} | {rate / FLOOR:.1f} |")
    print(f"\nload of the machine: {os.getloadavg()[0]:.1f} on {len(os.sched_getaffinity(0))} cores")
    return rates


def generation_rate(name: str, n: int) -> float:
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", {"shapes": 7})
    config = build_config({"task": task.name, "model": "scripted/oracle", "limit": n})
    rates = []
    for _ in range(REPEAT):
        started = time.process_time()
        for _lines in task.json_lines(config, range(n)):
            pass
        rates.append(n / (time.process_time() - started))
    return statistics.median(rates)


def peer_rates() -> dict[str, float]:
    print_status(f"reasoning-gym: {', '.join(PEER_SETS)}")
    script = HERE / "peers" / "reasoning_gym_items.py"
    rates: dict[str, float] = json.loads(
        run_measured([str(PEER_ENV / "bin" / "python"), str(script), "5000", *PEER_SETS]).printed
    )
    return rates


def growth(work: Path) -> dict[str, dict[int, float]]:
    """CPU seconds by the number of samples, and of 5,000 samples by the number of shapes.

    Without the start of the process.
    """
    print_status("growth with items and with shapes")
    start = generate_seconds(work, "existence", 1)
    return {
        "items": {n: generate_seconds(work, "existence", n) - start for n in (500_000, 1_000_000, 2_000_000)},
        "shapes, full": {
            shapes: generate_seconds(work, "existence", 5_000, f"shapes={shapes}", "description=full") - start
            for shapes in (6, 12, 24, 47)
        },
    }


def count_disagreements(name: str, start: int, stop: int, count: int) -> int:
    """The number of samples for which the second solver disagrees with the target."""
    task = create_task(REGISTERED_TASKS[name], f"shapes/{name}", {})
    items = (load_item(task, index, count) for index in range(start, stop))
    return sum(task.solve(item.description, item.question) != item.answer for item in items)


def disagreements(names: Sequence[str], count: int) -> dict[str, int]:
    wrong = dict.fromkeys(names, 0)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for name in names:
            starts = range(0, count, PART)
            parts = [pool.submit(count_disagreements, name, start, min(start + PART, count), count) for start in starts]
            wrong[name] = sum(part.result() for part in parts)
            print_status(f"shapes/{name}: {wrong[name]} of {count:,} items with another answer")
    return wrong


def table(rates: dict[str, dict[str, float]], peers: dict[str, float], grown: dict[str, dict[int, float]]) -> str:
    floor = max(peers.values())
    lines = ["| items per CPU second, 7 shapes | in a loop | times the fastest peer | whole command, with its file |"]
    lines.append("|---|---|---|---|")
    for name, rate in sorted(rates.items(), key=lambda pair: -pair[1]["loop"]):
        lines.append(
            f"| `shapes/{name}` | {rate['loop']:,.0f} | {short(rate['loop'] / floor)} | {rate['command']:,.0f} |"
        )
    lines += [f"| reasoning-gym {name} | {rate:,.0f} | | |" for name, rate in peers.items()]
    for what, seconds in grown.items():
        first = next(iter(seconds))
        growth = ", ".join(f"{n:,}: {cost / seconds[first]:.2f}" for n, cost in seconds.items())
        lines.append(f"\nCPU by {what}, in units of the first: {growth}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--solvers", action="store_true", help="prove the keys instead of measuring speed")
    parser.add_argument("--loops", action="store_true", help="only how fast every task is made in a loop")
    parser.add_argument("--only", nargs="+", choices=tuple(REGISTERED_TASKS), help="only these tasks, with --solvers")
    parser.add_argument("-n", type=int, default=PROVEN, help=f"items per task, with --solvers (default: {PROVEN:,})")
    parser.add_argument("--out", type=Path, help="where the figures go (default: bench/results)")
    args = parser.parse_args()
    if args.solvers:
        wrong = disagreements(args.only or tuple(REGISTERED_TASKS), args.n)
        write(args.out or HERE / "results" / "solvers.json", {"items_per_task": args.n, "disagreements": wrong})
        sys.exit(1 if any(wrong.values()) else 0)
    if args.loops:
        rates_in_loop = measure_loops()
        write(args.out or HERE / "results" / "shapes_loops.json", {"items_per_cpu_second": rates_in_loop})
        sys.exit(1 if min(rates_in_loop.values()) < FLOOR else 0)
    prepare_peers()
    with tempfile.TemporaryDirectory() as work:
        rates, peers, grown = text_rates(Path(work)), peer_rates(), growth(Path(work))
    print(table(rates, peers, grown))
    figures = {"items_per_cpu_second": rates, "reasoning_gym": peers, "cpu_seconds": grown}
    write(args.out or HERE / "results" / "shapes.json", figures)


def write(path: Path, figures: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = {"python": platform.python_version(), "cores": len(os.sched_getaffinity(0))}
    path.write_text(json.dumps(machine | figures, indent=2, ensure_ascii=False) + "\n")
    print_status(f"written to {path}")


if __name__ == "__main__":
    main()
