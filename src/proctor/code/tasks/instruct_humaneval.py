"""InstructHumanEval: the problems of HumanEval as instructions, with the beginning of the answer or without.

https://huggingface.co/datasets/codeparrot/instructhumaneval; the problems are those of Evaluating Large Language Models
Trained on Code, https://arxiv.org/abs/2107.03374
"""

from __future__ import annotations

import re
from typing import Any

from proctor.code import reply
from proctor.code.forms import Form
from proctor.code.stopwords import cut
from proctor.code.task import Task
from proctor.core.config import RunConfig
from proctor.sandbox import Program


class InstructHumanEval(Task):
    """The answer begins with the context: imports, helper functions and the signature."""

    summary = "writes a Python function from an instruction and its signature (164 problems)"
    DATASET_PATH = "codeparrot/instructhumaneval"
    NEEDED = ("prompt", "canonical_solution", "test", "entry_point", "context", "instruction")

    def __init__(self, timeout: float = 3.0) -> None:
        super().__init__(stop_words=["if __name__", "\nprint", "\nclass", "\n```"], requires_execution=True)
        self.timeout = timeout

    def get_prompt(self, doc: Any) -> dict[str, str]:
        return {"instruction": doc["instruction"], "context": doc["context"]}

    def get_reference(self, doc: Any) -> str:
        return f"{doc['test']}\ncheck({doc['entry_point']})"

    def solution(self, doc: Any) -> str:
        return f"\n{doc['canonical_solution']}"

    def program(self, doc: Any, generation: str) -> Program:
        return Program(
            source=generation,
            tests=self.get_reference(doc),
            entry_point=self.entry_point(doc),
            prelude=doc["prompt"],
        )

    def postprocess_generation(self, generation: str, idx: int) -> str:
        """Up to the end of the function: what a model explains after it is no program."""
        context = str(self.rows()[idx]["context"])
        completion = cut(generation.removeprefix(context), self.stop_words)
        return context + re.split(r"\n(?=\S)", completion)[0]

    def read_chat(self, doc: Any, form: Form, text: str, index: int) -> str:
        return reply.program(doc["context"], text, self.entry_point(doc), self.language)


class InstructHumanEvalWithoutContext(InstructHumanEval):
    """The model sees the instruction only, and writes the whole function."""

    summary = "writes a Python function from an instruction alone (164 problems)"

    def get_prompt(self, doc: Any) -> dict[str, str]:
        return {"instruction": doc["instruction"], "context": ""}

    def solution(self, doc: Any) -> str:
        return f"{doc['context']}\n{doc['canonical_solution']}"

    def stop_strings(self, config: RunConfig) -> tuple[str, ...]:
        return tuple(config.stop)  # what ends a function may as well stand before it

    def postprocess_generation(self, generation: str, idx: int) -> str:
        """The function in whatever was said, with the imports and helpers that the benchmark puts before it."""
        doc = self.rows()[idx]
        return reply.program(doc["context"], generation, self.entry_point(doc), self.language)


def create_all_tasks() -> dict[str, type[InstructHumanEval]]:
    return {
        "instruct-humaneval": InstructHumanEval,
        "instruct-humaneval-nocontext": InstructHumanEvalWithoutContext,
    }
