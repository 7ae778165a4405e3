"""CoNaLa: one line of Python from one sentence, 500 of them, asked and answered on Stack Overflow.

Learning to Mine Aligned Code and Natural Language Pairs from Stack Overflow, https://arxiv.org/abs/1805.08949
"""

from __future__ import annotations

from typing import Any

from proctor.code.rows import load_dataset
from proctor.code.shots import OWN, own_examples
from proctor.code.task import Task
from proctor.code.text_task import HarnessTwoShots, OwnTwoShots, TwoShotTask


class _Conala(TwoShotTask):
    summary = "writes a line of Python from a sentence, compared with a person's (500 problems)"
    DATASET_PATH = "neulab/conala"
    NEEDED = ("intent", "rewritten_intent", "snippet")
    headline = "Answer the following instructions in one line of Python code:"
    labels = ("Instruction", "Solution")

    def get_dataset(self) -> Any:
        # The hub has a script, which its client no longer runs, and beside it the rows that came out.
        return load_dataset(
            self.DATASET_PATH,
            split=self.SPLIT,
            revision="refs/convert/parquet",
            data_files={self.SPLIT: f"curated/{self.SPLIT}/*.parquet"},
        )

    def question(self, doc: Any) -> str:
        return str(doc["rewritten_intent"] or doc["intent"]).strip()

    def get_reference(self, doc: Any) -> str:
        return str(doc["snippet"])


class Conala(HarnessTwoShots, _Conala):
    SHOTS = "few_shot_examples/conala_few_shot_prompts.json"


class OwnConala(OwnTwoShots, _Conala):
    summary = f"{_Conala.summary}; after two examples of our own"

    def fewshot_examples(self) -> Any:
        return own_examples("conala")


def create_all_tasks() -> dict[str, type[Task]]:
    return {"conala": Conala, f"conala{OWN}": OwnConala}
