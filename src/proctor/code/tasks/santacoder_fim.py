"""Filling in one missing line of code, in Python, Java and JavaScript, compared with the line that was there.

SantaCoder: don't reach for the stars!, https://arxiv.org/abs/2301.03988
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec

from proctor.code.forms import fim_family
from proctor.code.prompt_language import known_language
from proctor.code.stopwords import cut
from proctor.code.task import Task
from proctor.code.text_task import pairs
from proctor.core.config import RunConfig
from proctor.core.errors import UsageError
from proctor.core.types import FimFamily, Sample
from proctor.metrics.text import edit_similarity, exact_match
from proctor.models.base import Request


class SantaCoderFIM(Task):
    """Asks with the tokens that --fim or the model's name says, else with SantaCoder's."""

    summary = "fills in a missing line of Python, Java or JavaScript, compared with the original (4,792 lines)"
    DATASET_PATH = "bigcode/santacoder-fim-task"
    SPLIT = "train"
    version = "2"  # a chat model sees each hole in the language of its row
    NEEDED = ("name", "language", "prompt", "suffix", "canonical_solution")
    family: ClassVar[FimFamily] = "santacoder"
    group_by = ("language",)
    metric = "exact_match"
    max_tokens = 256

    def __init__(self) -> None:
        super().__init__(stop_words=["<|endoftext|>", "<|filename|>"], requires_execution=False)

    def get_prompt(self, doc: Any) -> dict[str, str]:
        return {"prefix": doc["prompt"], "suffix": doc["suffix"]}

    def get_reference(self, doc: Any) -> str:
        return str(doc["canonical_solution"])

    def identify(self, doc: Any, index: int) -> str:
        return f"{doc['name']}/{index}"  # a function has many lines

    def language_of(self, doc: Any) -> str:
        return known_language(doc["language"])

    def describe(self, doc: Any) -> dict[str, Any]:
        return {"language": doc["language"]}

    def cluster_of(self, doc: Any) -> str:
        return f"{doc['language']}/{doc['name']}"

    def postprocess_generation(self, generation: str, idx: int) -> str:
        """The middle alone."""
        doc = self.rows()[idx]
        return cut(generation.removeprefix(doc["prompt"]).removesuffix(doc["suffix"]), self.stop_words)

    def process_results(self, generations: list[list[str]], references: list[Any]) -> dict[str, float]:
        found = [(text.strip(), line.strip()) for text, line in pairs(generations, references)]
        similarity = math.fsum(edit_similarity(*pair) for pair in found) / len(found)
        texts, lines = zip(*found, strict=True)
        return {**exact_match(texts, lines), "edit_similarity": similarity}

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        return super().samples(self._with_family(config))

    def request(self, sample: Sample, number: int, config: RunConfig) -> Request:
        return super().request(sample, number, self._with_family(config))

    async def open(self, config: RunConfig) -> None:
        await super().open(self._with_family(config))

    def _with_family(self, config: RunConfig) -> RunConfig:
        try:
            return msgspec.structs.replace(config, fim=fim_family(config))
        except UsageError:
            return msgspec.structs.replace(config, fim=self.family)


class StarCoderFIM(SantaCoderFIM):
    """The same, with StarCoder's tokens where nothing else is said."""

    family = "starcoder"


def create_all_tasks() -> dict[str, type[SantaCoderFIM]]:
    return {"santacoder_fim": SantaCoderFIM, "starcoder_fim": StarCoderFIM}
