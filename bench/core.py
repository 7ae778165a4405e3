"""Speed and memory of Proctor against other harnesses, measured in one run.

    python bench/core.py            everything (about 40 minutes: the peers take most of it)
    python bench/core.py --quick    the peers with a tenth of the samples
    python bench/core.py --runs     only Proctor's own runs, of a trivial task and of a generated one (half a minute)

Times are of whole processes, from the operating system's accounts; only the reopening of a
run is timed inside the process, after its imports.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from process import PEER_ENV, prepare_peers, print_status, run_measured, short
from proctor.store import open_store

HERE = Path(__file__).resolve().parent
SPEED_SAMPLES, MEMORY_SAMPLES = 10_000, 50_000
RUNS = {"trivial.py:Doubling": "scripted/blank", "shapes/existence": "scripted/oracle"}
RUN_REPEAT, RUN_FLOOR = 7, 12_000  # samples per second of the whole command


@dataclass(frozen=True)
class Subject:
    """A harness with one configuration."""

    name: str
    run: Callable[[int, Path], list[str]]
    reopen: Callable[[Path], list[str]]
    help: list[str]
    repeat: int


@dataclass(frozen=True)
class CoreRow:
    measure: str
    unit: str
    target: str
    figures: dict[str, float]  # subject -> figure
    more_is_better: bool


def subjects() -> list[Subject]:
    bin_dir = Path(sys.executable).parent
    proctor, peer_bin = str(bin_dir / "proctor"), PEER_ENV / "bin"

    def run_proctor(n: int, folder: Path) -> list[str]:
        arguments = [proctor, "run", "trivial.py:Doubling", "--model", "scripted/blank", "--limit", str(n)]
        return [*arguments, "--store", str(folder), "--quiet"]

    def peer(name: str, script: str, help_command: str, *flags: str) -> Subject:
        command = [str(peer_bin / "python"), str(HERE / "peers" / script)]
        return Subject(
            name,
            lambda n, folder: [*command, "run", str(n), str(folder), *flags],
            lambda folder: [*command, "reopen", str(folder)],
            [str(peer_bin / help_command), "--help"],
            repeat=1,
        )

    return [
        Subject(
            "proctor",
            run_proctor,
            lambda folder: [sys.executable, str(HERE / "reopen.py"), str(folder)],
            [proctor, "--help"],
            repeat=5,
        ),
        peer("inspect", "inspect_trivial.py", "inspect"),
        peer("inspect, fastest", "inspect_trivial.py", "inspect", "--fastest"),
        peer("lm-eval", "lm_eval_trivial.py", "lm-eval"),
        peer("lm-eval, fastest", "lm_eval_trivial.py", "lm-eval", "--fastest"),
    ]


def measure(chosen: list[Subject], work: Path, share: float) -> list[CoreRow]:
    speed: dict[str, float] = {}
    cpu: dict[str, float] = {}
    memory: dict[str, float] = {}
    shown: dict[str, float] = {}
    full: dict[str, float] = {}
    helped: dict[str, float] = {}
    for subject in chosen:
        ours = subject.name == "proctor"
        n, many = (round(count * (1 if ours else share)) for count in (SPEED_SAMPLES, MEMORY_SAMPLES))
        print_status(f"{subject.name}: {n:,} samples")
        costs = [run_measured(subject.run(n, work / subject.name / f"speed{i}")) for i in range(subject.repeat)]
        speed[subject.name] = n / statistics.median(cost.wall for cost in costs)
        cpu[subject.name] = statistics.median(cost.cpu for cost in costs) / n * 1e6
        print_status(f"{subject.name}: {many:,} samples")
        memory[subject.name] = run_measured(subject.run(many, work / subject.name / "memory")).peak_mib
        print_status(f"{subject.name}: reopen, help")
        reopened = [json.loads(run_measured(subject.reopen(work / subject.name / "memory")).printed.splitlines()[-1])]
        reopened += [
            json.loads(run_measured(subject.reopen(work / subject.name / "memory")).printed.splitlines()[-1])
            for _ in range(subject.repeat - 1)
        ]
        shown[subject.name] = statistics.median(figures["header_seconds"] for figures in reopened)
        full[subject.name] = statistics.median(figures["full_seconds"] for figures in reopened)
        helped[subject.name] = statistics.median(run_measured(subject.help).cpu for _ in range(5))
        shutil.rmtree(work / subject.name)
    return [
        CoreRow("10,000 samples, whole process", "samples/s", "≥ 5,000 and ≥ 100× inspect", speed, True),
        CoreRow("CPU per sample", "µs", "", cpu, False),
        CoreRow("peak memory at 50,000 samples", "MiB", "≤ 100", memory, False),
        CoreRow("--help", "CPU s", "≤ 0.3", helped, False),
        CoreRow("reopen 50,000 samples, metrics shown", "s", "≤ 0.1", shown, False),
        CoreRow("reopen 50,000 samples, all records read", "s", "", full, False),
    ]


def measure_own_runs(work: Path) -> list[dict[str, float | str]]:
    """The whole command, with complete records. CPU seconds are comparable even on a busy machine."""
    rows: list[dict[str, float | str]] = []
    for task, model in RUNS.items():
        command = [str(Path(sys.executable).parent / "proctor"), "run", task, "--model", model, "--quiet"]
        costs = []
        for number in range(RUN_REPEAT):
            store = work / f"{model.replace('/', '-')}{number}"
            costs.append(run_measured([*command, "--limit", str(SPEED_SAMPLES), "--store", str(store)]))
            check_records(store)
            shutil.rmtree(store)
        walls = [cost.wall for cost in costs]
        rows.append(
            {
                "run": task,
                "samples_per_second_median": SPEED_SAMPLES / statistics.median(walls),
                "samples_per_second_best": SPEED_SAMPLES / min(walls),
                "samples_per_cpu_second": SPEED_SAMPLES / statistics.median(cost.cpu for cost in costs),
                "load": os.getloadavg()[0],
            }
        )
    return rows


def check_records(folder: Path) -> None:
    """Checks that every record has its prompt, output, score and times."""
    store = open_store(str(folder), "read")
    try:
        complete = sum(
            bool(r.sample.input and r.sample.target and r.outputs and r.score and r.timing.started and r.timing.ask)
            for r in store.records(store.run("latest"))
        )
    finally:
        store.close()
    if complete != SPEED_SAMPLES:
        sys.exit(f"bench: {complete:,} of {SPEED_SAMPLES:,} records are complete")


def runs_table(rows: list[dict[str, float | str]]) -> str:
    columns = list(rows[0])
    lines = [f"| {' | '.join(column.replace('_', ' ') for column in columns)} |", "|---" * len(columns) + "|"]
    for row in rows:
        cells = [cell if isinstance(cell, str) else short(cell) for cell in row.values()]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, f"\nwanted: {RUN_FLOOR:,} samples a second of shapes/existence, on a quiet machine"])


def table(rows: list[CoreRow]) -> str:
    names = list(rows[0].figures)
    lines = [
        f"| measure | target | {' | '.join(names)} |",
        f"|---|---|{'---|' * len(names)}",
    ]
    for row in rows:
        ours = row.figures["proctor"]
        cells = []
        for name, figure in row.figures.items():
            ratio = ours / figure if row.more_is_better else figure / ours
            cells.append(short(figure) if name == "proctor" else f"{short(figure)} ({short(ratio)}×)")
        lines.append(f"| {row.measure}, {row.unit} | {row.target} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the peers with a tenth of the samples")
    parser.add_argument("--runs", action="store_true", help="only Proctor's own runs")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these harnesses, proctor always")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "core.json", help="where the figures go")
    args = parser.parse_args()
    if args.runs:
        with tempfile.TemporaryDirectory() as work:
            print(runs_table(measure_own_runs(Path(work))))
        return
    prepare_peers()
    chosen = [s for s in subjects() if args.only is None or s.name in ("proctor", *args.only)]
    with tempfile.TemporaryDirectory() as work:
        rows = measure(chosen, Path(work), 0.1 if args.quick else 1)
    print(table(rows))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    result = {
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
        "share_of_samples_given_to_peers": 0.1 if args.quick else 1,
        "rows": [asdict(row) for row in rows],
    }
    args.out.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    print_status(f"written to {args.out}")


if __name__ == "__main__":
    main()
