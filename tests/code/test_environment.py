"""Tests use the prompt's own helper functions, also in task files of unknown make."""

from __future__ import annotations

import pytest

from helpers.bigcode_tasks import judge, values, write_rows, write_task
from helpers.code_tasks import rows
from helpers.toolchains import needs_language
from proctor.code.environment import helpers_in

HELPER = "def area(side):\n    return side * side\n"
BEGUN = 'def side_of(square):\n    """The side of a square of this area."""\n'
ROW = {
    "prompt": f"{HELPER}\n\n{BEGUN}",
    "test": "for side in (1.0, 2.5):\n    assert abs(area(side_of(area(side))) - area(side)) < 1e-6",
    "canonical_solution": "    return square ** 0.5\n",
}
FILE = """
    from bigcode_eval.base import Task
    from evaluate import load

    class Squares(Task):
        DATASET_PATH = "someone/something"

        def __init__(self):
            super().__init__(stop_words=[], requires_execution=True)

        def get_dataset(self):
            return self.dataset["test"]

        def get_prompt(self, doc):
            return doc["prompt"]

        def get_reference(self, doc):
            return doc["test"]

        def postprocess_generation(self, generation, idx):
            return generation

        def process_results(self, generations, references):
            results, _ = load("code_eval").compute(references=references, predictions=generations)
            return results
"""


@pytest.mark.parametrize(
    ("completion", "marks"),
    [
        ("    return square ** 0.5\n", 1),
        ("    return square ** 0.5\n\n" + HELPER, 1),
        ("    return 0.0\n\ndef area(side):\n    return 0.0\n", 0),
        ("    return area(square)\n\ndef area(side):\n    return side ** 0.5\n", 1),  # right, by a helper of its own
    ],
)
def test_a_program_that_redefines_a_helper_of_the_tests_gains_nothing(completion: str, marks: int) -> None:
    report = judge(f"{write_task(FILE)}:Squares", [[ROW["prompt"] + completion]], data=write_rows([ROW]), workers=1)
    assert values(report)["pass@1"] == marks


@pytest.mark.parametrize(
    ("prompt", "names"),
    [
        (HELPER + BEGUN, ["area"]),
        (f"import math\nLIMIT = 3\n{HELPER}\n{BEGUN}", ["math", "LIMIT", "area"]),
        (HELPER + "def side_of(square):", ["area"]),
        (BEGUN, []),
        ("def first(x):\n    pass\n\ndef second(x):\n    '''To be written.'''\n", []),
        ("def first(x):\n    raise NotImplementedError\n" + BEGUN, []),
        (f"class Node:\n    pass\n\n{HELPER}{BEGUN}", []),
        ("Write a function that adds.", []),
        (f"{HELPER}\nclass Square:\n    def side(self):\n", ["area"]),
    ],
)
def test_helpers_are_what_a_prompt_has_complete(prompt: str, names: list[str]) -> None:
    space: dict[str, object] = {}
    exec(helpers_in(prompt), space)
    assert [name for name in space if name != "__builtins__"] == names


PACK = """
    from bigcode_eval.base import Task
    from evaluate import load

    class Pack(Task):
        DATASET_PATH = "bigcode/humanevalpack"

        def __init__(self):
            super().__init__(stop_words=[], requires_execution=True)

        def get_dataset(self):
            return self.dataset["test"]

        def get_prompt(self, doc):
            return doc["prompt"]

        def get_reference(self, doc):
            return doc["test"]

        def postprocess_generation(self, generation, idx):
            return generation

        def process_results(self, generations, references):
            metric = load("Muennighoff/code_eval_octopack")
            results, _ = metric.compute(references=references, predictions=generations, language="rust", timeout=30.0)
            return results
"""


@pytest.mark.slow
def test_crates_of_rust_rows_in_a_task_file() -> None:
    """Those that a program does not use are left out; one that it uses and that is missing is an error."""
    needs_language("rust-test", libraries=True)
    row = rows("humanevalpack")[-1]
    needy = {**row, "task_id": "Rust/1", "prompt": row["prompt"].replace("use md5;", "use md5;\nuse no_such_crate;")}
    answers = [f"{given['prompt']}{given['canonical_solution']}" for given in (row, needy)]
    wrong = f"{row['prompt']}{row['buggy_solution']}"
    path = write_task(PACK)
    report = judge(f"{path}:Pack", [[answers[0], wrong]], data=write_rows([row]), workers=1)
    assert values(report)["pass@1"] == 0.5
    report = judge(f"{path}:Pack", [[answers[0]], [answers[1]]], data=write_rows([row, needy]), workers=1)
    right, excused = report.records()
    assert right.score is not None
    assert excused.error is not None
    assert (right.score.value, excused.error.type) == (1, "MissingLibraryError")
