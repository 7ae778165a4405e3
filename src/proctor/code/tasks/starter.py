"""The starter set: problems of our own in twelve languages, to begin with at once and without a network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from proctor.code.rows import Row, read_rows
from proctor.code.task import Task
from proctor.code.wrong_tests import with_exchanged_ends

LANGUAGES = ("python", "javascript", "java", "c", "cpp", "go", "rust", "php", "ruby", "lua", "perl", "bash")
_FILE = Path(__file__).with_name("starter.jsonl")


class Starter(Task):
    version = "2"
    group_by = ("difficulty",)
    NEEDED = ("prompt", "test", "entry_point")

    def __init__(self, timeout: float = 3.0) -> None:
        super().__init__(stop_words=self._of_language()[0]["stop"], requires_execution=True)
        self.timeout = timeout

    def get_dataset(self) -> list[Row]:
        return self._of_language()

    def get_prompt(self, doc: Any) -> str:
        return str(doc["prompt"])

    def get_reference(self, doc: Any) -> str:
        return f"{doc['test']}\ncheck({doc['entry_point']})" if self.language == "python" else str(doc["test"])

    def wrong_tests(self, doc: Any) -> str:
        tests = self.get_reference(doc)
        return super().wrong_tests(doc) or with_exchanged_ends(tests, self.language, "expect")

    def describe(self, doc: Any) -> dict[str, Any]:
        return {**super().describe(doc), "difficulty": doc["difficulty"]}

    def _of_language(self) -> list[Row]:
        return [row for row in read_rows(_FILE) if row["language"] == self.language]


def create_all_tasks() -> dict[str, type[Starter]]:
    """`starter` is Python; the other languages need their compilers, and have names of their own."""
    return {"starter" if name == "python" else f"starter-{name}": _create_task(name) for name in LANGUAGES}


def _create_task(name: str) -> type[Starter]:
    class OfLanguage(Starter):
        language = name
        summary = f"everyday problems of three difficulties, in {name.capitalize()}; part of Proctor"

    return OfLanguage
