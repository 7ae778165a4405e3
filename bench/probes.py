"""The best guesser of every shapes task: accuracy without solving it.

    python bench/probes.py             100,000 items of each task at its default settings, and 10,000 at others
    python bench/probes.py --quick     a twentieth of that
    python bench/probes.py --only count existence     these tasks; the figures of the others stay

The default settings come first. A line for each task and settings says its best guesser; all figures go to
bench/results/probes.json as they come.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from process import HERE, print_status
from proctor.analysis.check import probe_task
from proctor.core.errors import UsageError
from proctor.core.task import create_task
from proctor.shapes.tasks.registered_tasks import REGISTERED_TASKS

RESULTS = HERE / "results" / "probes.json"
ITEMS, ITEMS_AT_OTHERS = 100_000, 10_000
OTHERS: tuple[dict[str, Any], ...] = (
    *({"shapes": shapes} for shapes in (2, 3, 5, 12, 24)),
    *({"events": events} for events in (1, 2, 5, 10, 20, 50)),
    *({"hops": hops} for hops in (2, 3, 9)),
    *({"description": description} for description in ("full", "partial")),
)


def points(names: Sequence[str], quick: bool) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Every task at its default settings, and at those others that it takes."""
    parts = 20 if quick else 1
    for name in names:
        yield f"shapes/{name}", {}, ITEMS // parts
    for name in names:
        for settings in OTHERS:
            try:
                create_task(REGISTERED_TASKS[name], f"shapes/{name}", settings)
            except UsageError:
                continue
            yield f"shapes/{name}", settings, ITEMS_AT_OTHERS // parts


def read() -> list[dict[str, Any]]:
    known: list[dict[str, Any]] = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    return known


def measure(point: tuple[str, dict[str, Any], int]) -> dict[str, Any]:
    name, settings, n = point
    probes = [probe for probe in probe_task(name, settings, n) if probe.accuracy]
    guessers = [
        {"probe": p.name, "by": p.note, "accuracy": p.accuracy.value, "holds": p.holds} for p in probes if p.accuracy
    ]
    guessers.sort(key=lambda guesser: -float(guesser["accuracy"] or 0))
    return {"task": name, "settings": settings, "n": n, "chance": probes[0].chance, "guessers": guessers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=tuple(REGISTERED_TASKS), help="only these tasks")
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    results = [] if not args.only else [old for old in read() if old["task"].partition("/")[2] not in args.only]
    with ProcessPoolExecutor(args.processes) as pool:
        for result in pool.map(measure, points(args.only or tuple(REGISTERED_TASKS), args.quick)):
            best = result["guessers"][0]
            setting = ", ".join(f"{key}={value}" for key, value in result["settings"].items())
            print_status(
                f"{result['task']:<28} {setting:<22} chance {result['chance']:.4f}   "
                f"{best['probe']} ({best['by']}) {best['accuracy']:.4f}"
            )
            results.append(result)
            if not args.quick:
                RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
