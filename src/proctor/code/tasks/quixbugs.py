"""QuixBugs: forty classic algorithms in Python, each with a bug on one line.

QuixBugs: A Multi-Lingual Program Repair Benchmark Set Based on the Quixey Challenge,
https://doi.org/10.1145/3135932.3135941
"""

from __future__ import annotations

import re
from typing import Any

from proctor.code import reply
from proctor.code.bugs import bug_class
from proctor.code.forms import Form
from proctor.code.stopwords import cut
from proctor.code.task import Task
from proctor.core.errors import UsageError
from proctor.sandbox import Program

_END = "<|endoftext|>"
# How the fixed function is asked for, the beginning of it that the prompt ends with, and what ends it.
_PROMPTS = {
    "prompt": (
        "# Buggy function\n{program}\n# Fixed function\ndef",
        "def",
        ["\ndef", "\nclass", "\n#", "\n@", "\nprint", "\nif", "###", "///", _END],
    ),
    "prompt_codex": (
        "### fix the bug in the following function\n{program}\n### fixed function",
        "",
        ["\nclass", "###", "///", _END],
    ),
    "edit": (
        "<commit_before>{program}<commit_msg>Fix bug in {name}<commit_after>",
        "",
        ["<commit_before>", "<commit_msg>", "<commit_after>", _END],
    ),
}


class QuixBugs(Task):
    summary = "repairs a classic algorithm in Python (40 problems)"
    DATASET_PATH = "Muennighoff/quixbugs"
    SPLIT = "train"
    version = "2"  # samples say what kind of bug they have
    NEEDED = ("name", "buggy_program", "solution", "tests")
    group_by = ("bug_class",)

    def __init__(self, prompt: str = "prompt", timeout: float = 10.0) -> None:
        if prompt not in _PROMPTS:
            raise UsageError(f"prompt: {prompt!r} is not one of {', '.join(_PROMPTS)}.")
        self._template, self._begun, stop_words = _PROMPTS[prompt]
        super().__init__(stop_words=stop_words, requires_execution=True)
        self.timeout = timeout

    def get_prompt(self, doc: Any) -> str:
        return self._template.format(program=doc["buggy_program"], name=doc["name"])

    def chat_prompt(self, doc: Any) -> str:
        instruction = f"Fix the bug in {doc['name']}. Reply with the whole function in one code block."
        return f"{instruction}\n\n```python\n{doc['buggy_program']}\n```"

    def get_reference(self, doc: Any) -> str:
        return str(doc["tests"]).strip()

    def entry_point(self, doc: Any) -> str:
        return str(doc["name"])

    def solution(self, doc: Any) -> str:
        function = doc["solution"][len(_before_function(doc["solution"])) :]
        return f"\n{doc['solution']}" if not self._begun else function.removeprefix(self._begun)

    def describe(self, doc: Any) -> dict[str, Any]:
        return {**super().describe(doc), "bug_class": bug_class(doc["buggy_program"], doc["solution"])}

    def program(self, doc: Any, generation: str) -> Program:
        return Program(source=generation, tests=self.get_reference(doc), entry_point=self.entry_point(doc))

    def postprocess_generation(self, generation: str, idx: int) -> str:
        doc = self.rows()[idx]
        completion = cut(generation.removeprefix(self.get_prompt(doc)), self.stop_words)
        return f"{_before_function(doc['buggy_program'])}{self._begun}{completion}"

    def read_chat(self, doc: Any, form: Form, text: str, index: int) -> str:
        code = reply.code_in(text, doc["name"])
        begun = "" if re.search(r"^def\b", code, re.MULTILINE) else self._begun
        return f"{_before_function(doc['buggy_program'])}{begun}{code}"


def _before_function(program: str) -> str:
    """The imports, which an answer that begins with the function itself does not repeat."""
    return re.split(r"^(?=def )", program, maxsplit=1, flags=re.MULTILINE)[0]
