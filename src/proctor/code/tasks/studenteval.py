"""StudentEval: what beginners wrote to have a function made, and whether a model makes it.

StudentEval: A Benchmark of Student-Written Prompts for Large Language Models of Code, https://arxiv.org/abs/2306.04556
"""

from __future__ import annotations

from typing import Any

from proctor.code.task import Task

_GROUPS = {
    "is_first_success": "First Success",
    "is_last_success": "Last Success",
    "is_first_failure": "First Failure",
    "is_last_failure": "Last Failure",
}


class StudentEval(Task):
    """A student's first and last attempts. They succeeded or failed with the model of the study."""

    summary = "writes a Python function from what a student asked for (1,027 prompts for 48 problems)"
    DATASET_PATH = "wellesley-easel/StudentEval"
    NEEDED = ("problem", "entrypoint", "prompt", "assertions", *_GROUPS)
    group_by = ("group",)

    def __init__(self, timeout: float = 15.0) -> None:
        super().__init__(stop_words=["\ndef", "\nclass", "\nif", "\nprint"], requires_execution=True)
        self.timeout = timeout

    def get_dataset(self) -> Any:
        return [row for row in super().get_dataset() if _group(row)]

    def get_prompt(self, doc: Any) -> str:
        return str(doc["prompt"]).rstrip()

    def get_reference(self, doc: Any) -> str:
        return str(doc["assertions"])

    def entry_point(self, doc: Any) -> str:
        return str(doc["entrypoint"])

    def solution(self, doc: Any) -> str | None:
        """What the model of the study wrote, if that was right."""
        return f"\n{doc['completion']}" if doc.get("is_success") else None

    def identify(self, doc: Any, index: int) -> str:
        return f"{doc['problem']}/{index}"

    def describe(self, doc: Any) -> dict[str, Any]:
        return {**super().describe(doc), "problem": doc["problem"], "group": _group(doc)}

    def cluster_of(self, doc: Any) -> str:
        return str(doc["problem"])


def _group(row: Any) -> str | None:
    return next((name for flag, name in _GROUPS.items() if row.get(flag)), None)
