"""CodeXGLUE text-to-text: sentences of Microsoft's documentation, translated into English.

CodeXGLUE: A Machine Learning Benchmark Dataset for Code Understanding and Generation, https://arxiv.org/abs/2102.04664
"""

from __future__ import annotations

from typing import Any

from proctor.code.shots import OWN, own_examples
from proctor.code.task import Task
from proctor.code.text_task import HarnessTwoShots, OwnTwoShots, TwoShotTask

_LANGUAGES = {"da_en": "Danish", "lv_en": "Latvian", "no_en": "Norwegian", "zh_en": "Chinese"}


class TextToText(TwoShotTask):
    DATASET_PATH = "google/code_x_glue_tt_text_to_text"
    NEEDED = ("source", "target")

    def question(self, doc: Any) -> str:
        return str(doc["source"])

    def get_reference(self, doc: Any) -> str:
        return str(doc["target"]).strip()


class HarnessTextToText(HarnessTwoShots, TextToText):
    SHOTS = "few_shot_examples/codexglue_text_to_text_few_shot_prompts.json"
    keys = ("source", "target")

    def chosen(self, examples: Any) -> Any:
        return examples[self.labels[0].lower()]


class OwnTextToText(OwnTwoShots, TextToText):
    def question(self, doc: Any) -> str:
        return super().question(doc).strip()

    def fewshot_examples(self) -> Any:
        return own_examples("codexglue_text_to_text")[self.DATASET_NAME]


def create_all_tasks() -> dict[str, type[Task]]:
    return {
        f"codexglue_text_to_text-{pair}{ending}": create_task(pair, language, parent)
        for ending, parent in (("", HarnessTextToText), (OWN, OwnTextToText))
        for pair, language in _LANGUAGES.items()
    }


def create_task(pair: str, language: str, parent: type[TextToText]) -> type[Task]:
    about = f"translates {language} documentation into English, compared with a person's (1000 sentences)"
    members = {
        "__module__": __name__,
        "summary": f"{about}; after two examples of our own" if parent is OwnTextToText else about,
        "DATASET_NAME": pair,
        "headline": f"Translate the following documentation from {language} to English:",
        "labels": (language, "English"),
    }
    return type(f"{parent.__name__}_{pair}", (parent,), members)
