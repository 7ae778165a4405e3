"""Results of runs of 50,000 samples: comparison, and the page in a browser. Needs a quiet machine."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from browsing import browse
from process import print_status, run_measured, short
from proctor.core.runner import sample_digest
from proctor.core.types import Metric, Output, Record, Run, Sample, Score, Usage
from proctor.store import open_store

RESULTS = Path(__file__).parent / "results" / "results_page.json"
SAMPLES = 50_000
REPEAT = 5


@dataclass(frozen=True)
class ResultsRow:
    measure: str
    unit: str
    target: str
    figure: float


def write_run(store: str, name: str, value: Callable[[Random], float], variants: int = 1) -> None:
    """Writes a run; `variants` consecutive samples form a cluster."""
    random = Random(name)
    groups = {"size": {str(size): {"accuracy": Metric(0.5, None, None, None, 1, "wilson")} for size in (3, 5, 7)}}
    run = Run(name, "bench/questions", "1", f"model-{name}", {"settings": {}}, {}, 1.0, "done", groups=groups)
    opened = open_store(store)
    opened.save(run)
    records = []
    for index in range(SAMPLES):
        sample = Sample(
            f"q{index}",
            index,
            f"What is the answer to question {index}? " + "Think of it step by step. " * 20,
            "42",
            metadata={"size": 3 + 2 * (index % 3)},
            cluster=f"problem {index // variants}" if variants > 1 else "",
        )
        output = Output("The answer is 42, as can be seen. " * 10, Usage(200, 80), seconds=1.5)
        records.append((Record(sample, 0, (output,), Score(value(random), answer="42")), sample_digest(sample)))
        if len(records) == 5_000:
            opened.write(run, records)
            records.clear()
    opened.close()


def comparison(store: str) -> list[ResultsRow]:
    """CPU seconds of a whole `proctor compare`: start, reading, pairing, statistics by three groups, printing."""
    kinds: dict[str, tuple[Callable[[Random], float], int]] = {
        "pass and fail": (lambda random: float(random.random() < 0.6), 1),
        "pass and fail, in 10,000 clusters": (lambda random: float(random.random() < 0.6), 5),
        "scores of ten levels": (lambda random: random.randrange(11) / 10, 1),
        "scores of any value": (lambda random: random.random(), 1),
    }
    rows = []
    for number, (kind, (value, variants)) in enumerate(kinds.items()):
        first, second = f"{number}-first", f"{number}-second"
        print_status(f"comparison, {kind}")
        write_run(store, first, value, variants)
        write_run(store, second, value, variants)
        command = [sys.executable, "-m", "proctor", "compare", first, second, "--store", store]
        costs = [run_measured(command) for _ in range(REPEAT)]
        assert f"n = {SAMPLES:,} pairs" in costs[0].printed
        measure = f"compare two runs of {SAMPLES:,} samples, {kind}"
        rows.append(ResultsRow(measure, "CPU s", "≤ 1", statistics.median(cost.cpu for cost in costs)))
    return rows


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = comparison(folder)
    print_status("the page, in Chromium")
    rows += [ResultsRow(*measured) for measured in browse()]
    RESULTS.write_text(json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False) + "\n")
    print("| measure | target | proctor |\n|---|---|---|")
    for row in rows:
        print(
            f"| {row.measure} | {f'{row.target} {row.unit}' if row.target else ''} | {short(row.figure)} {row.unit} |"
        )


if __name__ == "__main__":
    main()
