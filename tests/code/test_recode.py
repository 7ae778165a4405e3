"""ReCode: a problem counts as solved if it is under every perturbation of its prompt."""

from __future__ import annotations

import json
from typing import Any

import pytest

import proctor
from helpers.code_tasks import ROWS, make_task, rows, write_rows
from proctor.code.tasks.recode import Robustness

NAME = "perturbed-humaneval-func_name-num_seeds_2"


def counted(*noted: tuple[str, str, int, list[bool]]) -> dict[str, float | None]:
    robustness = Robustness()
    for problem, perturbation, seed, passes in noted:
        robustness.note({"task_id": problem, "perturbation_name": perturbation, "seed": seed}, passes)
    return {name: metric.value for name, metric in robustness.metrics().items()}


def test_all_seeds_must_pass() -> None:
    found = counted(("a", "p", 0, [True]), ("a", "p", 1, [False]), ("b", "p", 0, [True]), ("b", "p", 1, [True]))
    assert found == {"robust-pass-at-1": 0.5, "alt-robust-pass-at-1": 0.5, "pass@1": 0.75}


def test_several_generations() -> None:
    # Together: only the second generation passes with both seeds. Drawn one by one: 2/4 times 3/4.
    found = counted(("a", "p", 0, [True, True, False, False]), ("a", "p", 1, [False, True, True, True]))
    assert found["robust-pass-at-1"] == 0.25
    assert found["alt-robust-pass-at-1"] == pytest.approx(0.375)
    assert found["pass@1"] == pytest.approx(0.625)


def test_perturbations_of_one_problem_are_averaged_and_the_unit_is_the_problem() -> None:
    robustness = Robustness()
    for problem in "abcd":
        for perturbation in "pqr":
            for seed in range(5):
                reference = {"task_id": problem, "perturbation_name": perturbation, "seed": seed}
                robustness.note(reference, [perturbation != "r" or problem == "a"])
    metric = robustness.metrics()["robust-pass-at-1"]
    assert metric.value == pytest.approx((1 + 3 * 2 / 3) / 4)
    assert metric.n == 4


def replay(**texts: str) -> str:
    with open("replay.jsonl", "w") as file:
        for row in rows("perturbed-humaneval"):
            text = "\n" + texts.get(row["entry_point"], row["canonical_solution"])
            key = f"{row['task_id']}/{row['perturbation_name']}/{row['seed']}"
            file.write(json.dumps({"id": key, "outputs": [{"text": text}]}) + "\n")
    return "scripted/replay:replay.jsonl"


def evaluate(name: str, model: str, **options: Any) -> proctor.Report:
    data = str(ROWS / "perturbed-humaneval.jsonl")
    return proctor.evaluate(f"code/{name}", model, **{"data": data, "allow_code_execution": True, **options})


def test_a_model_that_one_name_throws_off() -> None:
    report = evaluate(NAME, replay(sqaure_it="    return n + n\n"))
    assert report.metrics["pass@1"].value == 0.75
    assert report.metrics["robust-pass-at-1"].value == 0.5
    assert report.metrics["robust-pass-at-1"].n == 2
    groups = report.run.groups["perturbation_name"]
    assert {name: group["robust-pass-at-1"].value for name, group in groups.items()} == {
        "FuncRenameOne": 0.5,
        "FuncRenameTwo": 0.5,
    }


def test_only_the_first_seeds_are_asked() -> None:
    model = replay(sqaure_it="    return n + n\n")  # the name that the second seed gave
    report = evaluate("perturbed-humaneval-func_name-num_seeds_1", model)
    assert report.run.n == 4
    assert report.metrics["robust-pass-at-1"].value == 1


def test_the_results_of_all_prompts_at_once(one_sandbox: None) -> None:
    task = make_task(NAME, *rows("perturbed-humaneval"))
    references = [task.get_reference(row) for row in task.rows()]
    generations = [[row["prompt"] + row["canonical_solution"], row["prompt"] + "    return 4\n"] for row in task.rows()]
    assert task.process_results(generations, references) == {
        "robust-pass-at-1": 0.5,
        "alt-robust-pass-at-1": 0.25,
        "pass@1": 0.5,
    }


def test_helpers_of_the_prompt_are_there_for_the_tests() -> None:
    row = rows("perturbed-humaneval")[0]
    row["prompt"] = f"def helper(n):\n    return n + 2\n\n\n{row['prompt']}"
    row["test"] = "def check(candidate):\n    assert candidate(2) == helper(2)\n"
    report = evaluate(NAME, "scripted/oracle", data=write_rows(row))
    assert report.metrics["pass@1"].value == 1
