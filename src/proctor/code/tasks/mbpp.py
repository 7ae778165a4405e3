"""MBPP: some hundred short Python problems in one sentence, each with three tests of which the model sees the first.

Program Synthesis with Large Language Models, https://arxiv.org/abs/2108.07732
"""

from __future__ import annotations

import ast
from typing import Any, ClassVar

from proctor.code.task import Task
from proctor.core.errors import MissingDataError

_SETUP = "test_setup_code"
# An answer is a whole file, with imports, comments and several functions: it ends where it would be tried out.
_STOP_WORDS = ["\nclass", "\nassert", '\n"""', "\nprint", "\nif", "\n<|/", "\n```"]


class MBPP(Task):
    """Problems 11 to 510, which are the test split; the others are there to learn from.

    The prompt is a docstring with the sentence and one test, as InCoder was first asked.
    """

    summary = "writes a Python function from one sentence and its tests (500 problems)"
    DATASET_PATH = "mbpp"
    NEEDED: ClassVar[tuple[str, ...]] = ("test_list", "code")
    NUMBERS: ClassVar[range | None] = range(11, 511)  # of the problems that are asked, in a file that may have all

    def __init__(self, timeout: float = 6.0, tests_shown: int = 1) -> None:
        """`timeout`: the slowest of the references takes three seconds."""
        super().__init__(stop_words=_STOP_WORDS, requires_execution=True)
        self.timeout = timeout
        self.tests_shown = tests_shown

    def get_dataset(self) -> Any:
        rows = super().get_dataset()
        if self.NUMBERS is None:
            return rows
        numbered = ((row, row.get("task_id")) for row in rows)
        asked = [row for row, number in numbered if not isinstance(number, int) or number in self.NUMBERS]
        if not asked:
            raise MissingDataError(
                f"The data has no problem from {self.NUMBERS[0]} to {self.NUMBERS[-1]}, which are those of {self.name}."
            )
        return asked

    def get_prompt(self, doc: Any) -> str:
        sentence = doc["text"] if "text" in doc else doc["prompt"]
        return '"""\n{}\n{}\n"""\n'.format(sentence, "\n".join(doc["test_list"][: self.tests_shown]))

    def get_reference(self, doc: Any) -> str:
        imports = [*doc.get("test_imports", ()), *filter(None, [doc.get(_SETUP)])]
        return "\n".join([*imports, *doc["test_list"]])

    def entry_point(self, doc: Any) -> str:
        """What the tests call, which may have the name of a built-in."""
        return called_function(doc["test_list"][0], doc["code"])

    def solution(self, doc: Any) -> str:
        return str(doc["code"])


class SanitizedMBPP(MBPP):
    """The 427 problems whose wording and tests were checked by hand."""

    summary = "the 427 problems of MBPP that were checked by hand"
    DATASET_NAME = "sanitized"
    NUMBERS = None


def called_function(test: str, code: str) -> str:
    """The function of the solution that a test calls."""
    defined = {node.name for node in ast.walk(ast.parse(code)) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    called = [node.func for node in ast.walk(ast.parse(test)) if isinstance(node, ast.Call)]
    names = [function.id for function in called if isinstance(function, ast.Name)]
    return next((name for name in names if name in defined), "")
