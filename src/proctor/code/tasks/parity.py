"""Parity: one function of four bits with one to five bugs, to be written again without them. It needs no data.

Evolution through Large Models, https://arxiv.org/abs/2206.08896
"""

from __future__ import annotations

from itertools import product
from typing import Any

from proctor.code.forms import fenced
from proctor.code.stopwords import STOP_WORDS
from proctor.code.task import Task
from proctor.core.errors import SettingError
from proctor.sandbox import Program

_BUGS = 5
_FUNCTION = '''def parity(b1,b2,b3,b4):
    """Return binary parity of a sequence of input bits. Return 0 for even parity, 1 for odd parity."""
    bit_sum = sum([{}1,{}2,{}3,{}4])
    return bit_sum % {}'''
# What stands before and after the function, by the kind of model that is asked.
_FRAMES = {
    "prompt": ("#!/usr/bin/python3\n# A buggy implementation\n", "\n# Fixed bugs\ndef"),
    "prompt_carper": ("# A buggy implementation\n#!/usr/bin/python3\n", "\n# Fixed bugs\ndef"),
    "diff": ("<NME> parity.py\n<BEF> ", "\n<MSG> Fixed bugs"),
    "edit": ("<commit_before>", "<commit_msg>Fix bugs<commit_after>"),
}
_TESTS = "\n".join(f"assert parity{bits} == {sum(bits) % 2}" for bits in product((0, 1), repeat=4))


class Parity(Task):
    """With n bugs, the first n of five places are wrong: four variables that are added up, and the number 2."""

    summary = "mends a function of four bits that has one to five bugs"
    group_by = ("bugs",)

    def __init__(self, prompt: str = "prompt") -> None:
        """`prompt`: how the function is shown. As a comment, as a diff (diff models) or as a commit (StarCoder)."""
        if prompt not in _FRAMES:
            raise SettingError(f"parity: setting prompt: expected {' or '.join(_FRAMES)}, got {prompt!r}.", "prompt")
        special = ["<commit_before>", "<commit_msg>", "<commit_after>", "<|endoftext|>"]
        super().__init__(stop_words=[*STOP_WORDS["python"], *special], requires_execution=True)
        self.frame = _FRAMES[prompt]

    def get_dataset(self) -> list[dict[str, int]]:
        return [{"bugs": bugs} for bugs in range(1, _BUGS + 1)]

    def get_prompt(self, doc: Any) -> str:
        before, after = self.frame
        return before + _function(doc["bugs"]) + after

    def chat_prompt(self, doc: Any) -> str:
        asked = "Find the bugs in this Python function. Reply with the whole function without them, in one code block."
        return f"{asked}\n\n{fenced(_function(doc['bugs']), 'python')}"

    def get_reference(self, doc: Any) -> str:
        return _TESTS

    def entry_point(self, doc: Any) -> str:
        return "parity"

    def solution(self, doc: Any) -> str:
        return mended_function().removeprefix(self._begun)

    def identify(self, doc: Any, index: int) -> str:
        return f"{doc['bugs']} bugs"

    def describe(self, doc: Any) -> dict[str, Any]:
        return {**super().describe(doc), "bugs": doc["bugs"]}

    def program(self, doc: Any, generation: str) -> Program:
        """The new function alone: what is left of a generation without the prompt, of which it takes up the end."""
        prompt = self.get_prompt(doc)
        source = self._begun + generation.removeprefix(prompt) if generation.startswith(prompt) else generation
        return Program(source=source, tests=_TESTS, entry_point="parity")

    @property
    def _begun(self) -> str:
        return "def" if self.frame[1].endswith("def") else ""


def mended_function() -> str:
    return _function(0)


def _function(bugs: int) -> str:
    right, wrong = ["b", "b", "b", "b", "2"], ["c", "c", "c", "c", "3"]
    return _FUNCTION.format(*wrong[:bugs], *right[bugs:])
