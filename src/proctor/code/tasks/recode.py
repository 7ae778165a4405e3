"""ReCode: HumanEval with prompts that say the same in other ways, to see whether a model still solves what it solved.

ReCode: Robustness Evaluation of Code Generation Models, https://arxiv.org/abs/2212.10264
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from proctor.code.execution import run_programs
from proctor.code.keyed import KeyedTask
from proctor.code.stopwords import STOP_WORDS
from proctor.code.task import Task
from proctor.core.errors import MissingDataError
from proctor.core.types import Metric, Record
from proctor.metrics.statistics import score_mean
from proctor.sandbox import Outcome, Program

CATEGORIES = {
    "format": "the layout of half the solution",
    "func_name": "the function's name",
    "natgen": "the syntax of half the solution",
    "nlaugmenter": "the docstring",
}
MOST_SEEDS = 10

Passes = dict[int, list[bool]]
"""By the seed of the perturbation: whether each generation passed."""


class PerturbedHumanEval(KeyedTask):
    """Each perturbation was drawn with several seeds; a problem is solved robustly if all its prompts are."""

    DATASET_PATH = "RaymondLi/perturbed_humaneval"
    NEEDED = ("task_id", "prompt", "test", "entry_point", "seed", "perturbation_name")
    KEYS = ("task_id", "perturbation_name", "seed")
    group_by = ("perturbation_name",)
    metric = "robust-pass-at-1"
    num_seeds: int = MOST_SEEDS

    def __init__(self, timeout: float = 3.0) -> None:
        super().__init__(stop_words=STOP_WORDS["python"], requires_execution=True)
        self.timeout = timeout

    def get_dataset(self) -> Any:
        rows = [row for row in super().get_dataset() if row["seed"] < self.num_seeds]
        if not rows:
            raise MissingDataError(f"There are no prompts with a seed below {self.num_seeds}.")
        return rows

    def get_prompt(self, doc: Any) -> str:
        return str(doc["prompt"]).strip()

    def solution(self, doc: Any) -> str | None:
        found = doc.get("canonical_solution")
        return f"\n{found}" if found else None

    def program(self, doc: Any, generation: str) -> Program:
        name = doc["entry_point"]
        return Program(
            source=generation, tests=f"{doc['test']}\ncheck({name})", entry_point=name, prelude=doc["prompt"]
        )

    def identify(self, doc: Any, index: int) -> str:
        return f"{doc['task_id']}/{doc['perturbation_name']}/{doc['seed']}"

    def describe(self, doc: Any) -> dict[str, Any]:
        return {**super().describe(doc), "perturbation_name": doc["perturbation_name"]}

    def cluster_of(self, doc: Any) -> str:
        return str(doc["task_id"])

    def process_results(self, generations: list[list[str]], references: list[Any]) -> dict[str, float]:
        robustness = Robustness()
        for of_one, reference in zip(generations, references, strict=True):
            doc = self.row_of(reference)
            trials = run_programs([self.program(doc, generation) for generation in of_one], self.limits())
            robustness.note(reference, [trial.passed for trial in trials])
        return {name: metric.value for name, metric in robustness.metrics().items() if metric.value is not None}

    def tally(self) -> Robustness:
        return Robustness()


class Robustness:
    """Counts over problems, the unit of all errors: a problem's prompts are not independent of each other.

    Over several perturbations, which are told apart in the groups of the report, a problem counts with their average.
    """

    def __init__(self) -> None:
        self._problems: dict[str, dict[str, Passes]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))

    def add(self, record: Record) -> None:
        if record.score is not None:
            passes = [trial["outcome"] == Outcome.PASSED for trial in record.score.answer["trials"]]
            self.note(record.sample.metadata["reference"], passes)

    def note(self, reference: Mapping[str, Any], passes: Sequence[bool]) -> None:
        self._problems[reference["task_id"]][reference["perturbation_name"]][reference["seed"]] += passes

    def metrics(self) -> dict[str, Metric]:
        counted: dict[str, Callable[[Passes], float]] = {
            "robust-pass-at-1": _all_at_once,
            "alt-robust-pass-at-1": _one_by_one,
            "pass@1": _on_average,
        }
        return {
            name: score_mean([_mean(of_one, count) for of_one in self._problems.values()])
            for name, count in counted.items()
        }


def create_all_tasks() -> dict[str, type[Task]]:
    return {
        f"perturbed-humaneval-{category}-num_seeds_{seeds}": type(
            "PerturbedHumanEval",
            (PerturbedHumanEval,),
            {"DATASET_NAME": category, "num_seeds": seeds, "summary": f"HumanEval with prompts changed in {change}"},
        )
        for category, change in CATEGORIES.items()
        for seeds in range(1, MOST_SEEDS + 1)
    }


def _mean(perturbations: Mapping[str, Passes], count: Callable[[Passes], float]) -> float:
    return sum(count(passes) for passes in perturbations.values()) / len(perturbations)


def _all_at_once(passes: Passes) -> float:
    """The share of the generations, counted in the order they were made, that pass for every seed."""
    together = [all(of_one_try) for of_one_try in zip(*passes.values(), strict=False)]
    return sum(together) / len(together)


def _one_by_one(passes: Passes) -> float:
    """The chance that all pass when one is drawn for every seed."""
    return math.prod(sum(of_one_seed) / len(of_one_seed) for of_one_seed in passes.values())


def _on_average(passes: Passes) -> float:
    return sum(sum(of_one_seed) / len(of_one_seed) for of_one_seed in passes.values()) / len(passes)
