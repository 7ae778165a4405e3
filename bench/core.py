"""Speed and memory of the exam room against other harnesses, all measured in this one run.

    python bench/core.py            everything (about 40 minutes: the peers take most of it)
    python bench/core.py --quick    the peers with a tenth of the samples

Figures are of whole processes, from start to end, taken from the operating system's accounts; only the reopening of a
run is timed inside the process, after its imports.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEER_ENV = HERE.parent / ".venv-bench"
SPEED_SAMPLES, MEMORY_SAMPLES = 10_000, 50_000


@dataclass(frozen=True)
class Cost:
    """What one process took."""

    wall: float
    cpu: float
    peak_mib: float
    printed: str


@dataclass(frozen=True)
class Subject:
    """A harness with one way of using it."""

    name: str
    run: Callable[[int, Path], list[str]]
    reopen: Callable[[Path], list[str]]
    help: list[str]
    repeat: int


@dataclass(frozen=True)
class Row:
    measure: str
    unit: str
    target: str
    figures: dict[str, float]  # subject -> figure
    more_is_better: bool


def spend(command: Sequence[str]) -> Cost:
    """Runs a command to its end; a failure ends the bench."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=errors, cwd=HERE)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            sys.exit(f"bench: {' '.join(command)} failed:\n{errors.read().decode()[-2000:]}")
        return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out.read().decode())


def subjects() -> list[Subject]:
    bin_dir = Path(sys.executable).parent
    proctor, peer_bin = str(bin_dir / "proctor"), PEER_ENV / "bin"

    def run_proctor(n: int, folder: Path) -> list[str]:
        exam = [proctor, "run", "trivial.py:Doubling", "--model", "scripted/blank", "--limit", str(n)]
        return [*exam, "--store", str(folder), "--quiet"]

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


def measure(chosen: list[Subject], work: Path, share: float) -> list[Row]:
    speed: dict[str, float] = {}
    cpu: dict[str, float] = {}
    memory: dict[str, float] = {}
    shown: dict[str, float] = {}
    full: dict[str, float] = {}
    helped: dict[str, float] = {}
    for subject in chosen:
        ours = subject.name == "proctor"
        n, many = (round(count * (1 if ours else share)) for count in (SPEED_SAMPLES, MEMORY_SAMPLES))
        say(f"{subject.name}: {n:,} samples")
        costs = [spend(subject.run(n, work / subject.name / f"speed{i}")) for i in range(subject.repeat)]
        speed[subject.name] = n / statistics.median(cost.wall for cost in costs)
        cpu[subject.name] = statistics.median(cost.cpu for cost in costs) / n * 1e6
        say(f"{subject.name}: {many:,} samples")
        memory[subject.name] = spend(subject.run(many, work / subject.name / "memory")).peak_mib
        say(f"{subject.name}: reopen, help")
        reopened = [json.loads(spend(subject.reopen(work / subject.name / "memory")).printed.splitlines()[-1])]
        reopened += [
            json.loads(spend(subject.reopen(work / subject.name / "memory")).printed.splitlines()[-1])
            for _ in range(subject.repeat - 1)
        ]
        shown[subject.name] = statistics.median(figures["header_seconds"] for figures in reopened)
        full[subject.name] = statistics.median(figures["full_seconds"] for figures in reopened)
        helped[subject.name] = statistics.median(spend(subject.help).cpu for _ in range(5))
        shutil.rmtree(work / subject.name)
    return [
        Row("10,000 samples, whole process", "samples/s", "≥ 5,000 and ≥ 100× inspect", speed, True),
        Row("CPU per sample", "µs", "", cpu, False),
        Row("peak memory at 50,000 samples", "MiB", "≤ 100", memory, False),
        Row("--help", "CPU s", "≤ 0.3", helped, False),
        Row("reopen 50,000 samples, metrics shown", "s", "≤ 0.1", shown, False),
        Row("reopen 50,000 samples, all records read", "s", "", full, False),
    ]


def table(rows: list[Row]) -> str:
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


def short(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.1f}" if figure >= 10 else f"{figure:.2g}"


def prepare_peers() -> None:
    marker = PEER_ENV / "ready"
    requirements = HERE / "peers" / "requirements.txt"
    if marker.exists() and marker.read_text() == requirements.read_text():
        return
    say("installing the peers in .venv-bench")
    subprocess.run([sys.executable, "-m", "venv", str(PEER_ENV)], check=True)
    pip = [str(PEER_ENV / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "-r", str(requirements)], check=True, stderr=subprocess.DEVNULL)
    marker.write_text(requirements.read_text())


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the peers with a tenth of the samples")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="only these harnesses, proctor always")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "core.json", help="where the figures go")
    args = parser.parse_args()
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
    say(f"written to {args.out}")


if __name__ == "__main__":
    main()
