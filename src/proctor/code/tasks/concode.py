"""Concode: a Java method from its documentation. The test split has no answers, so it is the one for validation.

Mapping Language to Code in Programmatic Context, https://arxiv.org/abs/1808.09588
CodeXGLUE: A Machine Learning Benchmark Dataset for Code Understanding and Generation, https://arxiv.org/abs/2102.04664
"""

from __future__ import annotations

from typing import Any

from proctor.code.shots import OWN, own_examples
from proctor.code.task import Task
from proctor.code.text_task import HarnessTwoShots, OwnTwoShots, TwoShotTask

_CLASS = "concode_field_sep"  # here the members of the class begin, which the prompt leaves out


class _Concode(TwoShotTask):
    summary = "writes a Java method from its documentation, compared with a person's (2000 problems)"
    DATASET_PATH = "google/code_x_glue_tc_text_to_code"
    SPLIT = "validation"
    NEEDED = ("nl", "code")
    headline = "Answer the following instructions in a one line of Java code:"
    labels = ("Instruction", "Solution")

    def question(self, doc: Any) -> str:
        return str(doc["nl"]).partition(_CLASS)[0].strip().removesuffix(".").strip()

    def get_reference(self, doc: Any) -> str:
        return str(doc["code"])


class Concode(HarnessTwoShots, _Concode):
    SHOTS = "few_shot_examples/concode_few_shot_prompts.json"


class OwnConcode(OwnTwoShots, _Concode):
    summary = f"{_Concode.summary}; after two examples of our own"

    def fewshot_examples(self) -> Any:
        return own_examples("concode")


def create_all_tasks() -> dict[str, type[Task]]:
    return {"concode": Concode, f"concode{OWN}": OwnConcode}
