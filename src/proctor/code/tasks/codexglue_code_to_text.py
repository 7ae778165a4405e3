"""CodeXGLUE code-to-text: what a function does, in the words of its documentation; by BLEU of each, from 0 to 100.

CodeXGLUE: A Machine Learning Benchmark Dataset for Code Understanding and Generation, https://arxiv.org/abs/2102.04664
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

from proctor.code import reply
from proctor.code.forms import fenced
from proctor.code.task import Task
from proctor.code.text_task import TextTask, pairs
from proctor.metrics.bleu import smoothed_bleu

_COMMENTS = {"python": ('"""', '"""'), "ruby": ("=begin", "=end")}
_OTHER_COMMENT = ("/*", "*/")
_SIZES = {"python": 14918, "java": 10955, "javascript": 3291, "ruby": 1261, "php": 14014, "go": 8122}
_QUOTES = r"\"{3}|'{3}|\"|'"


class CodeToText(TextTask):
    """The function is followed by a comment that has been begun; its first line is the answer.

    The prompts are those of the BigCode harness, byte by byte. Two things are counted otherwise there: an empty answer
    is worth nothing here, where smoothing would give it something, and the mark that ends the comment is no word of it.
    """

    version = "2"
    DATASET_PATH = "google/code_x_glue_ct_code_to_text"
    NEEDED = ("code", "docstring", "docstring_tokens")
    full_marks = 100.0

    def __init__(self) -> None:
        self.opening, self.closing = _COMMENTS.get(self.language, _OTHER_COMMENT)
        super().__init__(stop_words=['"""', "'''"] if self.language == "python" else ["\n", self.closing])

    def code(self, doc: Any) -> str:
        """What a chat is shown of the function. In Python its documentation stands inside."""
        if self.language != "python":
            return str(doc["code"])
        signature, body = around_docstring(doc["code"], doc["docstring"])
        return signature.rstrip() + body

    def get_prompt(self, doc: Any) -> str:
        return f"{self.shown_code(doc)}\n{self.opening} The goal of this function is to:\n"

    def shown_code(self, doc: Any) -> str:
        """As the harness has it: in Python, with no triple quotes at all after the documentation."""
        if self.language != "python":
            return str(doc["code"])
        body = doc["code"].partition(doc["docstring"])[2].replace('"""', "").replace("'''", "")
        return begun_signature(doc).strip().removesuffix("'''") + str(body)

    def chat_prompt(self, doc: Any) -> str:
        question = (
            f"What does this {reply.title(self.language)} function do? Reply with the first sentence of its "
            "documentation and nothing else."
        )
        return f"{question}\n\n{fenced(self.code(doc), self.language)}"

    def get_reference(self, doc: Any) -> str:
        """The words of the documentation's first paragraph. Spaces between them do not count."""
        words = " ".join(doc["docstring_tokens"]).split()
        return " ".join(words[1:] if words[:1] == ["r"] else words)  # r is left of a raw string's prefix

    def answer(self, text: str) -> str:
        text = text.strip().removeprefix(self.opening).strip()
        return text.partition("\n")[0].removesuffix(self.closing).strip()

    def process_results(self, generations: list[list[str]], references: list[Any]) -> dict[str, float]:
        scores = [_bleu(*pair) for pair in pairs(generations, references)]
        return {"bleu": 100 * math.fsum(scores) / len(scores)}


class LeftCodeToText(CodeToText):
    """Python only: nothing but the signature is shown, and the documentation is begun where it belongs."""

    summary = "says what a Python function does from its signature alone, compared with its documentation"
    DATASET_NAME = "python"

    def code(self, doc: Any) -> str:
        return around_docstring(doc["code"], doc["docstring"])[0].rstrip()

    def get_prompt(self, doc: Any) -> str:
        return f'{begun_signature(doc)}"""'


def begun_signature(doc: Any) -> str:
    """What the harness keeps before the documentation: up to the first quotes of a docstring, or to the last single
    ones, with which the character before them goes."""
    before = str(doc["code"]).partition(doc["docstring"])[0]
    quotes = next((quotes for quotes in ('"""', "'''") if quotes in before), None)
    if quotes is not None:
        before = before[: before.index(quotes)]
    for quote in "'\"":
        before = re.sub(rf"[^'\"]{quote}\s*\Z", "", before)
    return before


def around_docstring(code: str, docstring: str) -> tuple[str, str]:
    """What stands before a docstring and after it, without its quotes, which the given text may have or not."""
    before, _, after = code.partition(docstring)
    return re.sub(rf"[rRuU]?(?:{_QUOTES})\s*$", "", before), re.sub(rf"^\s*(?:{_QUOTES})", "", after)


@lru_cache(maxsize=100_000)  # intervals ask for the same pairs again and again
def _bleu(prediction: str, reference: str) -> float:
    return smoothed_bleu(prediction, reference) if prediction.strip() else 0.0


def create_all_tasks() -> dict[str, type[Task]]:
    left: dict[str, type[Task]] = {"codexglue_code_to_text-python-left": LeftCodeToText}
    return {f"codexglue_code_to_text-{language}": create_task(language) for language in _SIZES} | left


def create_task(programming_language: str) -> type[Task]:
    class Summary(CodeToText):
        summary = (
            f"says what a {reply.title(programming_language)} function does, compared with its documentation "
            f"({_SIZES[programming_language]} functions)"
        )
        DATASET_NAME = programming_language
        language = programming_language

    return Summary
