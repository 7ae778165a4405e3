"""CodeXGLUE text-to-text: sentences of Microsoft's documentation, translated into English.

CodeXGLUE: A Machine Learning Benchmark Dataset for Code Understanding and Generation, https://arxiv.org/abs/2102.04664
"""

from __future__ import annotations

from typing import Any

from proctor.code.task import Task
from proctor.code.text_task import TwoShotTask, examples

_LANGUAGES = {"da_en": "Danish", "lv_en": "Latvian", "no_en": "Norwegian", "zh_en": "Chinese"}


class TextToText(TwoShotTask):
    DATASET_PATH = "google/code_x_glue_tt_text_to_text"
    NEEDED = ("source", "target")

    def fewshot_examples(self) -> Any:
        return examples("codexglue_text_to_text")[self.DATASET_NAME]

    def question(self, doc: Any) -> str:
        return str(doc["source"]).strip()

    def get_reference(self, doc: Any) -> str:
        return str(doc["target"]).strip()


def create_all_tasks() -> dict[str, type[Task]]:
    return {f"codexglue_text_to_text-{pair}": create_task(pair, language) for pair, language in _LANGUAGES.items()}


def create_task(pair: str, language: str) -> type[Task]:
    class Translation(TextToText):
        summary = f"translates {language} documentation into English, compared with a person's (1000 sentences)"
        DATASET_NAME = pair
        headline = f"Translate the following documentation from {language} to English:"
        labels = (language, "English")

    return Translation
