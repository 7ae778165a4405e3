"""The metric "codeparrot/apps_metric", which finds the tests of its predictions by their places in the data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.code.rows import load_dataset
from proctor.code.tasks.apps import APPS
from proctor.metrics.passing import DEFAULT_KS


def compute_apps_metric(
    predictions: Sequence[Sequence[str]],
    references: Sequence[Any] = (),
    k_list: Sequence[int] = DEFAULT_KS,
    count_errors: bool = True,
    level: str = "all",
    debug: bool = False,
) -> dict[str, Any]:
    """The share of tests that pass, and of problems with all of them; pass@k, where problems have several programs."""
    rows = load_dataset(APPS.DATASET_PATH, split=APPS.SPLIT, difficulties=[level])
    task = APPS()
    task.ks = tuple(k_list)
    task.dataset = {APPS.SPLIT: rows}
    tested = [task.get_reference(rows[index]) for index in range(len(predictions))]
    counted = task.process_results([list(of_one) for of_one in predictions], tested)
    if len(predictions[0]) == 1:
        return {
            "avg_accuracy": counted["avg_accuracy"],
            "strict_accuracy": counted["pass@1"],
            "pass_at_k": None,
        }
    passing = {name: value for name, value in counted.items() if name.startswith("pass@")}
    return {"avg_accuracy": None, "strict_accuracy": None, "pass_at_k": passing}
