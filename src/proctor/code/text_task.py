"""Code tasks whose answers are texts, scored by overlap with a reference."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from proctor.code import reply
from proctor.code.forms import Form
from proctor.code.shots import HarnessShots
from proctor.code.stopwords import cut
from proctor.code.task import Task
from proctor.metrics.bleu import Overlap, bleu_of, overlap


class TextTask(Task):
    """The generation is the answer alone. BLEU is that of all answers together, smoothed, as Hugging Face counts it.

    Where a problem has several answers, each of them is one more pair of the corpus.
    """

    metric = "bleu"

    def solution(self, doc: Any) -> str | None:
        return str(self.get_reference(doc))

    def answer(self, text: str) -> str:
        """What is compared of what was written."""
        return text.strip()

    def postprocess_generation(self, generation: str, idx: int) -> str:
        return self.answer(cut(generation.removeprefix(self._form(idx).begun), self.stop_words))

    def read_chat(self, doc: Any, form: Form, text: str, index: int) -> str:
        return self.answer(reply.code_in(text))

    def process_results(self, generations: list[list[str]], references: list[Any]) -> dict[str, float]:
        score = bleu_of((_overlap(*pair) for pair in pairs(generations, references)), smooth=True)
        return {
            "bleu": score["bleu"],
            "brevity_penalty": score["brevity_penalty"],
            "length_ratio": score["length_ratio"],
        }


class TwoShotTask(TextTask):
    """Shows two solved problems, then the one to solve, each part under its label. The answer is a single line."""

    headline: str
    labels: tuple[str, str]
    """Of what is given, and of what is asked for."""
    gap: str = ""  # between a part and the next label

    @abstractmethod
    def question(self, doc: Any) -> str:
        """What is given."""

    @abstractmethod
    def worked(self) -> list[tuple[str, str]]:
        """The solved problems."""

    def get_prompt(self, doc: Any) -> str:
        given, asked = self.labels
        shown = "".join(f"\n{given}:\n{text}{self.gap}\n{asked}:\n{answer}{self.gap}" for text, answer in self.worked())
        return f"{self.headline}\n{shown}\n{given}:\n{self.question(doc)}{self.gap}\n{asked}:\n"

    def answer(self, text: str) -> str:
        """In a chat it may have the label once more."""
        return text.strip().removeprefix(f"{self.labels[1]}:").strip()


class HarnessTwoShots(HarnessShots, TwoShotTask):
    """With the two examples of the BigCode harness, and the spaces that its prompts have at the ends of lines."""

    version = "2"
    gap = " " * 19
    keys: tuple[str, str] = ("instruction", "solution")

    def __init__(self, prompts: str = "") -> None:
        """`prompts`: a checkout or the installed package of the BigCode harness."""
        super().__init__(stop_words=["\n"])
        self.prompts = prompts

    def worked(self) -> list[tuple[str, str]]:
        examples = self.chosen(self.fewshot_examples())
        given, asked = self.keys
        return [(examples[f"{given}{number}"], examples[f"{asked}{number}"]) for number in (1, 2)]

    def chosen(self, examples: Any) -> Any:
        """Those of this task, where the file has several."""
        return examples


class OwnTwoShots(TwoShotTask):
    def __init__(self) -> None:
        super().__init__(stop_words=["\n"])

    def worked(self) -> list[tuple[str, str]]:
        return [(given, asked) for given, asked in self.fewshot_examples()]


def pairs(generations: list[list[str]], references: list[Any]) -> Iterable[tuple[str, str]]:
    """Every answer with the text that was expected."""
    for answers, reference in zip(generations, references, strict=True):
        for answer in answers:
            yield answer, str(reference)


@lru_cache(maxsize=100_000)  # intervals ask for the same pairs again and again
def _overlap(prediction: str, reference: str) -> Overlap:
    return overlap(prediction, reference)
