"""The code family: speed of judging references, and overlap of generation and execution.

    python bench/code_family.py

The model is a local server that answers every HumanEval problem rightly after a fixed time; `model_server.py` is its
process. Generation alone, execution alone and both together are measured one after another, several times.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from process import print_status, short

HERE = Path(__file__).resolve().parent
PROCTOR = str(Path(sys.executable).parent / "proctor")
ROUNDS, SAMPLES, CONCURRENCY, LATENCY = 5, 5, 20, 0.1


def run(folder: str, *arguments: str) -> dict[str, Any]:
    """The report of one run."""
    command = [PROCTOR, *arguments, "--allow-code-execution", "--store", folder, "--json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout)["runs"][0]
    return report


def check_references(folder: str) -> dict[str, float]:
    report = run(folder, "run", "code/humaneval", "--check-references")
    return {"seconds": report["seconds"], "pass@1": report["metrics"]["pass@1"]["value"], "n": report["n"]}


def overlap(folder: str, port: int) -> dict[str, float]:
    arguments = ["run", "code/humaneval", "--model", "openai/by-heart", "--base-url", f"http://127.0.0.1:{port}/v1"]
    arguments += ["--n-samples", str(SAMPLES), "--concurrency", str(CONCURRENCY)]
    asked = run(folder, *arguments, "--generation-only")
    alone = in_flight(port)
    judged = run(folder, "resume", asked["id"], "--no-generation-only")
    together = run(folder, *arguments)
    both = in_flight(port)
    generation, execution = asked["seconds"], judged["seconds"] - asked["seconds"]
    assert judged["metrics"]["pass@1"]["value"] == together["metrics"]["pass@1"]["value"] == 1
    return {
        "generation": generation,
        "execution": execution,
        "together": together["seconds"],
        "ratio": together["seconds"] / max(generation, execution),
        "in_flight_generation": alone["mean"],
        "in_flight_together": both["mean"],
        "most_in_flight": both["most"],
    }


def in_flight(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/stats", timeout=30) as reply:
        stats: dict[str, float] = json.load(reply)
    return stats


def main() -> None:
    checks, overlaps = [], []
    server = subprocess.Popen(
        [sys.executable, str(HERE / "model_server.py"), str(LATENCY)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        for number in range(ROUNDS):
            print_status(f"round {number + 1} of {ROUNDS}")
            with tempfile.TemporaryDirectory() as folder:
                checks.append(check_references(folder))
                overlaps.append(overlap(folder, port))
    finally:
        server.kill()
        server.wait()
    check = {key: statistics.median(one[key] for one in checks) for key in checks[0]}
    median = {key: statistics.median(one[key] for one in overlaps) for key in overlaps[0]}
    results = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "settings": {"samples": SAMPLES, "concurrency": CONCURRENCY, "latency": LATENCY},
        "check_references": check,
        "overlap": median,
        "rounds": {"check_references": checks, "overlap": overlaps},
    }
    (HERE / "results" / "code_family.json").write_text(json.dumps(results, indent=2) + "\n")
    phases = f"asking {short(median['generation'])} s, executing {short(median['execution'])} s"
    in_flight_alone = f"asking alone {short(median['in_flight_generation'])}"
    rows = [
        ("--check_references on HumanEval, after start-up", "≤ 2 s, pass@1 = 1",
         f"{short(check['seconds'])} s, pass@1 = {check['pass@1']:g}"),
        (f"requests in flight, mean, at --concurrency {CONCURRENCY}", str(CONCURRENCY),
         f"{short(median['in_flight_together'])} ({in_flight_alone})"),
        (f"both at once against the slower alone ({phases})", "≤ 1.1×", f"{median['ratio']:.2f}×"),
    ]  # fmt: skip
    print(f"| measure, {os.cpu_count()} cores, median of {ROUNDS} | target | proctor |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
