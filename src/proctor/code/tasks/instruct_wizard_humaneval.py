"""HumanEval as WizardCoder is asked: the problem in the instruction of an Alpaca prompt, the answer a whole script.

The problems are those of Evaluating Large Language Models Trained on Code, https://arxiv.org/abs/2107.03374
"""

from __future__ import annotations

from typing import Any

from proctor.code import reply
from proctor.code.forms import Form
from proctor.code.stopwords import cut
from proctor.code.tasks.humaneval import HumanEval
from proctor.sandbox import Program

_ASKED = "Create a Python script for this problem:\n"
_PROMPT = (
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n\n"
    f"### Instruction:\n{_ASKED}{{problem}}\n\n### Response:"
)


class WizardHumanEval(HumanEval):
    summary = "writes a Python script for a problem, asked as WizardCoder was trained (164 problems)"

    def __init__(self, timeout: float = 3.0) -> None:
        super().__init__(timeout, strip_prompt=False)
        self.stop_words = ["</s>", "<|endoftext|>"]

    def get_prompt(self, doc: Any) -> str:
        return _PROMPT.format(problem=doc["prompt"].replace("    ", "\t"))

    def chat_prompt(self, doc: Any) -> str:
        return f"{_ASKED}{doc['prompt']}"

    def entry_point(self, doc: Any) -> str:
        return str(doc["entry_point"])

    def solution(self, doc: Any) -> str | None:
        found = doc.get("canonical_solution")
        return f"\n```python\n{doc['prompt']}{found}\n```" if found else None

    def program(self, doc: Any, generation: str) -> Program:
        name, tests = self.entry_point(doc), self.get_reference(doc)
        return Program(source=generation, tests=tests, entry_point=name, prelude=doc["prompt"])

    def postprocess_generation(self, generation: str, idx: int) -> str:
        doc = self.rows()[idx]
        completion = cut(generation.removeprefix(self.get_prompt(doc)), self.stop_words)
        return self._script(doc, completion.replace("\t", "    "))

    def read_chat(self, doc: Any, form: Form, text: str, index: int) -> str:
        return self._script(doc, text)

    def _script(self, doc: Any, text: str) -> str:
        """The function in whatever was said, after the imports and helpers of the problem."""
        return reply.program(doc["prompt"], text, self.entry_point(doc), self.language)
