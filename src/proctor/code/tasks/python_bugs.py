"""Python Bugs: one function with one wrong operator or one wrong name, to be written again as it was.

On Distribution Shift in Learning-based Bug Detectors, https://proceedings.mlr.press/v162/he22a.html; in the form that
CarperAI gave the data for diff models.
"""

from __future__ import annotations

import re
from typing import Any

from proctor.code import reply
from proctor.code.forms import Form, fenced
from proctor.code.stopwords import cut
from proctor.code.text_task import TextTask, pairs
from proctor.core.errors import SettingError

_BUGS = {"bin-op": "binary operator", "var-misuse": "incorrect variable name"}
# By the kind of model that is asked; the first two end with the word that begins the answer.
_FRAMES = {
    "prompt": "#!/usr/bin/python3\n# A buggy implementation\n{code}\n# Fixed {bug}\ndef",
    "prompt_carper": "# A buggy implementation\n#!/usr/bin/python3\n{code}\n# Fixed {bug}\ndef",
    "edit": "<commit_before>{code}<commit_msg>Fix {bug}<commit_after>",
}
_COMMIT = ["<commit_before>", "<commit_msg>", "<commit_after>", "<|endoftext|>"]


class PythonBugs(TextTask):
    """Right is what begins with the correct function, character by character."""

    summary = "writes a Python function again without its wrong operator or name, compared with the original"
    DATASET_PATH = "Muennighoff/python-bugs"
    SPLIT = "train"
    NEEDED = ("task", "prompt_code", "correct_code")
    metric = "mean exact match"
    group_by = ("bug_class",)
    max_length_multiplier = 2.25

    def __init__(self, prompt: str = "prompt") -> None:
        if prompt not in _FRAMES:
            expected = " or ".join(_FRAMES)
            raise SettingError(f"python_bugs: setting prompt: expected {expected}, got {prompt!r}.", "prompt")
        words = ["\nclass", "\n#", "\ndef", "\nassert", '\n"', "\nprint", "\nif"]
        super().__init__(stop_words=[*words, *_COMMIT])
        self.prompt = prompt

    def get_prompt(self, doc: Any) -> str:
        return _FRAMES[self.prompt].format(code=doc["prompt_code"], bug=_BUGS[doc["task"]])

    def chat_prompt(self, doc: Any) -> str:
        asked = f"Fix the {_BUGS[doc['task']]} in this Python function, and change nothing else. Reply with the whole "
        return f"{asked}function in one code block.\n\n{fenced(doc['prompt_code'], 'python')}"

    def get_reference(self, doc: Any) -> str:
        return str(doc["correct_code"])

    def solution(self, doc: Any) -> str:
        return str(doc["correct_code"]).removeprefix(self._begun)

    def describe(self, doc: Any) -> dict[str, Any]:
        return {"bug_class": doc["task"]}

    def postprocess_generation(self, generation: str, idx: int) -> str:
        doc = self.rows()[idx]
        completion = cut(generation.removeprefix(self.get_prompt(doc)), _COMMIT)
        return (self._begun + completion)[: len(doc["correct_code"])]

    def read_chat(self, doc: Any, form: Form, text: str, index: int) -> str:
        name = re.match(r"\s*(?:async\s+)?def\s+(\w+)", doc["correct_code"])
        code = reply.code_in(text, name[1] if name else "").strip("\n")
        begun = "" if re.match(r"\s*(?:async\s+def|def|@|class)\b", code) else self._begun
        return (begun + code)[: len(doc["correct_code"])]

    def process_results(self, generations: list[list[str]], references: list[Any]) -> dict[str, float]:
        right = [text == reference for text, reference in pairs(generations, references)]
        return {self.metric: sum(right) / len(right)}

    @property
    def _begun(self) -> str:
        return "" if self.prompt == "edit" else "def"
